# SPDX-License-Identifier: Apache-2.0
"""`PoseWatch`: whether the joints follow the move into the pose.

A controller that is not active takes the torques and carries none of them out. The move would go on without the robot, and
when the controller is activated, throw it at a target that is far away by then.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.findings import Fault

LASTING_S = 0.25


class PoseWatch:
    """Watches the joints of one robot in the mode `pose`."""

    def __init__(self, robot: Robot) -> None:
        self._joints, self._limit = robot.joints, robot.monitors.pose_lag_rad
        self._behind_s = 0.0

    def reset(self) -> None:
        """Begin a move."""
        self._behind_s = 0.0

    def see(self, target: np.ndarray, joint_pos: np.ndarray, dt: float) -> Fault | None:
        """Hold the joints against their targets, (n,) rad in robot order; `dt` s since the state before."""
        behind = np.abs(target - joint_pos)
        worst = int(behind.argmax())
        self._behind_s = self._behind_s + dt if behind[worst] > self._limit else 0.0
        if self._behind_s <= LASTING_S:
            return None
        where = f'{self._joints[worst]} is {behind[worst]:.2f} rad behind the move into the pose'
        return Fault('pose_not_followed', f'{where}: is its controller active, and is it free to move?')
