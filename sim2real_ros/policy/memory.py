# SPDX-License-Identifier: Apache-2.0
"""`Memory`: what a network is fed beside observations: its own state of the tick before, the tick's number, the first tick."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Counter, State
from sim2real_ros.policy.tensors import Tensor


class Memory:
    """Holds it for every robot of a batch: `lanes` calls of the network with `rows` robots each."""

    def __init__(self, contract: Contract, inputs: Mapping[str, Tensor], lanes: int, rows: int) -> None:
        self._inputs, self._states, self._counters = inputs, contract.states, contract.counters
        self._flags = contract.flags
        self._counts = bool(self._counters or self._flags)
        self._initial = {name: _initial(inputs[name], state) for name, state in self._states.items()}
        self._ticks = np.zeros((lanes, rows), dtype=np.int64)
        self.reset()

    @property
    def outputs(self) -> list[str]:
        """Output tensors that are kept for the next tick."""
        return [state.state for state in self._states.values()]

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Begin anew, for the robots in `mask` (batch-shaped bool) or for all."""
        lanes, rows = self._ticks.shape
        if mask is None:
            self._ticks[:] = 0
            self._carried = [dict(self._initial) for _ in range(lanes)]
            return
        where = mask.reshape(lanes, rows)
        self._ticks[where] = 0
        for lane in np.flatnonzero(where.any(axis=1)) if self._states else ():
            self._carried[lane] = dict(self._initial)

    def feed(self, lane: int) -> dict[str, np.ndarray]:
        """Return the tensors of the next call."""
        feed = dict(self._carried[lane])
        if self._counts:
            ticks = self._ticks[lane]
            feed |= {name: self._column(name, _count(counter, ticks)) for name, counter in self._counters.items()}
            feed |= {name: self._column(name, ticks == 0) for name in self._flags}
        return feed

    def keep(self, lane: int, outputs: Mapping[str, np.ndarray]) -> None:
        """Take the state from the outputs of a call, and count it."""
        for name, state in self._states.items():
            self._carried[lane][name] = outputs[state.state]
        if self._counts:
            self._ticks[lane] += 1

    def _column(self, name: str, values: np.ndarray) -> np.ndarray:
        tensor = self._inputs[name]
        shape = (len(values), 1) if tensor.free_batch else tensor.closed_shape
        return values.reshape(shape).astype(tensor.dtype)


def _initial(tensor: Tensor, state: State) -> np.ndarray:
    if isinstance(state.initial, list):
        return np.array(state.initial).reshape(tensor.closed_shape).astype(tensor.dtype)
    return np.zeros(tensor.closed_shape, tensor.dtype)


def _count(counter: Counter, ticks: np.ndarray) -> np.ndarray:
    """Return the number of each tick: past the last one it stays there, or starts again."""
    if counter.last is None:
        return counter.start + ticks
    if counter.end == 'loop':
        return counter.start + ticks % (counter.last - counter.start + 1)
    return np.minimum(counter.start + ticks, counter.last)
