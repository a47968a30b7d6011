# SPDX-License-Identifier: Apache-2.0
"""The anchor of a motion tracker: the body whose pose is compared with the reference's."""

from __future__ import annotations

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.rotations import heading_xyzw, inverse_xyzw, multiply_xyzw, world_to_base


class AnchorChain:
    """Orientation of a body behind a chain of hinge joints.

    The axes of the joints are taken from the contract, the fixed parts of the joints as identity: with all of them at 0 the
    body is aligned with the base. So it is in the waists of the robots that such policies run on.
    """

    def __init__(self, contract: Contract) -> None:
        motion = contract.file.motion
        chain = motion.anchor.chain if motion is not None and motion.anchor is not None else []
        self._joints = [contract.joints.index(joint) for joint, _ in chain]
        self._axes = [('xyz'.index(axis[-1]), -1.0 if axis.startswith('-') else 1.0) for _, axis in chain]

    def orientation_xyzw(self, base_quat_xyzw: np.ndarray, joint_pos: np.ndarray) -> np.ndarray:
        """Return the rotation from the body to the world, (..., 4).

        Args:
            base_quat_xyzw: (..., 4) from the base to the world.
            joint_pos: (..., n) rad, policy joint order.
        """
        quat = base_quat_xyzw
        for joint, (axis, sign) in zip(self._joints, self._axes, strict=True):
            half = 0.5 * sign * joint_pos[..., joint]
            turn = np.zeros(quat.shape)
            turn[..., axis], turn[..., 3] = np.sin(half), np.cos(half)
            quat = multiply_xyzw(quat, turn)
        return quat


class Alignment:
    """Where robot and reference began, so that neither the robot's heading nor its place in the world matters.

    The heading of each at its first tick is taken away; the reference then begins above the point where the robot stands.
    """

    def __init__(self, batch: tuple[int, ...], aligned: bool) -> None:
        self._aligned, self._fresh, self._any_fresh = aligned, np.ones(batch, dtype=bool), aligned
        self._turn = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), (*batch, 4)).copy()
        self._ours, self._theirs = np.zeros((*batch, 3)), np.zeros((*batch, 3))

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Begin anew, for the robots in `mask` (batch-shaped bool) or for all."""
        self._fresh |= np.ones_like(self._fresh) if mask is None else mask
        self._any_fresh = self._aligned

    def begin(
        self, robot_quat: np.ndarray, motion_quat: np.ndarray, robot_pos: np.ndarray | None, motion_pos: np.ndarray | None
    ) -> None:
        """Take the present poses as the start of the robots that have none; quaternions (*batch, 4) xyzw, positions in m."""
        if not self._any_fresh:
            return
        fresh = self._fresh[..., None]
        turn = multiply_xyzw(heading_xyzw(robot_quat), inverse_xyzw(heading_xyzw(motion_quat)))
        self._turn = np.where(fresh, turn, self._turn)
        if robot_pos is not None and motion_pos is not None:
            flat = np.array((1.0, 1.0, 0.0))  # heights are compared as they are
            self._ours = np.where(fresh, robot_pos * flat, self._ours)
            self._theirs = np.where(fresh, motion_pos * flat, self._theirs)
        self._fresh, self._any_fresh = np.zeros_like(self._fresh), False

    def quat(self, motion_quat: np.ndarray) -> np.ndarray:
        """Return an orientation of the reference in the robot's world, (*batch, 4) xyzw."""
        return multiply_xyzw(self._turn, motion_quat) if self._aligned else motion_quat

    def pos(self, motion_pos: np.ndarray) -> np.ndarray:
        """Return a position of the reference in the robot's world, (*batch, 3) m."""
        if not self._aligned:
            return motion_pos
        return self._ours + world_to_base(inverse_xyzw(self._turn), motion_pos - self._theirs)
