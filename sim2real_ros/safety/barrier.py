# SPDX-License-Identifier: Apache-2.0
"""Position and velocity limits as bounds on the acceleration of each joint, and the torques that obey them.

A joint at distance d from its soft limit may approach it no faster than `v_cap(d) = sqrt(2 a d + (a T)^2) - a T`, the speed
from which a brake of `a`, noticed a time T late, still stops it there. The bound on its acceleration is

    ub(q, v) = gamma (min(v_cap(d), v_max) - v),    d = q_max - margin - (q + v T_p),    T_p = T_d + 1 / gamma,

with T = dt + T_d and T_d the time from the stamp of a state to the torque that answers it. Looking 1 / gamma ahead takes the
place of the term `- v v_cap'(d)` of the usual barrier condition; since v_cap is concave it is never less strict towards the
limit. Beyond the margin v_cap turns into `gamma / 4 d`, negative, and drives the joint back. ub falls with v and rises with
d, so the bounds of all joints can hold at once. (After Del Prete, RA-L 2018; measured figures in docs/safety.md.)

Both directions are computed at once: row 0 towards the upper limit, row 1 towards the lower one with every sign turned.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.certificate import Certificate
from sim2real_ros.safety.dynamics import Dynamics

# gamma times period and delay, at most. With more, the loop oscillates; with less, what the barrier does not know (weight, a
# push of the neighbours, a mass that is wrong) bends the limits farther. Found by search, see docs/safety-adversary.md.
COUPLED_GAIN = 0.6  # with both together
PER_JOINT_GAIN = (0.2, 0.35)  # with the period, and with the delay
NARROW_GAIN = (0.6, 0.7)  # times smallest / largest inertia: more is possible where the two are close
LIGHT_GAIN = 2.0  # of a brake, with period and delay together, where the joint is lightest; with more it chatters
MOST_SAG = 0.25  # of a joint's range, that the margin grows by
LOAD_GAIN = 1.0  # of gamma: how fast the per-joint bounds find out what loads a joint; slower ones let it bounce farther
MOST_LOAD = 2.0  # times the most that gravity puts on the joint
MODEL_ERROR = 0.2  # share by which the mass matrix and the bias torque may be wrong
SPEED_LEFT = 0.85  # of the velocity limit, where delay takes from it


class AccelerationBounds:
    """ub(q, v) of each joint and direction, as ub / gamma.

    Attributes:
        gamma: (n,) 1/s.
        margin: (n,) rad, how far inside the hard limit the soft one lies.
    """

    def __init__(
        self, robot: Robot, brake: np.ndarray, gamma: np.ndarray, batch: tuple[int, ...] = (), sag: np.ndarray | float = 0.0
    ) -> None:
        """Prepare.

        Args:
            robot: gives limits, margin, rate and delay.
            brake: (n,) rad/s^2, deceleration that each joint can reach.
            gamma: (n,) 1/s.
            batch: shape of the batch.
            sag: (n,) rad, how far a joint gives way under what the bounds do not know.
        """
        self.gamma = gamma
        dt, delay = 1.0 / robot.sensors.rate_hz, robot.safety.command_delay_s
        shape = (2, *batch, len(robot.joints))

        def full(values: np.ndarray) -> np.ndarray:
            """Spread values over the batch: numpy takes twice as long where it has to broadcast."""
            return np.ascontiguousarray(np.broadcast_to(values, shape[1:]))

        lateness = brake * (dt + delay)
        # what is under way still pushes for the time of the delay
        self.margin = margin = robot.safety.position_margin + sag + brake * delay**2
        # everything is scaled so that the distance d appears as e = 2 a d + (a T)^2
        floor, back = lateness**2, gamma / 4 / (2 * brake)
        zero = lateness + back * floor  # what sqrt and min below leave where d = 0
        self._lead, self._scale = full(delay + 1.0 / gamma), full(2 * brake)
        self._at_upper = full(2 * brake * (robot.limits.upper - margin) + floor)
        self._at_lower = full(-2 * brake * (robot.limits.lower + margin) + floor)
        self._floor, self._back, self._zero = (np.stack((full(part),) * 2) for part in (floor, back, zero))
        # the same for the speed, which may rise for the time of the delay as well
        fastest = np.maximum(robot.limits.velocity - brake * delay, SPEED_LEFT * robot.limits.velocity)
        self._fastest = np.stack((full(fastest + zero),) * 2)
        self._ahead, self._e, self._room = np.empty(shape[1:]), np.empty(shape), np.empty(shape)

    def __call__(self, joint_pos: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
        """Return ub / gamma, the speed that is left in each direction, (2, *batch, n) rad/s; used again by the next call.

        Args:
            joint_pos: (*batch, n) rad.
            joint_vel: (*batch, n) rad/s.
        """
        ahead, e, room = self._ahead, self._e, self._room
        np.multiply(joint_vel, self._lead, out=ahead)
        np.add(ahead, joint_pos, out=ahead)
        np.multiply(ahead, self._scale, out=ahead)
        np.subtract(self._at_upper, ahead, out=e[0])
        np.add(self._at_lower, ahead, out=e[1])
        np.maximum(e, self._floor, out=room)
        np.sqrt(room, out=room)
        np.minimum(e, self._floor, out=e)
        np.multiply(e, self._back, out=e)
        np.add(room, e, out=room)
        np.minimum(room, self._fastest, out=room)
        np.subtract(room, self._zero, out=room)
        np.subtract(room[0], joint_vel, out=room[0])
        np.add(room[1], joint_vel, out=room[1])
        return room


class PerJointBarrier:
    """Each joint by itself: its inertia lies between two figures of the certificate.

    A bound that still lets the joint speed up counts with the smaller inertia, one that brakes it with the larger one, so
    that both err to the safe side. What other joints do to this one through the mechanism is not seen. A limb that is
    stretched out or folded, held or free can be fifty times as heavy for its joint as at other times: there the brake is
    made for less than the largest inertia, or it would throw the light limb to and fro, and the margin grows instead.

    Such a brake is a soft spring, and a heavy limb would sink into it for good. So its bounds find out what loads the joint
    (weight, payload, neighbours): while it comes nearer than a bound allows, and the brake is not winning, the torque that is
    allowed towards the limit falls on; it rises again as soon as there is room. The brake stays too weak to damp such a limb
    well: where the delay is long, one that is let go swings at its bound before it rests, or goes on swinging.

    Attributes:
        margin: (n,) rad, how far inside the hard limit the soft one lies.
    """

    def __init__(self, robot: Robot, certificate: Certificate, batch: tuple[int, ...] = ()) -> None:
        narrow = np.nan_to_num(certificate.inertia_low / certificate.inertia_high)
        most = [np.maximum(wide, near * narrow) for wide, near in zip(PER_JOINT_GAIN, NARROW_GAIN, strict=True)]
        period, delay = 1.0 / robot.sensors.rate_hz, robot.safety.command_delay_s
        gamma = np.minimum(most[0] / period, most[1] / delay) if delay > 0 else most[0] / period
        light, unknown = certificate.inertia_low, np.isnan(certificate.inertia_low)
        heavy = np.minimum(certificate.inertia_high, LIGHT_GAIN / (gamma * (period + delay)) * light)
        sag = np.minimum(_sag(certificate.weight, heavy, gamma), MOST_SAG * (robot.limits.upper - robot.limits.lower))
        self._bounds = AccelerationBounds(robot, certificate.brake, gamma, batch, sag)
        shape = (2, *batch, len(robot.joints))
        # where no inertia is known, m gamma is the damping gain, known to be stable
        inertia = (np.where(unknown, robot.damping / gamma, of) for of in (light, heavy))
        self._push, self._brake = (np.ascontiguousarray(np.broadcast_to(gamma * m, shape)) for m in inertia)
        self._half, self._low, self._high = np.full(shape[1:], 0.5), np.empty(shape), np.empty(shape)
        # only where the brake is made for less than the joint may weigh: elsewhere the margin has room for the weight
        most_load = np.where(heavy < certificate.inertia_high, MOST_LOAD * np.nan_to_num(certificate.weight), 0.0)
        self._most_load = np.ascontiguousarray(np.broadcast_to(most_load, shape))
        self._load, self._room = np.zeros(shape), np.full(shape, np.inf)  # N m; that of the call before
        self._load_rate = -LOAD_GAIN * gamma * period * self._brake
        self._loaded = bool(most_load.any())
        self.margin = self._bounds.margin

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget what loads the joints, of the robots in `mask` (batch-shaped bool) or of all."""
        which = ... if mask is None else mask
        self._load[:, which], self._room[:, which] = 0.0, np.inf

    def apply(self, torque: np.ndarray, joint_pos: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
        """Return the torque within the bounds, (*batch, n) N m; finite input only, once per period."""
        room, low, high = self._bounds(joint_pos, joint_vel), self._low, self._high
        np.multiply(room, self._push, out=low)
        np.multiply(room, self._brake, out=high)
        np.minimum(low, high, out=low)
        if self._loaded:
            low -= self._find_load(room)
        upper, lower = low[0], np.negative(low[1], out=low[1])
        # where the two contradict each other (far too fast between close limits, a load) the middle of both is taken
        middle = np.add(upper, lower, out=high[0])
        np.multiply(middle, self._half, out=middle)
        shaped = np.minimum(torque, np.maximum(upper, middle, out=upper))
        return np.maximum(shaped, np.minimum(lower, middle, out=lower), out=shaped)

    def _find_load(self, room: np.ndarray) -> np.ndarray:
        """Return what loads each joint towards either limit, (2, *batch, n) N m, at least 0."""
        winning = room > self._room
        self._room[:] = room
        self._load += self._load_rate * np.where(winning, np.maximum(room, 0.0), room)
        return np.minimum(np.maximum(self._load, 0.0, out=self._load), self._most_load, out=self._load)


class CoupledBarrier:
    """All joints together, through mass matrix and bias torque: the torque of a joint also answers for its neighbours.

    Accelerations within the bounds leave the torque as it is, bit for bit. Otherwise the joints that violate a bound are
    held at it and only their torques change; where that takes more torque than there is, all joints brake towards the
    bounds with one common factor, because limiting each torque by itself would turn some of them around.

    Attributes:
        margin: (n,) rad, how far inside the hard limit the soft one lies.
    """

    def __init__(self, robot: Robot, certificate: Certificate, dynamics: Dynamics) -> None:
        late = robot.safety.command_delay_s
        gamma = np.full(len(robot.joints), COUPLED_GAIN / (1.0 / robot.sensors.rate_hz + late))
        sag = _sag(MODEL_ERROR * certificate.weight, certificate.inertia_high, gamma)
        self._bounds = AccelerationBounds(robot, certificate.brake, gamma, sag=sag)
        self._dynamics, self._effort, self._reach = dynamics, robot.limits.effort, certificate.brake
        self.margin = self._bounds.margin

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Do nothing: it remembers nothing."""

    def apply(self, torque: np.ndarray, joint_pos: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
        """Return the torque within the bounds, (n,) N m; finite input only."""
        room = self._bounds(joint_pos, joint_vel)
        upper, lower = self._bounds.gamma * room[0], -self._bounds.gamma * room[1]
        if (crossed := lower > upper).any():
            middle = 0.5 * (lower + upper)
            upper, lower = np.where(crossed, middle, upper), np.where(crossed, middle, lower)
        mass, bias = self._dynamics(joint_pos, joint_vel)
        acceleration = np.linalg.solve(mass, torque - bias)
        held = (acceleration > upper) | (acceleration < lower)
        if not held.any():
            return torque
        acceleration = self._hold(held, acceleration, mass, torque - bias, lower, upper)
        shaped = np.where(held, mass @ acceleration + bias, torque)
        if (np.abs(shaped) <= self._effort).all():
            return shaped
        return self._scale(np.clip(np.clip(acceleration, -self._reach, self._reach), lower, upper), mass, bias)

    @staticmethod
    def _hold(
        held: np.ndarray, acceleration: np.ndarray, mass: np.ndarray, free: np.ndarray, lower: np.ndarray, upper: np.ndarray
    ) -> np.ndarray:
        """Return accelerations with every violator at its bound; extends `held` by those that violate because of it."""
        while True:
            fixed = np.clip(acceleration, lower, upper)
            others = np.flatnonzero(~held)
            if not others.size:
                return fixed
            rest = free[others] - mass[np.ix_(others, held)] @ fixed[held]
            moved = np.where(held, fixed, 0.0)
            moved[others] = np.linalg.solve(mass[np.ix_(others, others)], rest)
            new = ~held & ((moved > upper) | (moved < lower))
            if not new.any():
                return moved
            held |= new
            acceleration = np.where(held, fixed, moved)
            acceleration[new] = moved[new]

    def _scale(self, acceleration: np.ndarray, mass: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Return `bias + s M a` with the largest s in [0, 1] that no joint's effort limit forbids."""
        inertial = mass @ acceleration
        with np.errstate(divide='ignore', invalid='ignore'):
            share = np.where(inertial > 0, (self._effort - bias) / inertial, (-self._effort - bias) / inertial)
        share = np.where(inertial == 0, np.inf, share)
        return bias + float(np.clip(share.min(), 0.0, 1.0)) * inertial


def _sag(unknown: np.ndarray, inertia: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Return how far joints sink in past their bounds, springs of m gamma^2 / 4, under unknown torques (n,) N m; (n,) rad."""
    return np.nan_to_num(unknown / (inertia * gamma**2 / 4))
