# SPDX-License-Identifier: Apache-2.0
"""The few rotations that a policy needs, with frame and quaternion order in the name. Quaternions are of unit length."""

from __future__ import annotations

import numpy as np


def gravity_in_base(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the unit down vector in the base frame, (..., 3); (0, 0, -1) when level.

    Args:
        quat_xyzw: (..., 4) rotation from the base frame to the world.
    """
    if quat_xyzw.ndim == 1:  # one robot: the same arithmetic without numpy's price for single numbers
        x, y, z, w = quat_xyzw.tolist()
        return np.array((2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1))
    x, y, z, w = np.moveaxis(quat_xyzw, -1, 0)
    return np.stack((2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1), axis=-1)


def world_to_base(quat_xyzw: np.ndarray, vector_world: np.ndarray) -> np.ndarray:
    """Return a world vector in the base frame, (..., 3).

    Args:
        quat_xyzw: (..., 4) rotation from the base frame to the world.
        vector_world: (..., 3).
    """
    axis, w = quat_xyzw[..., :3], quat_xyzw[..., 3:]
    cross = 2 * np.cross(axis, vector_world)
    return vector_world - w * cross + np.cross(axis, cross)


def xyzw_from_wxyz(quat_wxyz: np.ndarray) -> np.ndarray:
    """Reorder a quaternion (..., 4) from MuJoCo's order to ROS order."""
    return quat_wxyz[..., [1, 2, 3, 0]]


def multiply_xyzw(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the product of two quaternions (..., 4): the rotation `right` first, then `left`."""
    a, b = left[..., :3], right[..., :3]
    p, q = left[..., 3:], right[..., 3:]
    vector = p * b + q * a + np.cross(a, b)
    scalar = p * q - np.einsum('...i,...i->...', a, b)[..., None]
    return np.concatenate((vector, scalar), axis=-1)


def tilt(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the angle in rad between the base's down axis and gravity, (...)."""
    x, y = quat_xyzw[..., 0], quat_xyzw[..., 1]
    return np.arccos(np.clip(1 - 2 * (x * x + y * y), -1.0, 1.0))


def rpy(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return roll, pitch and yaw in rad, (..., 3): the rotation is Rz(yaw) Ry(pitch) Rx(roll), as in URDF.

    Roll and yaw are in [-pi, pi], pitch in [-pi/2, pi/2].
    """
    x, y, z, w = np.moveaxis(quat_xyzw, -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.minimum(np.maximum(2 * (w * y - z * x), -1.0), 1.0))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.stack((roll, pitch, yaw), axis=-1)


def heading_xyzw(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the rotation about the world's z axis by the yaw of a rotation, (..., 4)."""
    half = 0.5 * rpy(quat_xyzw)[..., 2]
    zero = np.zeros_like(half)
    return np.stack((zero, zero, np.sin(half), np.cos(half)), axis=-1)


def inverse_xyzw(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the inverse rotation, (..., 4)."""
    return quat_xyzw * np.array((-1.0, -1.0, -1.0, 1.0))


def columns_of_matrix(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the first two columns of the rotation matrix row by row, (..., 6): r00, r01, r10, r11, r20, r21."""
    x, y, z, w = np.moveaxis(quat_xyzw, -1, 0)
    return np.stack(
        (
            1 - 2 * (y * y + z * z),
            2 * (x * y - w * z),
            2 * (x * y + w * z),
            1 - 2 * (x * x + z * z),
            2 * (x * z - w * y),
            2 * (y * z + w * x),
        ),
        axis=-1,
    )


def wxyz_from_xyzw(quat_xyzw: np.ndarray) -> np.ndarray:
    """Reorder a quaternion (..., 4) from ROS order to MuJoCo's."""
    return quat_xyzw[..., [3, 0, 1, 2]]
