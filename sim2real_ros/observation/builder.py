# SPDX-License-Identifier: Apache-2.0
"""`ObservationBuilder`: terms, then clip and scale in the contract's order, then history, into float32 input tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Observation, TermUse
from sim2real_ros.errors import NotFoundError
from sim2real_ros.observation.history import History
from sim2real_ros.observation.terms import Moment, Term, find_term, last_action_clipped


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a term lies in one frame of its input: [start, stop)."""

    name: str
    term: Term
    start: int
    stop: int
    scale: np.ndarray  # (width,)
    clip: tuple[float, float] | None
    process: tuple[str, ...]


class ObservationBuilder:
    """Builds every observation input of a contract.

    Attributes:
        slots: the terms of each input in order, with their index ranges.
        needs: sensors beside the joint states that some term needs (`imu`, `odom`).
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        """Resolve the terms.

        Args:
            contract: names the inputs and their terms.
            batch: shape of the batch of robots; () for one.

        """
        self.slots = {name: resolve_slots(name, part, contract, []) for name, part in contract.observations.items()}
        self.needs = sorted({need for slots in self.slots.values() for slot in slots for need in slot.term.needs})
        self._batch = batch
        self._parts = {name: _Frame(slots, batch) for name, slots in self.slots.items()}
        self._histories = {
            name: History(
                [s.stop - s.start for s in self.slots[name]], part.stack.lags, part.stack.layout, part.stack.fill, batch
            )
            for name, part in contract.observations.items()
            if part.stack.lags != [0]
        }
        self._lags = {name: len(part.stack.lags) for name, part in contract.observations.items()}

    def width(self, name: str) -> int:
        """Width of the input tensor `name`, history included."""
        return self.slots[name][-1].stop * self._lags[name]

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


class _Frame:
    """One frame of an input, written in place; scale and clip run over the whole frame where the order allows it."""

    def __init__(self, slots: list[Slot], batch: tuple[int, ...]) -> None:
        width = slots[-1].stop
        self.values = np.zeros((*batch, width))
        self._steps: list[tuple[Callable[[Moment], np.ndarray], np.ndarray]] = []  # term, and where it is written
        scale_first = np.ones(width)
        low, high = np.full(width, -np.inf), np.full(width, np.inf)
        scale_last = np.ones(width)
        for slot in slots:
            where = slice(slot.start, slot.stop)
            self._steps.append((slot.term.compute, self.values[..., where]))
            clip_first = slot.clip is not None and slot.process[:1] == ('clip',)
            (scale_last if clip_first else scale_first)[where] = slot.scale
            if slot.clip is not None:
                low[where], high[where] = slot.clip
        self._scale_first = None if (scale_first == 1).all() else scale_first
        self._scale_last = None if (scale_last == 1).all() else scale_last
        self._bounds = None if np.isinf(low).all() and np.isinf(high).all() else (low, high)

    def fill(self, moment: Moment) -> np.ndarray:
        values = self.values
        for compute, place in self._steps:
            place[...] = compute(moment)
        if self._scale_first is not None:
            values *= self._scale_first
        if self._bounds is not None:
            np.clip(values, *self._bounds, out=values)
        if self._scale_last is not None:
            values *= self._scale_last
        return values


def resolve_slots(name: str, part: Observation, contract: Contract, faults: list[str]) -> list[Slot]:
    """Return the terms of input `name` with their index ranges; terms that do not exist and wrong scales become faults."""
    slots: list[Slot] = []
    start = 0
    for i, use in enumerate(part.terms):
        where = f'inputs.{name}.terms.{i}'
        try:
            term = find_term(use.term)
        except NotFoundError as error:
            faults.append(f'{where}.term: {error}')
            continue
        if use.value == 'clipped':
            term = Term(last_action_clipped, term.width, term.unit, term.frame)
        width = term.width(contract)
        scale = np.atleast_1d(np.asarray(use.scale, dtype=float))
        if scale.size not in (1, width):
            faults.append(f'{where}.scale: {use.term} has {width} numbers, the scale has {scale.size}')
            continue
        slots.append(_slot(use, term, start, width, scale))
        start += width
    return slots


def _slot(use: TermUse, term: Term, start: int, width: int, scale: np.ndarray) -> Slot:
    clip = (use.clip[0], use.clip[1]) if use.clip is not None else None
    process = tuple(use.process) if use.process else ('clip', 'scale')
    return Slot(use.term, term, start, start + width, np.broadcast_to(scale, (width,)), clip, process)
