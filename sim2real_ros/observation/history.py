# SPDX-License-Identifier: Apache-2.0
"""History of an input: the last frames, gathered by lag in the order that the contract states.

With two terms a (2 numbers) and b (1 number), lags [0, 1] and frames t = 0, 1, 2:

    layout        t=0, fill: first        t=2
    term_major    a0 a0 b0 b0             a2 a1 b2 b1
    frame_major   a0 b0 a0 b0             a2 b2 a1 b1

`fill: zeros` puts zeros where no frame has been yet; `fill: first` repeats the first frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def gather_index(widths: Sequence[int], lags: Sequence[int], layout: str) -> np.ndarray:
    """Return where each output number lies in the flattened ring of frames (newest first).

    Args:
        widths: width of each term.
        lags: frames to take, in output order.
        layout: `term_major` or `frame_major`.
    """
    frame = sum(widths)
    starts = np.cumsum([0, *widths[:-1]])
    if layout == 'frame_major':
        return np.concatenate([lag * frame + np.arange(frame) for lag in lags])
    parts = [lag * frame + start + np.arange(width) for start, width in zip(starts, widths, strict=True) for lag in lags]
    return np.concatenate(parts)


class History:
    """Keeps as many frames as the largest lag needs, (*batch, depth, width), newest first."""

    def __init__(self, widths: Sequence[int], lags: Sequence[int], layout: str, fill: str, batch: tuple[int, ...]) -> None:
        self._frames = np.zeros((*batch, max(lags) + 1, sum(widths)))
        self._index = gather_index(widths, lags, layout)
        self._fill_first = fill == 'first'
        self._fresh = np.ones(batch, dtype=bool)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget the past, of the robots in `mask` (batch-shaped bool) or of all."""
        where = np.ones_like(self._fresh) if mask is None else mask
        self._frames[where] = 0.0
        self._fresh |= where

    def push(self, frame: np.ndarray) -> np.ndarray:
        """Add the newest frame (*batch, width) and return the stacked observation (*batch, width * lags)."""
        self._frames[..., 1:, :] = self._frames[..., :-1, :].copy()
        self._frames[..., 0, :] = frame
        if self._fresh.any():
            if self._fill_first:
                self._frames[self._fresh] = frame[self._fresh][..., None, :]
            self._fresh[...] = False
        return self._frames.reshape(*frame.shape[:-1], -1)[..., self._index]
