# SPDX-License-Identifier: Apache-2.0
"""Throughput of the validation engine against bare `mujoco.batch.Batch` stepping of the same robots under the same torques."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import wraps
from typing import Any

import numpy as np

from bench.result import Result
from sim2real_ros.contract import load_contract
from sim2real_ros.robot import load_robot
from sim2real_ros.sim.ground import Plane
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.plan import LANES
from sim2real_ros.validation.plant import Plant
from sim2real_ros.validation.schema import load_validation
from sim2real_ros.validation.scoring import Scores
from sim2real_ros.validation.senses import Senses

EPISODES, SECONDS, ROUNDS = LANES, 4.0, 3  # as many side by side as in a study
BUDGET = 0.7
PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    'physics': ((Plant, 'step'),),
    'policy': ((Controls, '_ask'),),
    'PD, limits and checks': ((Controls, 'step'),),  # the policy's part is taken off below
    'sensors': ((Senses, 'sample'), (Senses, 'note')),
    'scores': ((Scores, 'see_control'), (Scores, 'see_policy')),
}


def throughput() -> Result:
    """Run both on every core, one process each with one thread; the median over all rounds counts."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context('spawn')) as pool:
        rounds = [measured for own in pool.map(measure, range(os.cpu_count() or 1)) for measured in own]
    share = float(np.median([bare / whole for whole, bare, _ in rounds]))
    steps = EPISODES * SECONDS * 500
    whole, bare = (1e6 * float(np.median([times[i] for times in rounds])) / steps for i in range(2))
    spent = {part: np.median([parts[part] / whole for whole, _, parts in rounds]) for part in PARTS}
    where = ', '.join(f'{part} {own:.0%}' for part, own in spent.items())
    return Result(
        'validation of the Go2 at 500 Hz / bare Batch stepping, both on every core',
        f'{share:.2f} ({whole:.0f} and {bare:.0f} us per robot and step; {where}, the rest {1 - sum(spent.values()):.0%})',
        f'at least {BUDGET:g}',
        share >= BUDGET,
    )


def measure(seed: int) -> list[tuple[float, float, dict[str, float]]]:
    """Return seconds of the engine, of bare stepping, and of the engine's parts, round by round."""
    level, _ = load_validation('standard')
    trial = Trial.of(level.model_copy(update={'episode_s': SECONDS}), load_robot('go2'), load_contract('go2_velocity'), seed)
    trial.draw('flat', range(EPISODES))  # imports what it needs
    return [_round(trial) for _ in range(ROUNDS)]


def _round(trial: Trial) -> tuple[float, float, dict[str, float]]:
    parts, torques = dict.fromkeys(PARTS, 0.0), []
    originals = [(owner, name, getattr(owner, name)) for methods in PARTS.values() for owner, name in methods]
    for part, methods in PARTS.items():
        for owner, name in methods:
            setattr(owner, name, _timed(getattr(owner, name), part, parts, torques if part == 'physics' else None))
    try:
        start = time.perf_counter()
        run(trial, 'flat', range(EPISODES))
        whole = time.perf_counter() - start
    finally:
        for owner, name, method in originals:
            setattr(owner, name, method)
    parts['PD, limits and checks'] -= parts['policy']
    plant = Plant(trial.robot, Plane(), trial.draw('flat', range(EPISODES)), trial.pose, trial.height)
    start = time.perf_counter()
    for torque in torques:
        plant.step(torque)
    return whole, time.perf_counter() - start, parts


def _timed(method: Callable[..., Any], part: str, parts: dict[str, float], kept: list[np.ndarray] | None) -> Callable[..., Any]:
    @wraps(method)
    def timed(self: Any, *arguments: Any) -> Any:
        """Call the method and note how long it took."""
        if kept is not None:
            kept.append(arguments[0])
        start = time.perf_counter()
        try:
            return method(self, *arguments)
        finally:
            parts[part] += time.perf_counter() - start

    return timed
