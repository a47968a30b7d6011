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
