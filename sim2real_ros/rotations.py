# SPDX-License-Identifier: Apache-2.0
"""The few rotations that a policy needs, with frame and quaternion order in the name. Quaternions are of unit length."""

from __future__ import annotations

from typing import Any

import numpy as np


def _numbers(*vectors: np.ndarray) -> tuple[Any, ...]:
    """Return the components of vectors (..., k), one after another.

    Those of one robot come as plain numbers: the same arithmetic without numpy's price for single numbers.
    """
    if all(vector.ndim == 1 for vector in vectors):
        return tuple(number for vector in vectors for number in vector.tolist())
    return tuple(component for vector in vectors for component in np.moveaxis(vector, -1, 0))


def _vector(*components: Any) -> np.ndarray:
    """Return components as one array (..., k)."""
    if isinstance(components[0], np.ndarray):
        return np.stack(components, axis=-1)
    return np.array(components)


def gravity_in_base(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the unit down vector in the base frame, (..., 3); (0, 0, -1) when level.

    Args:
        quat_xyzw: (..., 4) rotation from the base frame to the world.
    """
    x, y, z, w = _numbers(quat_xyzw)
    return _vector(2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1)


def world_to_base(quat_xyzw: np.ndarray, vector_world: np.ndarray) -> np.ndarray:
    """Return a world vector in the base frame, (..., 3).

    Args:
        quat_xyzw: (..., 4) rotation from the base frame to the world.
        vector_world: (..., 3).
    """
    x, y, z, w, a, b, c = _numbers(quat_xyzw, vector_world)
    p, q, r = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return _vector(a - w * p + (y * r - z * q), b - w * q + (z * p - x * r), c - w * r + (x * q - y * p))


def xyzw_from_wxyz(quat_wxyz: np.ndarray) -> np.ndarray:
    """Reorder a quaternion (..., 4) from MuJoCo's order to ROS order."""
    return quat_wxyz[..., [1, 2, 3, 0]]


def wxyz_from_xyzw(quat_xyzw: np.ndarray) -> np.ndarray:
    """Reorder a quaternion (..., 4) from ROS order to MuJoCo's."""
    return quat_xyzw[..., [3, 0, 1, 2]]


def multiply_xyzw(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the product of two quaternions (..., 4): the rotation `right` first, then `left`."""
    x, y, z, w, a, b, c, d = _numbers(left, right)
    return _vector(
        w * a + d * x + (y * c - z * b),
        w * b + d * y + (z * a - x * c),
        w * c + d * z + (x * b - y * a),
        w * d - (x * a + y * b + z * c),
    )


def inverse_xyzw(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the inverse rotation, (..., 4)."""
    x, y, z, w = _numbers(quat_xyzw)
    return _vector(-x, -y, -z, w)


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


def columns_of_matrix(quat_xyzw: np.ndarray) -> np.ndarray:
    """Return the first two columns of the rotation matrix row by row, (..., 6): r00, r01, r10, r11, r20, r21."""
    x, y, z, w = _numbers(quat_xyzw)
    return _vector(
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
    )
