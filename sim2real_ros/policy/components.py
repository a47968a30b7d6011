# SPDX-License-Identifier: Apache-2.0
"""`Components`: the numbers of one policy tick that the novelty monitor looks at, and what each of them is called.

They are the newest frame of every observation input, as the network gets it, and the action, as the network gives it,
side by side. Frames of the past are left out: each of them was the newest one once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim2real_ros.contract import Contract
from sim2real_ros.observation.builder import Slot, resolve_slots, stack_index


@dataclass(frozen=True, slots=True)
class Component:
    """One number: a label for messages, its unit, and the scale that the builder multiplied it with."""

    label: str
    unit: str  # '' where it has none
    scale: float

    def tell(self, value: float) -> str:
        """Return a value (scaled, as the network gets it) in the unit of the label."""
        return f'{value / self.scale:.4g}' + (f' {self.unit}' if self.unit else '')


class Components:
    """The d numbers of a contract.

    Attributes:
        parts: name and width of each term (`obs.base_ang_vel`) and action, in order: the identity of the vector.
        each: (d,) what they are.
    """

    def __init__(self, contract: Contract) -> None:
        """Lay the numbers of a contract out."""
        self.parts: list[tuple[str, int]] = []
        self.each: list[Component] = []
        self._newest: dict[str, np.ndarray | slice] = {}
        for name, blocks in contract.observations.items():
            slots = resolve_slots(name, blocks, contract, [])
            plain = all(slot.lags == (0,) for slot in slots)
            self._newest[name] = slice(None) if plain else newest_frame(slots, stack_index(slots, blocks))
            prefix = f'{name}.' if len(contract.observations) > 1 else ''
            for slot in slots:
                self.parts.append((f'{name}.{slot.name}', slot.stop - slot.start))
                self.each += _of_slot(slot, prefix, contract)
        for name, action in contract.file.outputs.items():
            joints = contract.action_joints(action)
            self.parts.append((name, len(joints)))
            self.each += [Component(f'{name} of {joint}', '', 1.0) for joint in joints]

    def join(self, observation: Mapping[str, np.ndarray], action: np.ndarray) -> np.ndarray:
        """Return the vector of a tick, (*batch, d).

        Args:
            observation: input tensors (*batch, width) by name, as `PolicyRunner.observation` has them.
            action: (*batch, m), as `PolicyRunner.action` has it.
        """
        return np.concatenate([*(observation[name][..., index] for name, index in self._newest.items()), action], axis=-1)


def newest_frame(slots: list[Slot], index: np.ndarray) -> np.ndarray:
    """Return where the numbers of the smallest lag of each term lie in a stacked input, (frame width,).

    Args:
        slots: of the input.
        index: where each number of the input lies in the ring of frames, see `stack_index`.
    """
    frame = slots[-1].stop
    place = {number: i for i, number in enumerate(index.tolist())}
    return np.array([place[min(slot.lags) * frame + k] for slot in slots for k in range(slot.start, slot.stop)])


def _of_slot(slot: Slot, prefix: str, contract: Contract) -> list[Component]:
    width, name = slot.stop - slot.start, f'{prefix}{slot.name}'
    outputs = [joint for action in contract.file.outputs.values() for joint in contract.action_joints(action)]
    joints = outputs if slot.term.frame == 'outputs' else list(slot.joints)
    named = len(joints) == width
    labels = [f'{name} of {joint}' for joint in joints] if named else [f'{name}[{i}]' for i in range(width)]
    unit = '' if slot.term.unit == '1' or ',' in slot.term.unit else slot.term.unit
    scales = np.where(slot.scale == 0, 1.0, slot.scale).tolist()
    return [Component(label, unit, scale) for label, scale in zip(labels, scales, strict=True)]
