# SPDX-License-Identifier: Apache-2.0
"""What a policy sees in simulation, and how far from it is too far: `statistics.npz`, made by `sim2real novelty`.

Two scores of a tick x (d numbers, see `Components`):

* reach: max over the components of |x - centre| / half-width of what it was in simulation; 1 is the edge. Finds wrong
  units, and single numbers that are where they never were.
* distance: Mahalanobis distance to the mean over sqrt(d), every component clipped to 4 standard deviations; about 1
  where x is familiar. Finds wrong orders and signs: numbers that are each in range but do not go together. The clip
  keeps one wild number, which is the other score's business, from setting the threshold. The covariance is that of the
  standardised components, shrunk towards the identity: (1 - lambda) R + lambda I (Ledoit and Wolf 2004, lambda = 0.05).

The thresholds are conformal, per episode and not per tick: of n simulated episodes that ranges and covariance have not
seen, the worst score of each; the threshold is the ceil((n + 1) (1 - alpha))-th smallest (Vovk et al. 2005). Another
episode of the same kind then raises a false alarm with probability alpha at most; the two scores share alpha.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.contract import Contract
from sim2real_ros.errors import ModelFileError
from sim2real_ros.npz import numbers, read_npz
from sim2real_ros.paths import read_file
from sim2real_ros.policy.components import Components

VERSION = 1
WINDOW, NEEDED = 10, 5  # ticks: an alarm takes 5 of the last 10 beyond a threshold
ALPHA = 0.005  # false alarms per episode, both scores together
SHRINKAGE = 0.05
CLIP = 4.0  # standard deviations
FLOOR = 1e-3  # least standard deviation and half-width, network units; a component that never moved has neither
MADE = ('fit', 'calibration', 'date')  # what a file must tell of its making: number of episodes of each kind, and when
ARRAYS = ('minimum', 'maximum', 'mean', 'spread', 'whitening', 'thresholds')


@dataclass(frozen=True, slots=True)
class ObservationStatistics:
    """Statistics of d components, in the numbers that the network gets and gives."""

    parts: tuple[tuple[str, int], ...]  # name and width of each term and action
    minimum: np.ndarray  # (d,)
    maximum: np.ndarray  # (d,)
    mean: np.ndarray  # (d,)
    spread: np.ndarray  # (d,) standard deviation
    whitening: np.ndarray  # (d, d) lower triangular W: W (x - mean) / spread has about unit covariance
    thresholds: np.ndarray  # (2,) of reach and of distance
    made: Mapping[str, Any]  # how: policy, episodes, seed, ranges, date ...
    _centre: np.ndarray = field(init=False)
    _inverse: np.ndarray = field(init=False)  # of the half-width
    _root: np.ndarray = field(init=False)  # whitening, transposed, over sqrt(d)

    def __post_init__(self) -> None:
        """Prepare what every tick needs."""
        object.__setattr__(self, '_centre', 0.5 * (self.minimum + self.maximum))
        object.__setattr__(self, '_inverse', 1.0 / np.maximum(0.5 * (self.maximum - self.minimum), FLOOR))
        object.__setattr__(self, '_root', np.ascontiguousarray(self.whitening.T) / math.sqrt(self.mean.size))

    def reaches(self, vectors: np.ndarray) -> np.ndarray:
        """Return |x - centre| / half-width of every component, (..., d)."""
        return np.abs((vectors - self._centre) * self._inverse)

    def standardised(self, vectors: np.ndarray) -> np.ndarray:
        """Return (x - mean) / spread, clipped, (..., d)."""
        return np.minimum(np.maximum((vectors - self.mean) / self.spread, -CLIP), CLIP)

    def scores(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return reach and distance, each (...), of vectors (..., d)."""
        white = self.standardised(vectors) @ self._root
        return self.reaches(vectors).max(axis=-1), np.sqrt(np.einsum('...i,...i->...', white, white))

    def save(self, path: Path) -> None:
        """Write the file."""
        names, widths = zip(*self.parts, strict=True)
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name), np.float32) for name in ARRAYS}
        arrays |= {'version': VERSION, 'names': names, 'widths': widths, 'made': json.dumps(self.made)}
        with path.open('wb') as file:  # the very name that was asked for
            np.savez_compressed(file, **arrays)


def load_statistics(contract: Contract) -> ObservationStatistics | None:
    """Read the statistics that a contract names.

    Returns:
        None when it names none or came without a folder.

    Raises:
        ModelFileError: the file is missing or damaged, or belongs to a policy of other terms.
    """
    if contract.file.novelty is None or contract.folder is None:
        return None
    path = contract.folder / contract.file.novelty
    try:
        statistics = _from_arrays(read_npz(read_file(path)))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelFileError(
            f'cannot read the statistics {path}: {error}; make the file again (sim2real novelty) or set novelty: null'
        ) from None
    wanted = tuple(Components(contract).parts)
    if statistics.parts != wanted:
        raise ModelFileError(
            f'the statistics {path} belong to another policy: {_difference(statistics.parts, wanted)}; '
            'make the file again (sim2real novelty) or set novelty: null'
        )
    return statistics


def fit(
    parts: Sequence[tuple[str, int]], samples: np.ndarray, calibration: np.ndarray, made: Mapping[str, Any]
) -> ObservationStatistics:
    """Make statistics from episodes.

    Args:
        parts: `Components.parts`.
        samples: (k, d) ticks for the ranges and the covariance.
        calibration: (ticks, n, d) n other episodes for the thresholds.
        made: where all that comes from.

    Raises:
        ValueError: there are too few episodes for the wanted rate of false alarms.
    """
    mean, spread = samples.mean(axis=0, dtype=float), np.maximum(samples.std(axis=0, dtype=float), FLOOR)
    root = whitening((samples - mean) / spread)
    statistics = ObservationStatistics(
        tuple(parts), samples.min(axis=0), samples.max(axis=0), mean, spread, root, np.zeros(2), made
    )
    worst = [persistent(scores).max(axis=0) for scores in statistics.scores(calibration)]
    thresholds = np.array([max(1.0, conformal_threshold(scores, ALPHA / len(worst))) for scores in worst])
    return replace(statistics, thresholds=thresholds)


def whitening(standard: np.ndarray) -> np.ndarray:
    """Return W (d, d), lower triangular, with W C W' = I for the shrunk correlation C of standardised samples (k, d)."""
    correlation = standard.T @ standard / len(standard)
    return np.linalg.inv(np.linalg.cholesky((1 - SHRINKAGE) * correlation + SHRINKAGE * np.eye(len(correlation))))


def conformal_threshold(worst: np.ndarray, alpha: float) -> float:
    """Return the ceil((n + 1) (1 - alpha))-th smallest of the worst scores (n,) of n episodes.

    Raises:
        ValueError: n is too small for alpha.
    """
    n = len(worst)
    rank = math.ceil((n + 1) * (1 - alpha) - 1e-9)
    if rank > n:
        raise ValueError(f'{n} calibration episodes are too few for {alpha:g}: {math.ceil(1 / alpha - 1e-9) - 1} are needed')
    return float(np.sort(worst)[rank - 1])


def persistent(scores: np.ndarray) -> np.ndarray:
    """Return for every tick the score that NEEDED of the last WINDOW ticks reach; (ticks, ...) like the scores.

    It exceeds a threshold exactly when the monitor's alarm is on, so it is what the threshold is calibrated for.
    """
    padded = np.concatenate([np.full((WINDOW - 1, *scores.shape[1:]), -np.inf), scores])
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW, axis=0)
    return np.partition(windows, WINDOW - NEEDED, axis=-1)[..., WINDOW - NEEDED]


def _from_arrays(data: dict[str, np.ndarray]) -> ObservationStatistics:
    if int(data['version']) != VERSION:
        raise ValueError(f'its version is {int(data["version"])}, this program reads {VERSION}')
    parts = tuple(zip(data['names'].tolist(), data['widths'].tolist(), strict=True))
    d = sum(width for _, width in parts)
    arrays = {name: numbers(data, name) for name in ARRAYS}
    for name, values in arrays.items():
        shape = {'whitening': (d, d), 'thresholds': (2,)}.get(name, (d,))
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f'{name} is not finite or has the shape {values.shape}, expected is {shape}')
    if not (arrays['spread'] > 0).all():
        raise ValueError('spread is not above 0')
    made = json.loads(str(data['made']))
    if missing := [key for key in MADE if key not in made]:
        raise ValueError(f'made lacks {", ".join(missing)}')
    return ObservationStatistics(parts, **arrays, made=made)


def _difference(there: Sequence[tuple[str, int]], wanted: Sequence[tuple[str, int]]) -> str:
    """Say where two lists of parts differ first."""
    for i in range(max(len(there), len(wanted))):
        have, want = (f'{p[i][0]} ({p[i][1]})' if i < len(p) else 'nothing' for p in (there, wanted))
        if have != want:
            return f'part {i} is {have} in the file and {want} in the contract'
    return 'they do not differ'
