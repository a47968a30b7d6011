# SPDX-License-Identifier: Apache-2.0
"""Which episodes a study runs, in which order they count, and how they are dealt out to batches.

The order mixes the scenarios episode by episode: every beginning of it has each scenario by its share, so that a test which
stops early judges the mixture that the claim is about, and a study of 300 episodes is the beginning of one of 1000.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sim2real_ros.validation.episode import EpisodeId
from sim2real_ros.validation.schema import ValidationFile

LANES, FEWEST_LANES = 128, 8  # robots side by side: more make the Python of a tick cheap, fewer keep every worker busy


@dataclass(frozen=True, slots=True)
class Chunk:
    """Episodes of one scenario that run as one batch."""

    scenario: str
    indices: tuple[int, ...]

    def __str__(self) -> str:
        return f'{self.scenario}:{self.indices[0]} to {self.scenario}:{self.indices[-1]} ({len(self.indices)} episodes)'


def plan(level: ValidationFile, episodes: int) -> list[EpisodeId]:
    """Return the episodes of a study in the order in which they count."""
    total = sum(scenario.share for scenario in level.scenarios.values())  # below 1 where some were left out
    shares = {name: scenario.share / total for name, scenario in level.scenarios.items()}
    counts, order = dict.fromkeys(shares, 0), []
    for place in range(1, episodes + 1):
        name = max(shares, key=lambda name: round(shares[name] * place - counts[name], 9))  # that lags furthest behind
        order.append(EpisodeId(name, counts[name]))
        counts[name] += 1
    return order


def lanes(episodes: int, jobs: int) -> int:
    """Return how many robots a batch should have; the results do not depend on it."""
    return min(LANES, max(FEWEST_LANES, -(-episodes // (2 * jobs))))


def chunks(order: Sequence[EpisodeId], done: Collection[str], size: int) -> Iterator[Chunk]:
    """Deal out the episodes that are not done, in an order that completes the beginning of the plan first.

    Args:
        order: the plan.
        done: ids of episodes that need not run.
        size: of the batches, about.
    """
    scenarios = dict.fromkeys(episode.scenario for episode in order)
    stretch = size * len(scenarios)
    for begin in range(0, len(order), stretch):
        part = [episode for episode in order[begin : begin + stretch] if str(episode) not in done]
        for scenario in scenarios:
            indices = [episode.index for episode in part if episode.scenario == scenario]
            pieces = max(1, round(len(indices) / size))
            cuts = [len(indices) * k // pieces for k in range(pieces + 1)]
            for low, high in zip(cuts, cuts[1:], strict=False):
                if high > low:
                    yield Chunk(scenario, tuple(indices[low:high]))
