# SPDX-License-Identifier: Apache-2.0
"""Limits on the torque, in the order in which they act; each says which joints it altered.

1. rate: the torque changes by at most `torque_rate * dt` from the last one sent.
2. envelope: torque-speed line, power and heat of the motors.
3. barrier: position and velocity limits, see `barrier.py`.
4. effort: the hard limit of the joint, always last.

The order is a safety property. The barrier brakes at the last moment, so a rate limit behind it comes too late: with
1000 N m/s on a 7-joint arm that costs 7 degrees of overshoot, on a quadruped 24 (docs/safety.md; tested).
"""

from __future__ import annotations

from enum import IntFlag

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.barrier import CoupledBarrier, PerJointBarrier
from sim2real_ros.safety.certificate import Certificate, certify
from sim2real_ros.safety.dynamics import Dynamics
from sim2real_ros.safety.envelope import Heat, Power, TorqueSpeed


class Limit(IntFlag):
    """What altered a joint's torque."""

    NONE = 0
    RATE = 1
    TORQUE_SPEED = 2
    BARRIER = 4
    EFFORT = 8
    POWER = 16
    HEAT = 32
    BLEND = 64  # the hand-over between two modes, see reference.py


class TorqueLimiter:
    """Applies the limits to the torque of one robot or a batch; remembers the last torque for the rate.

    Attributes:
        torque: (*batch, n) N m, the last torque that left the limiter.
        stages: the torque after rate, envelope, barrier and effort limit in the last call.
    """

    def __init__(
        self,
        robot: Robot,
        batch: tuple[int, ...] = (),
        *,
        certificate: Certificate | None = None,
        dynamics: Dynamics | None = None,
    ) -> None:
        """Prepare the limits.

        Args:
            robot: gives all limits.
            batch: shape of the batch; () for one robot.
            certificate: what the joints can brake; made here when not given.
            dynamics: the barrier is coupled through it, of one robot only; without, each joint is limited by itself.

        Raises:
            ValueError: dynamics together with a batch.
        """
        if dynamics is not None and batch:
            raise ValueError('the coupled barrier limits one robot, not a batch')
        safety, limits = robot.safety, robot.limits
        certificate = certificate or certify(robot)
        self._rate, self._dt = safety.torque_rate, 1.0 / robot.sensors.rate_hz
        self._change = self._rate * self._dt
        self._torque_speed = TorqueSpeed(robot)
        self._power = Power(safety.power_limit_w) if safety.power_limit_w is not None else None
        self._heat = None
        if safety.continuous_torque is not None:
            self._heat = Heat(limits.effort, safety.continuous_torque, safety.peak_torque_s, batch)
        self._barrier: CoupledBarrier | PerJointBarrier
        if dynamics is not None:
            self._barrier = CoupledBarrier(robot, certificate, dynamics)
        else:
            self._barrier = PerJointBarrier(robot, certificate, batch)
        self._effort, self._negative_effort = limits.effort, -limits.effort
        self.torque = np.zeros((*batch, len(robot.joints)))
        self._unaltered = np.zeros(self.torque.shape, np.uint8)
        self._unaltered.flags.writeable = False
        self.stages = (self.torque,) * 4

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Start from no torque and no load, of the robots in `mask` (batch-shaped bool) or of all. Motors stay warm."""
        self.torque = self.torque.copy()  # the array itself was handed out
        self.torque[... if mask is None else mask] = 0.0
        self._barrier.reset(mask)

    def apply(
        self, torque: np.ndarray, joint_pos: np.ndarray, joint_vel: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Limit a finite torque.

        Args:
            torque: (*batch, n) N m, wanted.
            joint_pos: (*batch, n) rad.
            joint_vel: (*batch, n) rad/s.
            dt: s since the last call.

        Returns:
            The torque (*batch, n) N m and the bit mask of `Limit` (*batch, n).
        """
        change = self._change if self._dt <= dt < self._dt + 1e-6 else self._rate * dt
        rated = np.maximum(torque, self.torque - change)
        np.minimum(rated, self.torque + change, out=rated)
        motored = self._torque_speed.apply(rated, joint_vel)
        powered = motored if self._power is None else self._power.apply(motored, joint_vel)
        cooled = powered if self._heat is None else self._heat.apply(powered)
        shaped = self._barrier.apply(cooled, joint_pos, joint_vel)
        final = np.minimum(shaped, self._effort)
        np.maximum(final, self._negative_effort, out=final)
        if self._heat is not None:
            self._heat.note(final, dt)
        self.torque, self.stages = final, (rated, cooled, shaped, final)
        if final.tobytes() == torque.tobytes():
            return final, self._unaltered
        limited = (rated != torque) * np.uint8(Limit.RATE)
        limited |= (motored != rated) * np.uint8(Limit.TORQUE_SPEED)
        limited |= (powered != motored) * np.uint8(Limit.POWER)
        limited |= (cooled != powered) * np.uint8(Limit.HEAT)
        limited |= (shaped != cooled) * np.uint8(Limit.BARRIER)
        limited |= (final != shaped) * np.uint8(Limit.EFFORT)
        limited *= final != torque  # what one limit took and another gave back was not altered
        return final, limited
