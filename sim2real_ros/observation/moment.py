# SPDX-License-Identifier: Apache-2.0
"""`Moment`: everything that is known at a policy tick, and what observation terms may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sim2real_ros.errors import SignalError
from sim2real_ros.signals import RobotState

TOPICS = {  # signals that terms need beside the joint states: where they come from, unless they are remapped
    'imu': 'imu/data',
    'odom': 'odom',
    'contacts': 'foot_contacts',
    'goal_pose': 'goal_pose',
}


@dataclass(frozen=True, slots=True)
class Reference:
    """What a motion tracker should follow at a tick."""

    joint_pos: np.ndarray | None  # (..., n) rad
    joint_vel: np.ndarray | None  # (..., n) rad/s
    anchor_pos_b: np.ndarray | None  # (..., 3) m, the reference's anchor seen from the robot's
    anchor_quat_b_xyzw: np.ndarray | None  # (..., 4) its orientation seen from there


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that is known at a policy tick. Arrays are (..., k); joints in policy order."""

    state: RobotState
    default_joint_pos: np.ndarray  # (n,) rad
    velocity_command: np.ndarray  # (..., 3) m/s, m/s, rad/s, base frame
    last_action_raw: np.ndarray  # (..., m) as the network gave it
    last_action_clipped: np.ndarray  # (..., m) after the action's clip
    phase: np.ndarray  # (..., p) encoded gait clock
    last_action_filtered: np.ndarray | None = None  # (..., m) after clip and filter
    phase_columns: Mapping[str, slice] = field(default_factory=dict)  # where `sin` and `cos` lie in `phase`
    goal_pose: np.ndarray | None = None  # (..., 7) m and quaternion, in the frame and order of commands.pose
    time: np.ndarray | None = None  # (..., 1) s since the activation
    motion: Reference | None = None


def given(value: np.ndarray | None, what: str, signal: str) -> np.ndarray:
    """Return a value that a term needs.

    Raises:
        SignalError: nobody gave it.
    """
    if value is None:
        raise SignalError(f'the observation needs {what} ({TOPICS.get(signal, signal)}), and the state has none')
    return value
