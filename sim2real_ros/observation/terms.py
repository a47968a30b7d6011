# SPDX-License-Identifier: Apache-2.0
"""Observation terms: what a network can see, one plain function each.

A term returns numbers in SI units, base frame, policy joint order. Scale, clip and history are the builder's business.
Another package adds terms through the entry point group `sim2real_ros.observation_terms`: the entry's name is the
term's name and its value is a `Term`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import NotFoundError
from sim2real_ros.rotations import gravity_in_base
from sim2real_ros.signals import RobotState


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that is known at a policy tick. Arrays are (..., k); joints in policy order."""

    state: RobotState
    default_joint_pos: np.ndarray  # (n,) rad
    velocity_command: np.ndarray  # (..., 3) m/s, m/s, rad/s, base frame
    last_action_raw: np.ndarray  # (..., m) as the network gave it
    last_action_clipped: np.ndarray  # (..., m) after the action's clip
    phase: np.ndarray  # (..., p) encoded gait clock


@dataclass(frozen=True, slots=True)
class Term:
    """An observation term.

    Attributes:
        compute: from a moment to an array (..., width).
        width: how many numbers, given the contract.
        unit: of the numbers before the scale.
        frame: in which frame they are, or whose order they are in.
        needs: sensors beside the joint states: `imu`, `odom`.
    """

    compute: Callable[[Moment], np.ndarray]
    width: Callable[[Contract], int]
    unit: str
    frame: str
    needs: tuple[str, ...] = ()


def base_ang_vel(m: Moment) -> np.ndarray:
    """Angular velocity of the base, (..., 3) rad/s in the base frame: the gyroscope."""
    assert m.state.base_ang_vel is not None
    return m.state.base_ang_vel


def base_lin_vel(m: Moment) -> np.ndarray:
    """Linear velocity of the base, (..., 3) m/s in the base frame; needs odometry."""
    assert m.state.base_lin_vel is not None
    return m.state.base_lin_vel


def projected_gravity(m: Moment) -> np.ndarray:
    """Unit down vector in the base frame, (..., 3); (0, 0, -1) when level."""
    return gravity_in_base(m.state.base_quat_xyzw)


def velocity_command(m: Moment) -> np.ndarray:
    """Commanded x, y velocity and yaw rate, (..., 3) m/s, m/s, rad/s in the base frame."""
    return m.velocity_command


def joint_pos(m: Moment) -> np.ndarray:
    """Joint positions, (..., n) rad."""
    return m.state.joint_pos


def joint_pos_rel(m: Moment) -> np.ndarray:
    """Joint positions less the default position, (..., n) rad."""
    return m.state.joint_pos - m.default_joint_pos


def joint_vel(m: Moment) -> np.ndarray:
    """Joint velocities, (..., n) rad/s."""
    return m.state.joint_vel


def last_action_raw(m: Moment) -> np.ndarray:
    """The action of the tick before as the network gave it, (..., m); zeros at the start."""
    return m.last_action_raw


def last_action_clipped(m: Moment) -> np.ndarray:
    """The action of the tick before after its clip, (..., m); zeros at the start."""
    return m.last_action_clipped


def phase(m: Moment) -> np.ndarray:
    """The gait clock as the contract's `phase` encodes it, (..., p) in [-1, 1]."""
    return m.phase


def phase_width(contract: Contract) -> int:
    """How many numbers the contract's gait clock has."""
    clock = contract.file.phase
    return 0 if clock is None else len(clock.encoding) * len(clock.offsets)


def _three(_: Contract) -> int:
    return 3


def _joints(contract: Contract) -> int:
    return len(contract.joints)


def _actions(contract: Contract) -> int:
    return contract.action_width


TERMS: dict[str, Term] = {
    'base_ang_vel': Term(base_ang_vel, _three, 'rad/s', 'base', ('imu',)),
    'base_lin_vel': Term(base_lin_vel, _three, 'm/s', 'base', ('odom',)),
    'projected_gravity': Term(projected_gravity, _three, '1', 'base', ('imu',)),
    'velocity_command': Term(velocity_command, _three, 'm/s, rad/s', 'base'),
    'joint_pos': Term(joint_pos, _joints, 'rad', 'policy joints'),
    'joint_pos_rel': Term(joint_pos_rel, _joints, 'rad', 'policy joints'),
    'joint_vel': Term(joint_vel, _joints, 'rad/s', 'policy joints'),
    'last_action': Term(last_action_raw, _actions, '1', 'outputs'),
    'phase': Term(phase, phase_width, '1', 'clock'),
}


@cache
def registered_terms() -> dict[str, Term]:
    """Return the terms of this package and those that other installed packages add."""
    return TERMS | {entry.name: entry.load() for entry in entry_points(group='sim2real_ros.observation_terms')}


def find_term(name: str) -> Term:
    """Return a term by name.

    Raises:
        NotFoundError: there is none; the message lists the names.
    """
    terms = registered_terms()
    if name not in terms:
        raise NotFoundError(f'observation term "{name}" does not exist; terms are {", ".join(sorted(terms))}')
    return terms[name]
