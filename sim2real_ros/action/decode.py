# SPDX-License-Identifier: Apache-2.0
"""Network outputs to joint targets: target = base + offset + scale * filter(clip(action)), then `target_clip`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_ros.action.bases import Bases
from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.tables import scale_of, target_limits
from sim2real_ros.errors import JointError
from sim2real_ros.joints import by_name
from sim2real_ros.signals import JointTargets

FIELD = {'joint_position': 0, 'joint_velocity': 1, 'joint_torque': 2}  # of JointTargets


class ActionDecoder:
    """Maps the actions of a contract, side by side in the order of `outputs`, to targets in policy joint order.

    A joint without a position action keeps its default position as the target; velocity and effort targets are zero.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        n, m = len(contract.joints), contract.action_width
        self._contract = contract
        self.outputs = tuple(contract.file.outputs)
        self.width = m
        self._tables(contract)
        self._bases = Bases(contract, batch) if any(a.relative_to for a in contract.file.outputs.values()) else None
        self._filtered = None if (self._share == 1).all() else np.zeros((*batch, m))
        self._rest = (contract.default_position, np.zeros(n), np.zeros(n))
        self._batch: tuple[int, ...] = ()
        self._idle = list(self._rest)  # the resting fields in the shape of the last batch
        whole = len(self._writes) == 1 and np.array_equal(self._writes[0][1], np.arange(n))
        self._single = self._writes[0][0] if whole else None

    def _tables(self, contract: Contract) -> None:
        m = self.width
        self._scale, self._offset, self._share = np.ones(m), np.zeros(m), np.ones(m)
        self._low, self._high = np.full(m, -np.inf), np.full(m, np.inf)
        least, most = np.full(m, -np.inf), np.full(m, np.inf)
        self._writes: list[tuple[int, np.ndarray, slice]] = []  # field of the targets, joints, numbers of the action
        start = 0
        for action in contract.file.outputs.values():
            joints = contract.action_joints(action)
            where = slice(start, start + len(joints))
            start = where.stop
            index = np.array([contract.joints.index(joint) for joint in joints])
            self._scale[where] = scale_of(action, joints)
            if isinstance(action.offset, dict):
                self._offset[where] = by_name(action.offset, joints, [], '')
            elif action.offset == 'default':
                self._offset[where] = contract.default_position[index]
            if action.clip is not None:
                self._low[where], self._high[where] = action.clip
            if action.filter is not None:
                self._share[where] = action.filter.share
            least[where], most[where] = target_limits(action, joints)
            self._writes.append((FIELD[action.type], index, where))
        self._limits = None if np.isinf(least).all() and np.isinf(most).all() else (least, most)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget filters and last targets, of the robots in `mask` (batch-shaped bool) or of all."""
        if self._filtered is not None:
            self._filtered[... if mask is None else mask] = 0.0
        if self._bases is not None:
            self._bases.reset(mask)

    def scale_of(self, joint: str) -> float:
        """Return the scale of the action that drives a joint."""
        start = 0
        for action in self._contract.file.outputs.values():
            joints = self._contract.action_joints(action)
            if joint in joints:
                return float(self._scale[start + joints.index(joint)])
            start += len(joints)
        raise JointError(f'no output drives {joint}', missing=[joint])

    def join(self, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the actions side by side, (..., m) float64.

        Args:
            outputs: (..., joints) by name of the output, as `Network.run` gives them.
        """
        if len(self.outputs) == 1:
            return outputs[self.outputs[0]].astype(float)
        return np.concatenate([outputs[name] for name in self.outputs], axis=-1, dtype=float)

    def clip(self, action: np.ndarray) -> np.ndarray:
        """Clip an action (..., m) as the contract says."""
        return np.minimum(np.maximum(action, self._low), self._high)

    def filter(self, clipped: np.ndarray) -> np.ndarray:
        """Return a clipped action (..., m) after its first-order filters, which begin at zero."""
        if self._filtered is None:
            return clipped
        self._filtered = self._filtered + self._share * (clipped - self._filtered)
        return self._filtered

    def decode(
        self, action: np.ndarray, stamp: float, measured: np.ndarray | None = None, reference: np.ndarray | None = None
    ) -> JointTargets:
        """Return the targets of an action.

        Args:
            action: (..., m) side by side, clipped and filtered.
            stamp: s, of the state that the action answers.
            measured: (..., n) rad; for actions that are relative to it, or integrate.
            reference: (..., n) rad, of the motion; for actions that are relative to it.
        """
        values = self._offset + self._scale * action
        if self._bases is not None:
            values += self._bases.of(measured, reference)
        if self._limits is not None:
            values = np.minimum(np.maximum(values, self._limits[0]), self._limits[1])
        if self._bases is not None:
            self._bases.keep(values)
        return JointTargets(stamp, *self._fields(values))

    def _fields(self, values: np.ndarray) -> list[np.ndarray]:
        """Return position, velocity and effort (..., n) of values (..., m)."""
        batch = values.shape[:-1]
        if batch != self._batch:
            self._batch, self._idle = batch, [np.broadcast_to(rest, (*batch, len(rest))) for rest in self._rest]
        fields = list(self._idle)
        if self._single is not None:
            fields[self._single] = values
            return fields
        fields = [field.copy() for field in fields]
        for field, index, where in self._writes:
            fields[field][..., index] = values[..., where]
        return fields
