# SPDX-License-Identifier: Apache-2.0
"""Observation terms of motion trackers: the reference at this tick, see `observation/motion.py`."""

from __future__ import annotations

import numpy as np

from sim2real_ros.observation.moment import Moment, Reference, given
from sim2real_ros.rotations import columns_of_matrix

MOTION = 'the reference motion'


def _motion(m: Moment) -> Reference:
    assert m.motion is not None  # the contract has a motion, or `resolve` would have refused the term
    return m.motion


def motion_joint_pos(m: Moment) -> np.ndarray:
    """Joint positions of the reference, (..., n) rad."""
    return given(_motion(m).joint_pos, 'joint positions', MOTION)


def motion_joint_vel(m: Moment) -> np.ndarray:
    """Joint velocities of the reference, (..., n) rad/s."""
    return given(_motion(m).joint_vel, 'joint velocities', MOTION)


def motion_command(m: Moment) -> np.ndarray:
    """Joint positions, then joint velocities of the reference, (..., 2 n) rad, rad/s."""
    return np.concatenate((motion_joint_pos(m), motion_joint_vel(m)), axis=-1)


def motion_anchor_pos_b(m: Moment) -> np.ndarray:
    """Where the reference's anchor is, seen from the robot's, (..., 3) m."""
    return given(_motion(m).anchor_pos_b, 'the position of the base', 'odom')


def motion_anchor_ori_b(m: Moment) -> np.ndarray:
    """How the reference's anchor is turned, seen from the robot's, (..., 6): r00, r01, r10, r11, r20, r21."""
    return columns_of_matrix(given(_motion(m).anchor_quat_b_xyzw, 'an anchor orientation', MOTION))
