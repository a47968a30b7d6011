# SPDX-License-Identifier: Apache-2.0
"""The gait clock: counts policy ticks and encodes the phase as the contract says."""

from __future__ import annotations

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
        self._clock = clock = contract.file.phase
        self._ticks = np.zeros((*batch, 1))
        self._step, self._first, self._stops = 0.0, 0, False
        self.columns: dict[str, slice] = {}
        if clock is None:
            return
        count = len(clock.offsets)
        self.columns = {name: slice(k * count, (k + 1) * count) for k, name in enumerate(clock.encoding)}
        self._step, self._first, self._stops = contract.period_s / clock.period_s, clock.first_tick, clock.stop_at_zero_command
        self._below = clock.standing_below**2
        self._offsets = 2 * np.pi * np.array([offset + SHIFT[name] for name in clock.encoding for offset in clock.offsets])
        still = np.repeat([SHIFT[name] for name in clock.encoding], count)
        at = clock.standing_phase
        self._rest = np.zeros(still.size) if at is None else np.sin(2 * np.pi * (at + still))
        self.reset()

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Put the clock to its first tick, of the robots in `mask` (batch-shaped bool) or of all."""
        self._ticks[... if mask is None else mask] = self._first

    @property
    def phase(self) -> np.ndarray:
        """Phase of the next tick in periods, (*batch,) in [0, 1)."""
        return self._ticks[..., 0] * self._step % 1.0

    def tick(self, velocity_command: np.ndarray) -> np.ndarray:
        """Return the encoded phase of this tick (*batch, functions * offsets) and advance.

        Args:
            velocity_command: (*batch, 3).
        """
        if self._clock is None:
            return np.zeros((*self._ticks.shape[:-1], 0))
        encoded = np.sin(self._ticks * (2 * np.pi * self._step) + self._offsets)
        self._ticks += 1
        if self._stops:
            moving = self._moving(velocity_command)
            if not moving.all():
                self._ticks *= moving
                encoded = np.where(moving, encoded, self._rest)
        return encoded

    def _moving(self, command: np.ndarray) -> np.ndarray:
        if self._below == 0:
            return np.asarray(command.any(axis=-1, keepdims=True))
        return (np.einsum('...i,...i->...', command, command) >= self._below)[..., None]
