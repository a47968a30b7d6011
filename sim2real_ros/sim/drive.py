# SPDX-License-Identifier: Apache-2.0
"""`Drive`: motor drives with a PD law of their own, as many legged robots have: they take an impedance, not a torque."""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.robot import Robot
from sim2real_ros.signals import Impedance


class Drive:
    """The drives of one robot; arrays (n,) in robot order. A command that has expired leaves damping behind."""

    def __init__(self, robot: Robot) -> None:
        self._damping, self._effort = robot.damping, robot.limits.effort
        self._command: Impedance | None = None
        self._until = -math.inf

    def take(self, command: Impedance, expires_s: float, now: float) -> None:
        """Take a command that counts until `expires_s` from now, s."""
        self._command, self._until = command, now + expires_s

    def torque(self, joint_pos: np.ndarray, joint_vel: np.ndarray, now: float) -> np.ndarray:
        """Return the torque of the drives, N m; none before the first command."""
        if self._command is None:
            return np.zeros_like(joint_pos)
        if now > self._until:
            torque = -self._damping * joint_vel
        else:
            torque = pd_torque(self._command.targets, self._command.gains, joint_pos, joint_vel)
        return np.clip(torque, -self._effort, self._effort)
