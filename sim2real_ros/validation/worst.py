# SPDX-License-Identifier: Apache-2.0
"""The worlds in which a policy fails that are the least unusual: a search over everything that has a coordinate.

CMA-ES walks through the coordinates of the draws towards low margins, from several episodes on; what a margin gains by being
far from the middle of every range is taken off again. Each failure is then pulled back towards the middle as far as
it still fails. What is drawn per joint, per command and per push stays that of the episode at which a walk began.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sim2real_ros.errors import DependencyError
from sim2real_ros.validation.draws import ANGLES, COORDINATES, coordinates, width
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.workers import Workers

WALKS, POPULATION, GENERATIONS = 4, 24, 10
SPREAD = 0.2  # of the first generation
PRIOR = 0.2  # margin that the corner of all ranges must gain over their middle
PULLS = 12  # places between a failure and the middle
MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """A failure.

    Attributes:
        z: (width,) its coordinates.
        distance: from the middle of all ranges, 0 to 1; the smaller the more plausible.
        episode: what happened; its id tells what was drawn apart from the coordinates.
    """

    z: tuple[float, ...]
    distance: float
    episode: Episode

    def document(self) -> dict[str, Any]:
        """Return everything, for a JSON file."""
        return {'z': list(self.z), 'distance': self.distance, 'episode': self.episode.document()}

    @classmethod
    def read(cls, document: dict[str, Any]) -> Found:
        """Return what `document` wrote."""
        return cls(tuple(document['z']), document['distance'], Episode(**document['episode']))


def search(
    trial: Trial,
    workers: Workers,
    episodes: Sequence[Episode] = (),
    *,
    walks: int = WALKS,
    population: int = POPULATION,
    generations: int = GENERATIONS,
    seen: Callable[[], None] | None = None,
) -> list[Found]:
    """Search for failures.

    Args:
        trial: gives the ranges.
        workers: run the walks.
        episodes: of a study; walks begin at those with the lowest margins, of the scenarios in turn.
        walks: number of them.
        population: episodes of a generation.
        generations: of a walk.
        seen: is called when a walk has come to its end.

    Returns:
        One failure per walk that found any, the most plausible first.

    Raises:
        DependencyError: cma is not installed.
    """
    import_cma()
    found = []
    for _, failure in workers.each(partial(_walk, trial, population, generations), _starts(trial, episodes, walks)):
        found += [failure] if failure is not None else []
        if seen is not None:
            seen()
    return sorted(found, key=lambda failure: (failure.distance, failure.episode.id))


def effective(trial: Trial, scenario: str) -> np.ndarray:
    """Return which coordinates change anything in a scenario, (width,) bool; directions have no middle and do not count."""
    low, high = (trial.draw(scenario, [0], np.full((1, width()), value)).values for value in (0.0, 1.0))
    parts = [
        np.zeros(k, bool) if name in ANGLES else np.atleast_1d(low[name][0] != high[name][0]) for name, k in COORDINATES.items()
    ]
    return np.concatenate(parts)


def import_cma() -> Any:
    """Import cma, or say how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # that it cannot plot
            import cma  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(
            f'the search for the worst cases needs cma ({error}): pip install "sim2real_ros[validate]"'
        ) from None
    return cma


def _starts(trial: Trial, episodes: Sequence[Episode], walks: int) -> list[EpisodeId]:
    """Return the episodes at which walks begin: the worst of each scenario, then the second worst of each, and so on."""
    lists = []
    for scenario in trial.level.scenarios:
        own = sorted((e for e in episodes if e.scenario == scenario), key=lambda e: (e.margin, e.id))
        ids = [EpisodeId.parse(episode.id) for episode in own]
        lists.append(ids + [EpisodeId(scenario, len(ids) + k) for k in range(walks)])
    return [ids[k] for k in range(walks) for ids in lists][:walks]


def _walk(trial: Trial, population: int, generations: int, start: EpisodeId) -> Found | None:
    cma, matters = import_cma(), effective(trial, start.scenario)
    if not matters.any():
        return None
    origin = coordinates(trial.seed, start.scenario, [start.index])[0]
    seed = 1 + (trial.seed * 7919 + start.index) % 2**31  # of cma, for which 0 is the clock
    options = {'bounds': [0, 1], 'popsize': population, 'seed': seed, 'verbose': -9}
    strategy = cma.CMAEvolutionStrategy(MIDDLE + 0.5 * (origin - MIDDLE), SPREAD, options)
    best: Found | None = None
    for _ in range(generations):
        asked = strategy.ask()
        z = np.clip(np.array(asked), 0.0, 1.0)
        episodes = _run(trial, start, z)
        far = np.array([_distance(one, matters) for one in z])
        strategy.tell(asked, [e.margin + PRIOR * d for e, d in zip(episodes, far, strict=True)])
        best = _nearest(best, z, far, episodes)
    if best is None:
        return None
    z = MIDDLE + np.linspace(0.0, 1.0, PULLS, endpoint=False)[:, None] * (np.array(best.z) - MIDDLE)
    return _nearest(best, z, np.array([_distance(one, matters) for one in z]), _run(trial, start, z))


def _run(trial: Trial, start: EpisodeId, z: np.ndarray) -> list[Episode]:
    return run(trial, start.scenario, [start.index] * len(z), z=z)


def _distance(z: np.ndarray, matters: np.ndarray) -> float:
    return float(np.sqrt(np.mean((2.0 * (z[matters] - MIDDLE)) ** 2)))


def _nearest(best: Found | None, z: np.ndarray, far: np.ndarray, episodes: Sequence[Episode]) -> Found | None:
    for one, distance, episode in zip(z, far, episodes, strict=True):
        if not episode.passed and (best is None or distance < best.distance):
            best = Found(tuple(map(float, one)), float(distance), episode)
    return best
