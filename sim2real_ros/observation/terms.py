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
from sim2real_ros.observation import body_terms, motion_terms
from sim2real_ros.observation.moment import Moment, given

__all__ = ['TERMS', 'Moment', 'Term', 'find_term', 'registered_terms']


@dataclass(frozen=True, slots=True)
class Term:
    """An observation term.

    Attributes:
        compute: from a moment to an array (..., width).
        width: how many numbers, given the contract.
        unit: of the numbers before the scale.
        frame: in which frame they are, or whose order they are in.
        needs: signals beside the joint states: `imu`, `odom`, `contacts`, `goal_pose`.
    """

    compute: Callable[[Moment], np.ndarray]
    width: Callable[[Contract], int]
    unit: str
    frame: str
    needs: tuple[str, ...] = ()


def pose_command(m: Moment) -> np.ndarray:
    """The goal, (..., 7) m and quaternion, in the frame and quaternion order of `commands.pose`."""
    return given(m.goal_pose, 'a goal', 'goal_pose')


def velocity_command_lin(m: Moment) -> np.ndarray:
    """Commanded x, y velocity, (..., 2) m/s in the base frame."""
    return m.velocity_command[..., :2]


def velocity_command_yaw(m: Moment) -> np.ndarray:
    """Commanded yaw rate, (..., 1) rad/s."""
    return m.velocity_command[..., 2:]


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


def last_action_filtered(m: Moment) -> np.ndarray:
    """The action of the tick before after its clip and filter, (..., m); zeros at the start."""
    return m.last_action_clipped if m.last_action_filtered is None else m.last_action_filtered


def phase(m: Moment) -> np.ndarray:
    """The gait clock as the contract's `phase` encodes it, (..., p) in [-1, 1]."""
    return m.phase


def phase_sin(m: Moment) -> np.ndarray:
    """The sines of the gait clock alone, (..., offsets)."""
    return m.phase[..., m.phase_columns['sin']]


def phase_cos(m: Moment) -> np.ndarray:
    """The cosines of the gait clock alone, (..., offsets)."""
    return m.phase[..., m.phase_columns['cos']]


def time(m: Moment) -> np.ndarray:
    """Time since the activation, (..., 1) s: ticks over the rate."""
    assert m.time is not None
    return m.time


def phase_width(contract: Contract) -> int:
    """How many numbers the contract's gait clock has."""
    clock = contract.file.phase
    return 0 if clock is None else len(clock.encoding) * len(clock.offsets)


def clocks(contract: Contract) -> int:
    """How many clocks the contract's `phase` has."""
    return 0 if contract.file.phase is None else len(contract.file.phase.offsets)


def _fixed(width: int) -> Callable[[Contract], int]:
    return lambda _: width


def _joints(contract: Contract) -> int:
    return len(contract.joints)


def _joints_twice(contract: Contract) -> int:
    return 2 * len(contract.joints)


def _actions(contract: Contract) -> int:
    return contract.action_width


def _feet(contract: Contract) -> int:
    return len(contract.file.contacts)


JOINTS = 'policy joints'  # `Term.frame` of what has a number per joint
ONE, TWO, THREE, FOUR = _fixed(1), _fixed(2), _fixed(3), _fixed(4)
TERMS: dict[str, Term] = {
    'base_ang_vel': Term(body_terms.base_ang_vel, THREE, 'rad/s', 'base', ('imu',)),
    'base_lin_vel': Term(body_terms.base_lin_vel, THREE, 'm/s', 'base', ('odom',)),
    'base_accelerometer': Term(body_terms.base_accelerometer, THREE, 'm/s^2', 'base', ('imu',)),
    'projected_gravity': Term(body_terms.projected_gravity, THREE, '1', 'base', ('imu',)),
    'base_rpy': Term(body_terms.base_rpy, THREE, 'rad', 'world', ('imu',)),
    'base_roll_pitch': Term(body_terms.base_roll_pitch, TWO, 'rad', 'world', ('imu',)),
    'base_quat_xyzw': Term(body_terms.base_quat_xyzw, FOUR, '1', 'world', ('imu',)),
    'base_quat_wxyz': Term(body_terms.base_quat_wxyz, FOUR, '1', 'world', ('imu',)),
    'base_height': Term(body_terms.base_height, ONE, 'm', 'world', ('odom',)),
    'foot_contacts': Term(body_terms.foot_contacts, _feet, '1', 'contacts', ('contacts',)),
    'velocity_command': Term(velocity_command, THREE, 'm/s, rad/s', 'base'),
    'velocity_command_lin': Term(velocity_command_lin, TWO, 'm/s', 'base'),
    'velocity_command_yaw': Term(velocity_command_yaw, ONE, 'rad/s', 'base'),
    'pose_command': Term(pose_command, _fixed(7), 'm, 1', 'commands.pose', ('goal_pose',)),
    'joint_pos': Term(joint_pos, _joints, 'rad', JOINTS),
    'joint_pos_rel': Term(joint_pos_rel, _joints, 'rad', JOINTS),
    'joint_vel': Term(joint_vel, _joints, 'rad/s', JOINTS),
    'last_action': Term(last_action_raw, _actions, '1', 'outputs'),
    'phase': Term(phase, phase_width, '1', 'clock'),
    'phase_sin': Term(phase_sin, clocks, '1', 'clock'),
    'phase_cos': Term(phase_cos, clocks, '1', 'clock'),
    'time': Term(time, ONE, 's', 'clock'),
    'motion_joint_pos': Term(motion_terms.motion_joint_pos, _joints, 'rad', JOINTS),
    'motion_joint_vel': Term(motion_terms.motion_joint_vel, _joints, 'rad/s', JOINTS),
    'motion_command': Term(motion_terms.motion_command, _joints_twice, 'rad, rad/s', 'policy joints, twice'),
    'motion_anchor_pos_b': Term(motion_terms.motion_anchor_pos_b, THREE, 'm', 'anchor', ('imu', 'odom')),
    'motion_anchor_ori_b': Term(motion_terms.motion_anchor_ori_b, _fixed(6), '1', 'anchor', ('imu',)),
}
LAST_ACTIONS = {'raw': last_action_raw, 'clipped': last_action_clipped, 'filtered': last_action_filtered}


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
