# SPDX-License-Identifier: Apache-2.0
"""The gait clock: counts policy ticks and encodes the phase as the contract says."""

from __future__ import annotations

import numpy as np

from sim2real_ros.contract.contract import Contract

SHIFT = {'sin': 0.0, 'cos': 0.25}  # in periods: a cosine is a sine a quarter of a period ahead


class GaitClock:
    """Phase of a gait, for a batch of robots; (*batch, 0) wide when the contract has none.

    The first tick after a reset has phase 0. Where the contract says `stop_at_zero_command`, a zero command holds the
    clock at 0 and every value reads 0, so that the network knows that it should stand.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        self._clock = contract.file.phase
        self._ticks = np.zeros((*batch, 1))
        self._step = 0.0
        if self._clock is not None:
            self._step = contract.period_s / self._clock.period_s
            offsets = [offset + SHIFT[name] for name in self._clock.encoding for offset in self._clock.offsets]
            self._offsets = 2 * np.pi * np.array(offsets)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Put the clock to 0, of the robots in `mask` (batch-shaped bool) or of all."""
        self._ticks[... if mask is None else mask] = 0

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
        if self._clock.stop_at_zero_command:
            moving = velocity_command.any(axis=-1, keepdims=True)
            if not moving.all():
                self._ticks *= moving
                encoded *= moving
        return encoded
