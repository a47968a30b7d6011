# SPDX-License-Identifier: Apache-2.0
"""`Wiggle`: one joint gets a little torque, first one way and then the other, and all joints tell how far they went.

It is there to find out whether each torque reaches the joint that it is meant for, and with which sign, before anything is
controlled: a feedback loop around a swapped or reversed joint drives it away from its target. So there is no feedback here
at all, not even damping. The torque rises slowly and ends when any joint has moved a little; every other torque is zero.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.signals import RobotState

SHARE = 0.15  # of the effort limit, the most that a joint gets; friction and a hanging limb take about a third of it
RISE_S = 1.0  # from no torque to the most
REACH = 0.05  # rad that a joint moves before the torque ends; encoders resolve 0.001
SETTLE_S = 0.5  # of no torque between the two ways, and at the end
WAYS = (1.0, -1.0)


class Wiggle:
    """One joint's turn; arrays (n,) in robot order.

    Attributes:
        joint: name of the joint that gets the torque.
        done: whether both ways are over.
        response: rad that each joint went, half the difference between the two ways, positive along the torque.
    """

    def __init__(self, robot: Robot, joint: str, state: RobotState) -> None:
        """Begin at a state of a robot at rest, joints in robot order."""
        self.joint, self.done = joint, False
        self.response = np.zeros(len(robot.joints))
        self._index = robot.joints.index(joint)
        self._most = SHARE * float(robot.limits.effort[self._index])
        self._way, self._pushes = 0, True
        self._begin, self._start = state.stamp, state.joint_pos.copy()

    def torque(self, state: RobotState) -> np.ndarray:
        """Return the torque that answers a state, N m."""
        torque = np.zeros(len(self.response))
        if self.done:
            return torque
        since, moved = state.stamp - self._begin, state.joint_pos - self._start
        if self._pushes and (since >= RISE_S or np.abs(moved).max() >= REACH):
            self.response += 0.5 * WAYS[self._way] * moved
            self._begin, self._pushes = state.stamp, False
        elif self._pushes:
            torque[self._index] = WAYS[self._way] * self._most * max(since, 0.0) / RISE_S
        elif since >= SETTLE_S:
            self._way, self._pushes = self._way + 1, True
            self._begin, self._start = state.stamp, state.joint_pos.copy()
            self.done = self._way == len(WAYS)
        return torque
