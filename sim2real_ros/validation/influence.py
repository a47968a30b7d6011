# SPDX-License-Identifier: Apache-2.0
"""Which of the drawn parameters decided how well the episodes went.

For each parameter the episodes are dealt into bins of equal size by its value, and the test of Kruskal and Wallis tells
whether their margins differ from bin to bin. It is made of ranks, and takes effects of any shape: too much payload and too
little. With a hundred parameters some look influential by luck: what counts must hold against all of them (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim2real_ros.errors import DependencyError
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.parameters import Parameter, parameters
from sim2real_ros.validation.statistics import wilson

PER_BIN, MOST_BINS, FEWEST = 20, 8, 40  # episodes in a bin, at least; bins; episodes below which nothing is said
LUCK = 0.05  # chance that any parameter is called influential though none is


@dataclass(frozen=True, slots=True)
class Bin:
    """Episodes with neighbouring values.

    Attributes:
        low: smallest value.
        high: largest value.
        success: share of them.
        least: Wilson's interval of it, 95 %.
        most: its other end.
    """

    low: float
    high: float
    n: int
    success: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Influence:
    """What a parameter did.

    Attributes:
        values: (B,) of the episodes in which it varied.
        margins: (B,) of theirs.
        explained: share of the spread of the margins' ranks (epsilon squared, less what luck gives).
        chance: of as much by luck, over all parameters.
        bins: by its value.
    """

    parameter: Parameter
    values: np.ndarray
    margins: np.ndarray
    explained: float
    chance: float
    bins: tuple[Bin, ...]

    @property
    def shown(self) -> bool:
        """Whether it is more than luck."""
        return self.chance < LUCK


def influences(episodes: Sequence[Episode], joints: Sequence[str]) -> list[Influence]:
    """Return the influence of every parameter that varied, the largest first; of each name the most influential part.

    Args:
        episodes: of a study.
        joints: (n,) of the robot, in its order.

    Raises:
        DependencyError: scipy is not installed.
    """
    table: dict[Parameter, list[tuple[str, float, float]]] = {}
    for episode in episodes:
        for parameter, value in parameters(episode.draw, joints).items():
            table.setdefault(parameter, []).append((episode.scenario, value, episode.margin))
    varied = {parameter: _where_it_varies(rows) for parameter, rows in table.items()}
    varied = {parameter: rows for parameter, rows in varied.items() if len(rows) >= FEWEST}
    best: dict[str, Influence] = {}
    for parameter, rows in varied.items():
        influence = _influence(parameter, rows, len(varied))
        if parameter.name not in best or influence.chance < best[parameter.name].chance:
            best[parameter.name] = influence
    return sorted(best.values(), key=lambda influence: (not influence.shown, -influence.explained, influence.chance))


def _where_it_varies(rows: Sequence[tuple[str, float, float]]) -> np.ndarray:
    """Return (value, margin) of the episodes of those scenarios in which it is not the same for all, (B, 2)."""
    seen: dict[str, set[float]] = {}
    for scenario, value, _ in rows:
        seen.setdefault(scenario, set()).add(value)
    return np.array([(value, margin) for scenario, value, margin in rows if len(seen[scenario]) > 1]).reshape(-1, 2)


def _influence(parameter: Parameter, rows: np.ndarray, tests: int) -> Influence:
    try:
        from scipy.stats import kruskal  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'validation needs scipy ({error}): pip install "sim2real_ros[validate]"') from None
    values, margins = rows[np.argsort(rows[:, 0], kind='stable')].T
    groups = np.array_split(np.arange(len(values)), min(MOST_BINS, max(2, len(values) // PER_BIN)))
    explained, chance = 0.0, 1.0
    if np.ptp(margins):
        h, p = kruskal(*(margins[group] for group in groups))
        explained = max(0.0, float(h - len(groups) + 1) / (len(values) - len(groups)))
        chance = min(1.0, float(p) * tests)
    return Influence(parameter, values, margins, explained, chance, tuple(_bin(values[g], margins[g]) for g in groups))


def _bin(values: np.ndarray, margins: np.ndarray) -> Bin:
    n, failures = len(values), int(np.count_nonzero(margins < 0))
    return Bin(float(values[0]), float(values[-1]), n, 1.0 - failures / n, *wilson(failures, n))
