# SPDX-License-Identifier: Apache-2.0
"""`Commands`: what the operator wants of the policy, a velocity from `cmd_vel` and a goal from `goal_pose`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from rclpy.node import Node

from sim2real_ros.contract.contract import Contract
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import goal_from, velocity_from
from sim2real_ros.ros.loop import ControlLoop

TWISTS = {'twist': Twist, 'twist_stamped': TwistStamped}


class Commands:
    """Keeps the newest of each; they come in the loop's thread.

    Attributes:
        goal: (7,) m and quaternion x, y, z, w; None before there is one.
    """

    def __init__(self, node: Node, loop: ControlLoop, twist: type) -> None:
        """Add `cmd_vel`, of the type `twist`, to a loop of a node."""
        self._loop, self._log = loop, node.get_logger()
        self._velocity, self._velocity_stamp = np.zeros(3), -np.inf
        self._takes_goals = False
        self._stamp = 0.0
        self.goal: np.ndarray | None = None
        loop.add(twist, 'cmd_vel', self._on_velocity, qos.COMMAND, wakes=lambda: False)

    def listen(self, signals: Collection[str]) -> None:
        """Take `goal_pose` from now on, where it is among the signals that a policy needs."""
        if 'goal_pose' in signals and not self._takes_goals:
            self._loop.add(PoseStamped, 'goal_pose', self._on_goal, qos.COMMAND, wakes=lambda: False)
            self._takes_goals = True

    def pass_time(self, stamp: float) -> None:
        """Take the stamp of a joint state, s; a command grows as old as what has passed of them since it came."""
        self._stamp = stamp

    def velocity(self, contract: Contract) -> np.ndarray:
        """Return the velocity command (3,) m/s, m/s, rad/s; zero when it is too old for the policy of a contract."""
        asked = contract.file.commands.velocity
        timeout = asked.timeout_s if asked is not None else np.inf
        fresh = 0 <= self._stamp - self._velocity_stamp <= timeout  # a clock may go back
        return self._velocity if fresh else np.zeros(3)

    def _on_velocity(self, message: Any) -> None:
        velocity = velocity_from(message)
        if not np.isfinite(velocity).all():
            self._log.error('cmd_vel is not finite; ignored', throttle_duration_sec=1.0)
            return
        self._velocity, self._velocity_stamp = velocity, self._stamp

    def _on_goal(self, message: PoseStamped) -> None:
        goal = goal_from(message)
        if not np.isfinite(goal).all():
            self._log.error('goal_pose is not finite; ignored', throttle_duration_sec=1.0)
            return
        self.goal = goal
