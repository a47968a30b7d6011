# SPDX-License-Identifier: Apache-2.0
"""`ObservationBuilder`: terms, then clip, scale and offset in the contract's order, then history, into float32 tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Observation
from sim2real_ros.observation.history import History, gather_index
from sim2real_ros.observation.moment import Moment
from sim2real_ros.observation.slots import Slot, resolve_slots

__all__ = ['ObservationBuilder', 'Slot', 'resolve_slots', 'stack_index']


class ObservationBuilder:
    """Builds every observation input of a contract.

    Attributes:
        slots: the terms of each input in order, with their index ranges.
        needs: signals beside the joint states that some term needs (`imu`, `odom`, `contacts`, `goal_pose`).
        depth: the largest lag, in ticks.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        """Resolve the terms.

        Args:
            contract: names the inputs and their terms.
            batch: shape of the batch of robots; () for one.

        """
        self.slots = {name: resolve_slots(name, blocks, contract, []) for name, blocks in contract.observations.items()}
        self.needs = sorted({need for slots in self.slots.values() for slot in slots for need in slot.term.needs})
        self.depth = max(lag for slots in self.slots.values() for slot in slots for lag in slot.lags)
        self._parts = {name: _Frame(slots, batch) for name, slots in self.slots.items()}
        self._histories: dict[str, History] = {}
        self._widths: dict[str, int] = {}
        for name, blocks in contract.observations.items():
            index = stack_index(self.slots[name], blocks)
            self._widths[name] = len(index)
            if any(slot.lags != (0,) for slot in self.slots[name]):
                first = [blocks[slot.block].stack.fill == 'first' for slot in self.slots[name] for _ in range(slot.width)]
                self._histories[name] = History(index, np.array(first), batch)

    def width(self, name: str) -> int:
        """Width of the input tensor `name`, history included."""
        return self._widths[name]

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget the histories, of the robots in `mask` (batch-shaped bool) or of all."""
        for history in self._histories.values():
            history.reset(mask)

    def not_finite(self, name: str) -> list[str]:
        """Return the terms of input `name` that were not finite in the last frame."""
        frame = self._parts[name].values
        return [slot.name for slot in self.slots[name] if not np.isfinite(frame[..., slot.start : slot.stop]).all()]

    def build(self, moment: Moment) -> dict[str, np.ndarray]:
        """Return the input tensors (*batch, width), float32, by tensor name."""
        built = {}
        for name, part in self._parts.items():
            frame = part.fill(moment)
            history = self._histories.get(name)
            built[name] = (frame if history is None else history.push(frame)).astype(np.float32)
        return built


def stack_index(slots: Sequence[Slot], blocks: Sequence[Observation]) -> np.ndarray:
    """Return where each number of an input lies in its frames, newest first, flattened."""
    parts, frame = [], slots[-1].stop
    for b, block in enumerate(blocks):
        own = [slot for slot in slots if slot.block == b]
        widths, lags = [slot.width for slot in own], [slot.lags for slot in own]
        parts.append(gather_index(widths, lags, block.stack.layout, own[0].start, frame))
    return np.concatenate(parts)


class _Frame:
    """One frame of an input, written in place; every step runs over the whole frame at once, or not at all.

    Whatever the order of clip, scale and offset, x becomes clip(x * scale + offset) * scale + offset with one scale and one
    offset of the four idle.
    """

    def __init__(self, slots: list[Slot], batch: tuple[int, ...]) -> None:
        width = slots[-1].stop
        self.values = np.zeros((*batch, width))
        self._terms: list[tuple[Callable[[Moment], np.ndarray], np.ndarray]] = []  # term, and where it is written
        scales, offsets = np.ones((2, width)), np.zeros((2, width))  # before and after the clip
        low, high = np.full(width, -np.inf), np.full(width, np.inf)
        for slot in slots:
            where = slice(slot.start, slot.stop)
            self._terms.append((slot.term.compute, self.values[..., where]))
            clip, scale, offset = (slot.process.index(step) for step in ('clip', 'scale', 'offset'))
            before_scale = offset < scale and (offset > clip) == (scale > clip)  # (x + o) s = x s + o s
            scales[int(scale > clip), where] = slot.scale
            offsets[int(offset > clip), where] = slot.offset * slot.scale if before_scale else slot.offset
            if slot.clip is not None:
                low[where], high[where] = slot.clip
        bounds = [(np.maximum, low, -np.inf), (np.minimum, high, np.inf)]
        steps = [*_affine(scales[0], offsets[0]), *bounds, *_affine(scales[1], offsets[1])]
        self._steps = [(ufunc, operand) for ufunc, operand, idle in steps if (operand != idle).any()]

    def fill(self, moment: Moment) -> np.ndarray:
        """Return the terms of a moment, scaled and clipped, (..., w); used again by the next call."""
        values = self.values
        for compute, place in self._terms:
            place[...] = compute(moment)
        for ufunc, operand in self._steps:
            ufunc(values, operand, out=values)
        return values


def _affine(scale: np.ndarray, offset: np.ndarray) -> list[tuple[np.ufunc, np.ndarray, float]]:
    """Return the steps of x * scale + offset, each with the operand that leaves it idle."""
    return [(np.multiply, scale, 1.0), (np.add, offset, 0.0)]
