# SPDX-License-Identifier: Apache-2.0
"""`Curve`: how much of one thing a policy bears, while everything else is drawn as in its level.

The same episodes run again with one parameter at a fixed value, then at a worse one. A policy bears a value when the share
of successes there, and at every milder one, is at least the one that the level claims. That is a share and no proof: some
fifty episodes a value cannot prove 98 %; Wilson's intervals say how well it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from sim2real_ros.robot import Robot
from sim2real_ros.sim.model import build_model
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.plan import Chunk, chunks, lanes, plan
from sim2real_ros.validation.statistics import wilson
from sim2real_ros.validation.workers import Workers

EPISODES = 50  # at each value
HOPELESS = 0.5  # share of successes below which worse values are left out
DELAYS_S = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is tried: values from mild to bad, and the ranges of the level that take them."""

    name: str
    unit: str
    values: tuple[float, ...]
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """Success at a value; `low` and `high` are Wilson's interval, 95 %."""

    value: float
    n: int
    failures: int
    low: float
    high: float

    @property
    def success(self) -> float:
        """Share of successes."""
        return 1.0 - self.failures / self.n


@dataclass(frozen=True, slots=True)
class Curve:
    """One parameter.

    Attributes:
        name: as in a passport, `action_delay_s`.
        unit: of its values, '' for shares.
        points: from mild to bad.
        tolerance: worst value that the policy bears, None where it bears not even the mildest.
        open_end: whether that is the worst that was tried.
    """

    name: str
    unit: str
    points: tuple[Point, ...]
    tolerance: float | None
    open_end: bool

    @property
    def sentence(self) -> str:
        """What it says, for people."""
        if self.tolerance is None:
            return f'{self.name}: not even {self.points[0].value:g} {self.unit}'.rstrip()
        words = 'down to' if self.points[-1].value < self.points[0].value else 'up to'
        end = ', the worst that was tried' if self.open_end else ''
        return f'{self.name}: {words} {self.tolerance:g} {self.unit}'.rstrip() + end

    def document(self) -> dict[str, Any]:
        """Return everything, for a JSON file."""
        return asdict(self)


def sweeps(robot: Robot) -> list[Sweep]:
    """Return what is tried with a robot."""
    mass = float(build_model(robot).body_mass.sum())
    payloads = tuple(round(share * mass, 1) for share in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6))
    joints = ('joint_delay_s', 'imu_delay_s') if robot.floating else ('joint_delay_s',)
    every = [
        Sweep('action_delay_s', 's', DELAYS_S, ('action_delay_s',)),
        Sweep('command_delay_s', 's', (0.0, 0.002, 0.004, 0.006, 0.008, 0.012, 0.016, 0.024), ('command_delay_s',)),
        Sweep('observation_delay_s', 's', DELAYS_S, joints),
        Sweep('payload_kg', 'kg', payloads, ('payload_kg',)),
        Sweep('motor_strength_factor', '', (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4), ('motor_strength_factor',)),
    ]
    if robot.floating:
        every += [
            Sweep('friction', '', (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), ('friction',)),
            Sweep('push_speed_m_s', 'm/s', (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0), ('push_speed_m_s',)),
        ]
    return every


def tolerances(
    trial: Trial,
    workers: Workers,
    *,
    tried: Sequence[Sweep] | None = None,
    episodes: int = EPISODES,
    seen: Callable[[Sequence[Episode]], None] | None = None,
) -> list[Curve]:
    """Find out what a policy bears.

    Args:
        trial: gives everything that is not swept.
        workers: run the episodes.
        tried: sweeps instead of `sweeps(robot)`.
        episodes: at each value, the first of the plan.
        seen: is shown each batch.
    """
    tried = sweeps(trial.robot) if tried is None else tried
    order = plan(trial.level, episodes)
    results: dict[tuple[str, float], list[Episode]] = {(s.name, v): [] for s in tried for v in s.values}

    def tasks() -> Iterator[tuple[Sweep, float, Chunk]]:
        """Yield what is to be run, mildest value first, until a sweep is hopeless."""
        for sweep in tried:
            for milder, value in zip((None, *sweep.values), sweep.values, strict=False):
                # saves work where the outcome is known by now; `_curve` cuts there, whatever was known when
                if milder is not None and _hopeless(results[sweep.name, milder], episodes):
                    break
                for chunk in chunks(order, (), lanes(episodes, workers.jobs)):
                    yield sweep, value, chunk

    for (sweep, value, _), part in workers.each(partial(_at, trial), tasks()):
        results[sweep.name, value] += part
        if seen is not None:
            seen(part)
    success = trial.level.claim.success
    return [
        _curve(s, [(v, results[s.name, v]) for v in s.values if len(results[s.name, v]) == episodes], success) for s in tried
    ]


def _at(trial: Trial, task: tuple[Sweep, float, Chunk]) -> list[Episode]:
    sweep, value, chunk = task
    ranges = trial.level.ranges.model_copy(update={name: [value, value] for name in sweep.ranges})
    return run(replace(trial, level=trial.level.model_copy(update={'ranges': ranges})), chunk.scenario, chunk.indices)


def _hopeless(episodes: Sequence[Episode], planned: int) -> bool:
    return sum(not episode.passed for episode in episodes) > (1.0 - HOPELESS) * planned


def _curve(sweep: Sweep, results: Iterable[tuple[float, list[Episode]]], success: float) -> Curve:
    points: list[Point] = []
    for value, episodes in results:
        n, failures = len(episodes), sum(not episode.passed for episode in episodes)
        points.append(Point(value, n, failures, *wilson(failures, n)))
        if _hopeless(episodes, n):
            break
    borne = 0
    while borne < len(points) and points[borne].success >= success:
        borne += 1
    tolerance = points[borne - 1].value if borne else None
    return Curve(sweep.name, sweep.unit, tuple(points), tolerance, borne == len(sweep.values))
