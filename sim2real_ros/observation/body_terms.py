# SPDX-License-Identifier: Apache-2.0
"""Observation terms of the base and the feet: what IMU, odometry and contact sensors say."""

from __future__ import annotations

import numpy as np

from sim2real_ros.observation.moment import Moment, given
from sim2real_ros.rotations import gravity_in_base, rpy, wxyz_from_xyzw


def base_ang_vel(m: Moment) -> np.ndarray:
    """Angular velocity of the base, (..., 3) rad/s in the base frame: the gyroscope."""
    return given(m.state.base_ang_vel, 'the angular velocity of the base', 'imu')


def base_lin_vel(m: Moment) -> np.ndarray:
    """Linear velocity of the base, (..., 3) m/s in the base frame; needs odometry."""
    return given(m.state.base_lin_vel, 'the linear velocity of the base', 'odom')


def projected_gravity(m: Moment) -> np.ndarray:
    """Unit down vector in the base frame, (..., 3); (0, 0, -1) when level."""
    return gravity_in_base(m.state.base_quat_xyzw)


def base_accelerometer(m: Moment) -> np.ndarray:
    """Specific force in the base frame, (..., 3) m/s^2; (0, 0, 9.81) at rest: the accelerometer."""
    return given(m.state.base_lin_acc, 'the accelerometer', 'imu')


def base_rpy(m: Moment) -> np.ndarray:
    """Roll, pitch, yaw of the base, (..., 3) rad: Rz(yaw) Ry(pitch) Rx(roll); where yaw is 0 is the estimator's choice."""
    return rpy(m.state.base_quat_xyzw)


def base_roll_pitch(m: Moment) -> np.ndarray:
    """Roll and pitch of the base, (..., 2) rad."""
    return rpy(m.state.base_quat_xyzw)[..., :2]


def base_quat_xyzw(m: Moment) -> np.ndarray:
    """Rotation from the base frame to the world, (..., 4) in the order of ROS."""
    return m.state.base_quat_xyzw


def base_quat_wxyz(m: Moment) -> np.ndarray:
    """Rotation from the base frame to the world, (..., 4) in the order of MuJoCo and Isaac Lab before 3.0."""
    return wxyz_from_xyzw(m.state.base_quat_xyzw)


def base_height(m: Moment) -> np.ndarray:
    """Height of the base's origin, (..., 1) m in the world; needs odometry."""
    return given(m.state.base_pos, 'the position of the base', 'odom')[..., 2:]


def foot_contacts(m: Moment) -> np.ndarray:
    """1 for each foot that touches, else 0, (..., k) in the order of the contract's `contacts`."""
    return given(m.state.foot_contacts, 'contacts of the feet', 'contacts')
