# SPDX-License-Identifier: Apache-2.0
"""Adopting a policy: its contract held against the robot itself, and its tables spread over the robot's joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DocumentError, JointError
from sim2real_ros.robot import Robot
from sim2real_ros.signals import Gains, JointTargets


@dataclass(frozen=True, slots=True)
class Adopted:
    """An accepted policy. Arrays are (n,) in robot order; joints that it does not drive keep the standing pose."""

    contract: Contract
    index: np.ndarray  # robot joint of each policy joint
    goal: np.ndarray  # rad, default pose
    gains: Gains

    def spread(self, targets: JointTargets) -> JointTargets | None:
        """Return targets in robot order, or None when they are not finite or of a wrong length."""
        parts = (targets.position, targets.velocity, targets.effort)
        if any(len(part) != len(self.index) or not np.isfinite(part).all() for part in parts):
            return None
        full = np.zeros((3, len(self.goal)))
        full[0] = self.goal
        full[:, self.index] = parts
        return JointTargets(targets.stamp, full[0], full[1], full[2])


def adopt(robot: Robot, contract: Contract) -> Adopted:
    """Hold a contract against the robot: never trust upstream.

    Raises:
        JointError: it drives joints that the robot lacks.
        DocumentError: it is meant for another robot or its default pose is outside the robot's limits; all are listed.
    """
    file, limits = contract.file, robot.limits
    unknown = [joint for joint in contract.joints if joint not in robot.joints]
    if unknown:
        raise JointError(
            f'policy {file.name} drives {", ".join(unknown)}, which robot {robot.name} does not have; its joints are '
            f'{", ".join(robot.joints)}',
            extra=unknown,
        )
    faults = []
    if file.robot != robot.name:
        faults.append(f'robot: the policy was made for "{file.robot}", this robot is "{robot.name}"')
    index = np.array([robot.joints.index(joint) for joint in contract.joints])
    for i, name, value in zip(index, contract.joints, contract.default_position, strict=True):
        if not limits.lower[i] <= value <= limits.upper[i]:
            extent = f'[{limits.lower[i]:g}, {limits.upper[i]:g}]'
            faults.append(f"default_position.{name}: {value:g} rad is outside the robot's range {extent}")
    if faults:
        raise DocumentError(contract.source, faults)
    goal, kp, kd = robot.pose('stand').copy(), robot.pose_move.stiffness.copy(), robot.pose_move.damping.copy()
    goal[index], kp[index], kd[index] = contract.default_position, contract.gains.stiffness, contract.gains.damping
    return Adopted(contract, index, goal, Gains(kp, kd))
