# SPDX-License-Identifier: Apache-2.0
"""The gait clock: counts policy ticks and encodes the phase as the contract says."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract

SHIFT = {'sin': 0.0, 'cos': 0.25}  # in periods: a cosine is a sine a quarter of a period ahead


class GaitClock:
    """Phase of a gait, for a batch of robots; (*batch, 0) wide when the contract has none.

    The first tick after a reset is tick `first_tick` of the contract. Where it says `stop_at_zero_command`, a zero command
    holds the clock: every value reads 0, or what `standing_phase` says, and the gait begins at tick 0 when it moves again.

    Attributes:
        columns: where the values of each function lie in the encoded phase.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        self._batch = batch
        self._clock = clock = contract.file.phase
        self._ticks: np.ndarray | float = np.zeros((*batch, 1)) if batch else 0.0  # one robot: numpy is slow on one number
        self._rate, self._first, self._stops = 0.0, 0, False
        self._offsets = self._rest = np.zeros(0)
        self.columns: dict[str, slice] = {}
        if clock is None:
            return
        count = len(clock.offsets)
        self.columns = {name: slice(k * count, (k + 1) * count) for k, name in enumerate(clock.encoding)}
        self._rate, self._first, self._stops = contract.period_s / clock.period_s, clock.first_tick, clock.stop_at_zero_command
        self._below = clock.standing_below**2
        self._offsets = 2 * np.pi * np.array([offset + SHIFT[name] for name in clock.encoding for offset in clock.offsets])
        still = np.repeat([SHIFT[name] for name in clock.encoding], count)
        at = clock.standing_phase
        self._rest = np.zeros(still.size) if at is None else np.sin(2 * np.pi * (at + still))
        self.reset()

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Put the clock to its first tick, of the robots in `mask` (batch-shaped bool) or of all."""
        if isinstance(self._ticks, np.ndarray):
            self._ticks[... if mask is None else mask] = self._first
        elif mask is None or mask:
            self._ticks = float(self._first)

    @property
    def phase(self) -> np.ndarray:
        """Phase of the next tick in periods, (*batch,) in [0, 1)."""
        return np.reshape(self._ticks * self._rate % 1.0, self._batch)

    def tick(self, velocity_command: np.ndarray) -> np.ndarray:
        """Return the encoded phase of this tick (*batch, functions * offsets) and advance.

        Args:
            velocity_command: (*batch, 3).
        """
        if self._clock is None:
            return np.zeros((*self._batch, 0))
        encoded: np.ndarray = np.sin(self._ticks * (2 * np.pi * self._rate) + self._offsets)
        if not self._stops:
            self._ticks += 1
        elif isinstance(self._ticks, np.ndarray):
            moving = np.expand_dims(self._moving(*np.moveaxis(velocity_command, -1, 0)), -1)
            self._ticks = np.where(moving, self._ticks + 1, 0.0)
            encoded = np.where(moving, encoded, self._rest)
        elif self._moving(*velocity_command.tolist()):
            self._ticks += 1
        else:
            self._ticks, encoded = 0.0, self._rest.copy()
        return encoded

    def _moving(self, x: Any, y: Any, yaw: Any) -> Any:
        """Return whether a command counts as one, numbers or arrays (*batch,) alike."""
        if self._below == 0:
            return (x != 0) | (y != 0) | (yaw != 0)
        return x * x + y * y + yaw * yaw >= self._below
