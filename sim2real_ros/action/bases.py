# SPDX-License-Identifier: Apache-2.0
"""What relative actions count from: the last target, the measured position, the reference motion."""

from __future__ import annotations

import numpy as np

from sim2real_ros.contract.contract import Contract

LAST = 'last_target'


class Bases:
    """The base of every number of an action, (*batch, m) rad; 0 for those that are not relative.

    The last target of a robot that has had none is its measured position: an integrating action begins where the joint is.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...]) -> None:
        self._batch, self._width = batch, contract.action_width
        self._last, self._fresh = np.zeros((*batch, contract.action_width)), np.ones(batch, dtype=bool)
        self._parts: list[tuple[str, np.ndarray, slice]] = []  # base, joints, numbers of the action
        start = 0
        for action in contract.file.outputs.values():
            joints = contract.action_joints(action)
            if action.relative_to is not None:
                index = np.array([contract.joints.index(joint) for joint in joints])
                self._parts.append((action.relative_to, index, slice(start, start + len(joints))))
            start += len(joints)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget the last targets, of the robots in `mask` (batch-shaped bool) or of all."""
        self._fresh |= np.ones_like(self._fresh) if mask is None else mask

    def of(self, measured: np.ndarray | None, reference: np.ndarray | None) -> np.ndarray:
        """Return the bases (*batch, m).

        Args:
            measured: (*batch, n) rad, policy joint order.
            reference: (*batch, n) rad, of the motion; None where no action asks for it.
        """
        base = np.zeros((*self._batch, self._width))
        for kind, index, where in self._parts:
            source = reference if kind == 'motion' else measured
            assert source is not None  # `resolve` refuses a contract without the motion, and a state has positions
            values = source[..., index]
            base[..., where] = np.where(self._fresh[..., None], values, self._last[..., where]) if kind == LAST else values
        return base

    def keep(self, targets: np.ndarray) -> None:
        """Remember the targets (*batch, m) of this tick, clipped as they were given out."""
        self._last, self._fresh = targets.copy(), np.zeros_like(self._fresh)
