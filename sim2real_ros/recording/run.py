# SPDX-License-Identifier: Apache-2.0
"""`Run`: what happened in a recorded run, as arrays, wherever it was recorded. Joints are in the robot's order.

Times are seconds of the robot's clock (the stamps), which is simulated time in a simulator. Rows of different parts are not
aligned with each other: every topic has times of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sim2real_ros.contract.contract import Contract


def longest_part(time: np.ndarray) -> np.ndarray:
    """Return the rows of the longest part in which time grows; a paused simulator repeats itself, a reset one begins again.

    Args:
        time: (k,) s.
    """
    bounds = [0, *(np.flatnonzero(np.diff(time) < 0) + 1), len(time)]
    begin, end = max(zip(bounds, bounds[1:], strict=False), key=lambda part: part[1] - part[0])
    return np.arange(begin, end)[np.diff(time[begin:end], prepend=-np.inf) > 0]


@dataclass(frozen=True, slots=True)
class Joints:
    """Joint states, k samples of n joints."""

    time: np.ndarray  # (k,) s, growing
    position: np.ndarray  # (k, n) rad
    velocity: np.ndarray  # (k, n) rad/s, NaN where it was not told
    effort: np.ndarray  # (k, n) N m as the driver reports it, NaN where it was not told


@dataclass(frozen=True, slots=True)
class Base:
    """Orientation, rate and acceleration of the base, from the IMU."""

    time: np.ndarray  # (k,) s
    quat_xyzw: np.ndarray  # (k, 4) base to world
    ang_vel: np.ndarray  # (k, 3) rad/s, base frame
    lin_acc: np.ndarray  # (k, 3) m/s^2, specific force, base frame


@dataclass(frozen=True, slots=True)
class Odometry:
    """Place and velocity of the base, where somebody estimates them."""

    time: np.ndarray  # (k,) s
    position: np.ndarray  # (k, 3) m
    lin_vel: np.ndarray  # (k, 3) m/s, base frame


@dataclass(frozen=True, slots=True)
class Torques:
    """What was sent to the motors."""

    time: np.ndarray  # (k,) s, stamp of the joint state that the command answers
    torque: np.ndarray  # (k, n) N m; for an impedance, what its drive begins with at that state
    age: np.ndarray  # (k,) s, from joint state to command, see `reading.py`; NaN where it is not known
    mode: np.ndarray  # (k,) text, mode of the safety node in which it was computed; '' where it is not known


@dataclass(frozen=True, slots=True)
class Velocity:
    """The velocity command that was in force."""

    time: np.ndarray  # (k,) s, from when on
    command: np.ndarray  # (k, 3) m/s, m/s, rad/s

    def at(self, time: np.ndarray) -> np.ndarray:
        """Return the command in force at some times (m,), (m, 3); zero before the first."""
        index = np.searchsorted(self.time, time, side='right') - 1
        return np.where(index[:, None] >= 0, self.command[np.maximum(index, 0)], 0.0)


@dataclass(frozen=True, slots=True)
class Targets:
    """Joint targets of the policy, in its own joint order."""

    time: np.ndarray  # (k,) s, stamp of the joint state that they answer
    position: np.ndarray  # (k, p) rad
    joints: tuple[str, ...]  # (p,)
    contract: np.ndarray  # (k,) text, id of the contract


@dataclass(frozen=True, slots=True)
class Ticks:
    """What the policy saw and did."""

    time: np.ndarray  # (k,) s, stamp of the joint state
    observation: np.ndarray  # (k, o) as the network got it, all inputs side by side
    action: np.ndarray  # (k, a) raw
    command: np.ndarray  # (k, 3) m/s, m/s, rad/s, as clamped
    first: np.ndarray  # (k,) bool, whether the policy began afresh


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run; a part is None where the recording does not have it."""

    source: str  # for people
    robot: str  # name, '' where nobody says
    joints: tuple[str, ...]  # (n,)
    states: Joints
    base: Base | None = None
    odometry: Odometry | None = None
    torques: Torques | None = None
    velocity: Velocity | None = None
    targets: Targets | None = None
    ticks: Ticks | None = None
    goal: tuple[np.ndarray, np.ndarray] | None = None  # (k,) s and (k, 7) m, quaternion xyzw
    contacts: tuple[np.ndarray, np.ndarray] | None = None  # (k,) s and (k, feet)
    modes: tuple[tuple[float, str], ...] = ()  # from when on in which mode of the safety node
    contracts: dict[str, Contract] = field(default_factory=dict)  # by id
    contract: Contract | None = None  # that was followed longest
    notes: tuple[str, ...] = ()  # what a reader should know

    def spans(self, mode: str) -> list[tuple[float, float]]:
        """Return from when to when a mode lasted, s."""
        ends = [*(begin for begin, _ in self.modes[1:]), float(self.states.time[-1])]
        return [(begin, end) for (begin, name), end in zip(self.modes, ends, strict=False) if name == mode and end > begin]
