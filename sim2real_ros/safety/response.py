# SPDX-License-Identifier: Apache-2.0
"""`Response`: from a mode and a state to a torque; with the watchdog's last resort the only maker of `SafeTorque`.

The impedance that the mode asks for becomes a torque, the limits act on it, the recorder keeps every stage.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import Limit, TorqueLimiter
from sim2real_ros.safety.modes import Mode
from sim2real_ros.safety.recorder import FlightRecorder
from sim2real_ros.safety.reference import Reference
from sim2real_ros.signals import Gains, Impedance, JointTargets, RobotState, SafeImpedance, SafeTorque

EXPIRY_PERIODS, EXPIRY_S = 3, 0.01  # of a command to a drive, the longer of both


class Response:
    """What is answered to a state; arrays (n,) in robot joint order.

    Attributes:
        reference: what each mode asks for.
        asked: the impedance of the last answer; None where no torque could be computed.
        slack: whether signs of sensors are not known to be right, so that even damping might drive.
    """

    def __init__(self, robot: Robot, limiter: TorqueLimiter, recorder: FlightRecorder | None = None) -> None:
        self._robot, self._limiter, self._recorder = robot, limiter, recorder
        self.reference = Reference(robot)
        self.asked: Impedance | None = None
        self._still, self._ones = np.zeros(len(robot.joints)), np.ones(len(robot.joints))
        self._wanted = self._still  # the torque of what was asked
        self._none = Impedance(JointTargets(0.0, self._still, self._still, self._still), Gains(self._still, self._still))
        self.slack = False

    @property
    def acting(self) -> np.ndarray:
        """The torque that acts now, N m."""
        return self._limiter.torque

    def begin(self, before: Mode, mode: Mode, state: RobotState | None, *, abrupt: bool = False) -> None:
        """Begin a mode.

        Args:
            before: the mode that is left.
            mode: the new one.
            state: the last one, None before the first.
            abrupt: do not let the torque of before die away, it may not be trusted.
        """
        if before is Mode.OFF:
            self._limiter.reset()
        self.slack = mode is Mode.WIGGLE or (mode is Mode.FAULT and before is Mode.WIGGLE)
        if state is not None:
            self.reference.enter(mode, state, self.acting, abrupt=abrupt)

    def torque(self, mode: Mode, state: RobotState, dt: float, followed: Impedance | None) -> SafeTorque | None:
        """Answer a state; None where the torque of the mode, or of its limits, is not finite.

        Args:
            mode: one with feedback, neither `off` nor `wiggle`.
            state: finite.
            dt: s since the state before.
            followed: what the policy asks for, None without one.
        """
        q, v = state.joint_pos, state.joint_vel
        asked = self.reference.impedance(mode, state.stamp, followed)
        wanted = pd_torque(asked.targets, asked.gains, q, v)
        if not math.isfinite(self._ones.dot(wanted)):  # the limits would remember it
            return None
        torque, limited = self._limiter.apply(wanted, q, v, dt)
        if not math.isfinite(self._ones.dot(torque)):
            return None
        if self.reference.blending:
            limited = limited | np.uint8(Limit.BLEND)
        self.asked, self._wanted = asked, wanted
        if self._recorder is not None:
            targets = None if mode in (Mode.DAMPING, Mode.FAULT) else asked.targets
            self._recorder.write(mode, state, targets, wanted, *self._limiter.stages, limited)
        return SafeTorque(state.stamp, torque, limited)

    def preview(self, state: RobotState, dt: float, followed: Impedance | None) -> np.ndarray | None:
        """Return the torque that would follow a policy, (n,) N m, without sending or recording it.

        The limits act as if it were sent. Without a policy, or where it asks for no finite torque, they forget what was
        before, and None is returned.
        """
        wanted = pd_torque(followed.targets, followed.gains, state.joint_pos, state.joint_vel) if followed is not None else None
        if wanted is None or not math.isfinite(self._ones.dot(wanted)):
            self._forget()
            return None
        return self._limiter.apply(wanted, state.joint_pos, state.joint_vel, dt)[0]

    def blind(self, mode: Mode, state: RobotState) -> SafeTorque:
        """Answer a state on which no limit can be computed: damp what can be damped."""
        if self.slack:
            return self.open_loop(mode, state)
        safe = last_resort(self._robot, state.stamp, state.joint_vel)
        self._forget()
        if self._recorder is not None:
            self._recorder.write(mode, state, None, None, None, None, None, safe.torque, 0)
        return safe

    def open_loop(self, mode: Mode, state: RobotState, torque: np.ndarray | None = None) -> SafeTorque:
        """Answer a state without any feedback, that of the limits included; no torque at all where none is given."""
        torque = self._still if torque is None else torque
        self._limiter.reset()
        asked = replace(self._none, targets=replace(self._none.targets, stamp=state.stamp, effort=torque))
        self.asked, self._wanted = asked, torque
        if self._recorder is not None:
            self._recorder.write(mode, state, asked.targets, torque, torque, torque, torque, torque, 0)
        return SafeTorque(state.stamp, torque, self._still.astype(np.uint8))

    def rest(self, stamp: float) -> SafeTorque:
        """Return no torque at all, for when sensors are silent."""
        self._forget()
        return SafeTorque(stamp, self._still, self._still.astype(np.uint8))

    def impedance(self, safe: SafeTorque) -> SafeImpedance:
        """Return the last torque as a command to drives with a PD law of their own.

        Targets and gains stay as they were asked for; the feed-forward takes up the difference between what the drive
        would come to at this state and the safe torque. Where no torque could be computed the drive damps by itself.
        """
        expires_s = max(EXPIRY_PERIODS / self._robot.sensors.rate_hz, EXPIRY_S)
        if self.asked is None:
            return SafeImpedance(safe.stamp, self._none if self.slack else self.reference.damping(), expires_s)
        t = self.asked.targets
        shifted = JointTargets(t.stamp, t.position, t.velocity, t.effort + (safe.torque - self._wanted))
        return SafeImpedance(safe.stamp, Impedance(shifted, self.asked.gains), expires_s)

    def _forget(self) -> None:
        self._limiter.reset()
        self.asked = None


def last_resort(robot: Robot, stamp: float, joint_vel: np.ndarray) -> SafeTorque:
    """Return the torque of a watchdog that knows nothing but the joint speeds: damping, or none where they are not finite.

    Args:
        robot: gives the damping gains and the effort limits.
        stamp: s, of the joint sample.
        joint_vel: (n,) rad/s, robot order.
    """
    torque = np.where(np.isfinite(joint_vel), -robot.damping * joint_vel, 0.0)
    torque = np.clip(torque, -robot.limits.effort, robot.limits.effort)
    return SafeTorque(stamp, torque, np.zeros(len(torque), np.uint8))


def last_resort_impedance(robot: Robot, stamp: float) -> SafeImpedance:
    """Return the command of a watchdog to drives with a PD law of their own: damping, whatever the joints do."""
    return SafeImpedance(stamp, Reference(robot).damping(), EXPIRY_S)
