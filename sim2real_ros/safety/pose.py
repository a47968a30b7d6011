# SPDX-License-Identifier: Apache-2.0
"""The move into the default pose: a quintic from where the joints are, with no step in torque at its start."""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.signals import JointTargets, RobotState

FULL_WAY = 1.0  # rad: a joint that moves this far or farther takes the whole duration
SHORTEST = 0.2  # of the duration


class PoseMove:
    """Position and velocity targets from the measured pose to a goal, (n,) in robot order."""

    def __init__(self, robot: Robot, state: RobotState, torque: np.ndarray, goal: np.ndarray) -> None:
        """Plan the move.

        Args:
            robot: gives gains, duration and joint ranges.
            state: where the joints are.
            torque: (n,) N m that acts now; the move starts at the position for which the PD law gives the same torque.
            goal: (n,) rad.
        """
        move = robot.pose_move
        same_torque = state.joint_pos + (torque + move.damping * state.joint_vel) / np.maximum(move.stiffness, 1e-6)
        self._from = np.clip(same_torque, robot.limits.lower, robot.limits.upper)
        self._goal = goal
        self._begin = state.stamp
        # a short way takes less time: a robot that stops walking must put its feet down, not hold them in the air
        way = float(np.abs(goal - state.joint_pos).max())
        self._duration = move.duration_s * min(1.0, max(SHORTEST, way / FULL_WAY))

    def done(self, stamp: float) -> bool:
        """Return whether the move is over."""
        return stamp - self._begin >= self._duration

    def targets(self, stamp: float) -> JointTargets:
        """Return the targets at a stamp: 10 s^3 - 15 s^4 + 6 s^5 of the way, and its derivative."""
        s = min(max((stamp - self._begin) / self._duration, 0.0), 1.0)
        way = self._goal - self._from
        share = s * s * s * (10 - 15 * s + 6 * s * s)
        rate = 30 * s * s * (1 - s) * (1 - s) / self._duration
        return JointTargets(stamp, self._from + share * way, rate * way, np.zeros_like(way))
