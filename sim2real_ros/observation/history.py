# SPDX-License-Identifier: Apache-2.0
"""History of an input: the last frames, gathered by lag in the order that the contract states.

With two terms a (2 numbers) and b (1 number), lags [0, 1] and frames t = 0, 1, 2:

    layout        t=0, fill: first        t=2
    term_major    a0 a0 b0 b0             a2 a1 b2 b1
    frame_major   a0 b0 a0 b0             a2 b2 a1 b1

`fill: zeros` puts zeros where no frame has been yet; `fill: first` repeats the first frame. In a term-major layout each
term may have lags of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def gather_index(
    widths: Sequence[int], lags: Sequence[Sequence[int]], layout: str, start: int = 0, frame: int | None = None
) -> np.ndarray:
    """Return where each output number lies in the flattened ring of frames (newest first).

    Args:
        widths: width of each term.
        lags: frames to take of each term, in output order; all the same for `frame_major`.
        layout: `term_major` or `frame_major`.
        start: where the first term begins in a frame.
        frame: width of a frame, where it holds more than these terms.
    """
    frame = sum(widths) if frame is None else frame
    starts = start + np.cumsum([0, *widths[:-1]])
    if layout == 'frame_major':
        return np.concatenate([lag * frame + start + np.arange(sum(widths)) for lag in lags[0]])
    terms = zip(starts, widths, lags, strict=True)
    return np.concatenate([lag * frame + begin + np.arange(width) for begin, width, own in terms for lag in own])


class History:
    """Keeps as many frames as the largest lag needs, (*batch, depth, width), newest first."""

    def __init__(self, index: np.ndarray, first: np.ndarray, batch: tuple[int, ...]) -> None:
        """Keep frames.

        Args:
            index: of the output numbers, see `gather_index`.
            first: (width,) bool: True where the past is filled with the first frame, False where with zeros.
            batch: shape of the batch of robots; () for one.
        """
        self._frames = np.zeros((*batch, int(index.max()) // first.size + 1, first.size))
        self._flat = self._frames.reshape(*batch, -1)
        self._index, self._first = index, first
        self._fresh, self._any_fresh = np.ones(batch, dtype=bool), True

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Forget the past, of the robots in `mask` (batch-shaped bool) or of all."""
        where = np.ones_like(self._fresh) if mask is None else mask
        self._frames[where] = 0.0
        self._fresh |= where
        self._any_fresh = True

    def push(self, frame: np.ndarray) -> np.ndarray:
        """Add the newest frame (*batch, width) and return the stacked observation (*batch, len(index))."""
        self._frames[..., 1:, :] = self._frames[..., :-1, :].copy()
        self._frames[..., 0, :] = frame
        if self._any_fresh:
            past = self._frames[self._fresh]
            self._frames[self._fresh] = np.where(self._first, past[..., :1, :], past)
            self._fresh[...] = self._any_fresh = False
        return self._flat.take(self._index, axis=-1)
