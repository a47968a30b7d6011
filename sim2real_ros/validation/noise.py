# SPDX-License-Identifier: Apache-2.0
"""Sensor noise of many episodes at once, each from a stream of its own, so that no episode hears of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim2real_ros.validation.draws import generator

BLOCK = 100  # samples that are drawn at once; part of what a seed means


class Noise:
    """Gaussian noise of mean zero and the luck of the drop-outs, sample by sample."""

    def __init__(self, seed: int, scenario: str, indices: Sequence[int], deviation: np.ndarray) -> None:
        """Begin the streams.

        Args:
            seed: of the study.
            scenario: of the episodes.
            indices: (B,) of the episodes.
            deviation: (w,) standard deviation of each number of a sample.
        """
        self._streams = [generator(seed, scenario, index, stream=2) for index in indices]
        self._deviation, self._at = deviation.astype(np.float32), BLOCK
        self._normal = np.zeros((BLOCK, len(indices), len(deviation)), np.float32)
        self._luck = np.zeros((BLOCK, len(indices)), np.float32)

    def sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the next sample: noise (B, w), and luck (B,) uniform in [0, 1); views that the next block overwrites."""
        if self._at == BLOCK:
            self._at = 0
            for lane, stream in enumerate(self._streams):
                self._normal[:, lane] = stream.standard_normal(self._normal.shape[::2], np.float32)
                self._luck[:, lane] = stream.random(BLOCK, np.float32)
            self._normal *= self._deviation
        self._at += 1
        return self._normal[self._at - 1], self._luck[self._at - 1]
