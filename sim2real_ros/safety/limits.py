# SPDX-License-Identifier: Apache-2.0
"""Limits on the torque, in the order in which they act; each says which joints it altered.

1. rate: the torque changes by at most `torque_rate * dt` from the last one sent.
2. envelope: accelerating torque stays under the motor's torque-speed line, `stall (1 - v / v0)`.
3. barrier: near a position or velocity limit the torque towards it is capped by `kd (v_cap - v)`, where
   `v_cap = min(v_max, sqrt(2 a d))` and d is the distance to the limit less a margin: the speed from which the joint
   can still brake. Beyond the margin v_cap turns negative and drives the joint back.
4. effort: the hard limit of the joint, always last.

The rate comes before the barrier because a brake that is rate-limited comes too late: at a tenth of the Go2's rate the
swapped order overshoots by ten times as much. Both directions of a joint are computed at once: row 0 towards the upper
limit, row 1 towards the lower one with every sign turned.
"""

from __future__ import annotations

from enum import IntFlag

import numpy as np

from sim2real_ros.robot import Robot

RETURN_RATE = 4.0  # 1/s: speed back inside per rad beyond the margin


class Limit(IntFlag):
    """What altered a joint's torque."""

    NONE = 0
    RATE = 1
    ENVELOPE = 2
    BARRIER = 4
    EFFORT = 8


class TorqueLimiter:
    """Applies the limits to the torque of one robot or a batch; remembers the last torque for the rate.

    Attributes:
        torque: (*batch, n) N m, the last torque that left the limiter.
    """

    def __init__(self, robot: Robot, batch: tuple[int, ...] = ()) -> None:
        n = len(robot.joints)
        safety, limits = robot.safety, robot.limits
        ones = (1,) * len(batch)
        self._sign = np.array([1.0, -1.0]).reshape(2, *ones, 1)
        self._soft = np.stack((limits.upper, -limits.lower)).reshape(2, *ones, n) - safety.position_margin
        self._twice_brake = 2 * safety.brake_acceleration
        self._velocity = limits.velocity
        self._gain = robot.damping
        self._stall = safety.stall_torque
        self._droop = safety.stall_torque / safety.no_load_speed
        self._effort, self._negative_effort = limits.effort, -limits.effort
        self._rate = safety.torque_rate
        self.torque = np.zeros((*batch, n))

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Take the last torque as zero, of the robots in `mask` (batch-shaped bool) or of all."""
        self.torque = self.torque.copy()  # the array itself was handed out
        self.torque[... if mask is None else mask] = 0.0

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
        change = self._rate * dt
        rated = np.minimum(np.maximum(torque, self.torque - change), self.torque + change)
        speed = self._sign * joint_vel
        envelope = np.maximum(self._stall - self._droop * speed, 0.0)
        motored = np.maximum(np.minimum(rated, envelope[0]), -envelope[1])
        barrier = self._barrier(self._soft - self._sign * joint_pos, speed)
        shaped = np.maximum(np.minimum(motored, barrier[0]), -barrier[1])
        final = np.minimum(np.maximum(shaped, self._negative_effort), self._effort)
        self.torque = final
        if (final == torque).all():
            return final, np.zeros(final.shape, np.uint8)
        limited = (rated != torque) * np.uint8(Limit.RATE)
        limited |= (motored != rated) * np.uint8(Limit.ENVELOPE)
        limited |= (shaped != motored) * np.uint8(Limit.BARRIER)
        limited |= (final != shaped) * np.uint8(Limit.EFFORT)
        return final, limited

    def _barrier(self, distance: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Return the largest torque towards each limit, (2, *batch, n); negative where the joint must brake."""
        cap = np.sqrt(self._twice_brake * np.maximum(distance, 0.0))
        cap += RETURN_RATE * np.minimum(distance, 0.0)
        np.minimum(cap, self._velocity, out=cap)
        cap -= speed
        cap *= self._gain
        return cap
