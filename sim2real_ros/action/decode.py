# SPDX-License-Identifier: Apache-2.0
"""Network outputs to joint targets: target = offset + scale * clip(action)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import JointError
from sim2real_ros.joints import by_name
from sim2real_ros.signals import JointTargets

FIELD = {'joint_position': 0, 'joint_velocity': 1, 'joint_torque': 2}  # of JointTargets


class ActionDecoder:
    """Maps the outputs of a contract, side by side in the order of `outputs`, to targets in policy joint order.

    A joint without a position action keeps its default position as the target; velocity and effort targets are zero.
    """

    def __init__(self, contract: Contract) -> None:
        n, m = len(contract.joints), contract.action_width
        self._contract = contract
        self.outputs = tuple(contract.file.outputs)
        self.width = m
        self._scale, self._offset = np.ones(m), np.zeros(m)
        self._low, self._high = np.full(m, -np.inf), np.full(m, np.inf)
        self._rest = (contract.default_position, np.zeros(n), np.zeros(n))
        self._batch: tuple[int, ...] = ()
        self._idle = list(self._rest)  # the resting fields in the shape of the last batch
        self._writes: list[tuple[int, np.ndarray, slice]] = []
        start = 0
        for action in contract.file.outputs.values():
            joints = contract.action_joints(action)
            where = slice(start, start + len(joints))
            start = where.stop
            index = np.array([contract.joints.index(joint) for joint in joints])
            scale = action.scale
            self._scale[where] = by_name(scale, joints, [], '') if isinstance(scale, dict) else scale
            if action.offset == 'default':
                self._offset[where] = contract.default_position[index]
            if action.clip is not None:
                self._low[where], self._high[where] = action.clip
            self._writes.append((FIELD[action.type], index, where))
        whole = len(self._writes) == 1 and np.array_equal(self._writes[0][1], np.arange(n))
        self._single = self._writes[0][0] if whole else None

    def scale_of(self, joint: str) -> float:
        """Return the scale of the action that drives a joint."""
        start = 0
        for action in self._contract.file.outputs.values():
            joints = self._contract.action_joints(action)
            if joint in joints:
                return float(self._scale[start + joints.index(joint)])
            start += len(joints)
        raise JointError(f'no output drives {joint}', missing=[joint])

    def clip(self, action: np.ndarray) -> np.ndarray:
        """Clip an action (..., m) as the contract says."""
        return np.minimum(np.maximum(action, self._low), self._high)

    def decode(self, clipped: np.ndarray, stamp: float) -> JointTargets:
        """Return the targets of a clipped action.

        Args:
            clipped: (..., m) outputs side by side.
            stamp: s, of the state that the action answers.
        """
        values = self._offset + self._scale * clipped
        batch = clipped.shape[:-1]
        if batch != self._batch:
            self._batch, self._idle = batch, [np.broadcast_to(rest, (*batch, len(rest))) for rest in self._rest]
        fields = list(self._idle)
        if self._single is not None:
            fields[self._single] = values
        else:
            fields = [field.copy() for field in fields]
            for field, index, where in self._writes:
                fields[field][..., index] = values[..., where]
        return JointTargets(stamp, *fields)

    def join(self, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the action outputs side by side, (..., m) float64."""
        if len(self.outputs) == 1:
            return outputs[self.outputs[0]].astype(float)
        return np.concatenate([outputs[name] for name in self.outputs], axis=-1, dtype=float)
