# SPDX-License-Identifier: Apache-2.0
"""`Reference`: what each mode asks of the joints, and the ways from one to the next without a step in torque."""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.action.pd import blend
from sim2real_ros.robot import Robot
from sim2real_ros.safety.modes import Mode
from sim2real_ros.safety.pose import PoseMove
from sim2real_ros.signals import Gains, Impedance, JointTargets, RobotState

RAMP_S = 0.06  # the torque of before dies away while the damping grows


class Reference:
    """The impedance of the current mode; arrays (n,) in robot order.

    Attributes:
        goal: rad, the pose that `pose` moves to.
        blending: whether the last impedance was a hand-over between two modes.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._zero = np.zeros(len(robot.joints))
        self._damping = self._damped(robot.damping, self._zero)
        self._hold = Gains(robot.pose_move.stiffness, robot.pose_move.damping)
        self._blend_s = robot.safety.blend_s
        self.goal = robot.pose('stand')
        self._move: PoseMove | None = None
        self._since = -math.inf  # stamp at which the mode was entered
        self._left = self._zero  # torque that acted then
        self._last = self._damping  # what was asked for last
        self._before: Impedance | None = None  # what the policy before asked for last
        self._swapped = -math.inf  # stamp at which the next policy took over
        self.blending = False

    def enter(self, mode: Mode, state: RobotState, torque: np.ndarray, *, abrupt: bool = False) -> None:
        """Begin a mode.

        Args:
            mode: the new one.
            state: the last one.
            torque: (n,) N m that acts now.
            abrupt: do not let that torque die away, it may not be trusted.
        """
        self._since, self._left = state.stamp, torque
        if abrupt:
            self._since = -math.inf
        if mode is Mode.POSE:
            self._move = PoseMove(self._robot, state, torque, self.goal)

    def hand_over(self, stamp: float) -> None:
        """Begin to follow another policy: what was asked for last blends into what it asks for, gains and all."""
        self._before, self._swapped = self._last, stamp

    def arrived(self, stamp: float) -> bool:
        """Return whether the move into the pose is over."""
        return self._move is not None and self._move.done(stamp)

    def impedance(self, mode: Mode, stamp: float, followed: Impedance | None) -> Impedance:
        """Return what a mode asks of the joints.

        Args:
            mode: not `off`.
            stamp: s, of the state to answer.
            followed: what the policy asks, None without a policy.
        """
        self._last = self._asked(mode, stamp, followed)
        return self._last

    def _asked(self, mode: Mode, stamp: float, followed: Impedance | None) -> Impedance:
        since = stamp - self._since
        self.blending = False
        if mode in (Mode.DAMPING, Mode.FAULT) or self._move is None:
            if not 0 <= since < RAMP_S:
                return self._damping
            self.blending = True
            share = since / RAMP_S
            return self._damped(share * self._robot.damping, (1 - share) * self._left)
        if mode is Mode.ACTIVE and followed is not None:
            if since < self._blend_s:
                return self._blended(Impedance(self._move.targets(stamp), self._hold), followed, since / self._blend_s)
            if self._before is not None and stamp - self._swapped < self._blend_s:
                return self._blended(self._before, followed, (stamp - self._swapped) / self._blend_s)
            self._before = None
            return followed
        return Impedance(self._move.targets(stamp), self._hold)

    def _blended(self, old: Impedance, new: Impedance, s: float) -> Impedance:
        self.blending = True
        s = max(s, 0.0)
        return blend(old, new, s * s * (3 - 2 * s))

    def damping(self) -> Impedance:
        """Return pure damping."""
        return self._damping

    def _damped(self, damping: np.ndarray, effort: np.ndarray) -> Impedance:
        return Impedance(JointTargets(0.0, self._zero, self._zero, effort), Gains(self._zero, damping))
