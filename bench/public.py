# SPDX-License-Identifier: Apache-2.0
"""The policy tick of the public policy that looks back farthest, of those in `../shared/third_party`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from bench.result import Result
from bench.stages import median_us, reference_network
from sim2real_ros.contract.importers import import_policy
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.network import open_session
from sim2real_ros.signals import LEVEL_XYZW, RobotState

THIRD_PARTY = Path(__file__).resolve().parents[2] / 'shared' / 'third_party'


def history_tick() -> Result:
    """Observation and action of the public policy with the largest history, against the budget of a policy tick."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        runners = _with_history(folder)
        if not runners:
            return Result(
                'policy tick with the largest history', f'skipped: no such policy in {THIRD_PARTY.name}', 'at most 1', True
            )
        runner = max(runners, key=_seen)
        session, feed = open_session(reference_network(folder)), {'obs': np.zeros((1, 48), np.float32)}
        n, command = len(runner.contract.joints), np.array([0.5, 0.0, 0.1])
        state = RobotState(0.0, np.zeros(n), np.zeros(n), LEVEL_XYZW, *np.zeros((2, 3)), base_pos=np.zeros(3))
        outputs = runner.network.run({name: np.zeros(runner.builder.width(name), np.float32) for name in runner.builder.slots})
        runner.network.run = lambda _: outputs  # type: ignore[method-assign] - the network is measured on its own
        network, tick = median_us(lambda: session.run(None, feed), lambda: runner.step(state, command))
    return Result(
        f'the same of {runner.contract.file.name}: {n} joints, {runner.builder.depth + 1} ticks, {_seen(runner)} numbers',
        f'{tick:.0f} us / {network:.0f} us = {tick / network:.2f}',
        'at most 1',
        tick <= network,
    )


def _with_history(folder: Path) -> list[PolicyRunner]:
    """Import what can be imported with nothing said; return those that look back."""
    runners = []
    for source in sorted(path for path in THIRD_PARTY.glob('*') if (path / 'spec.json').exists()):
        try:
            runners.append(PolicyRunner(import_policy(source, folder / source.name)))
        except Sim2RealError:
            continue  # it wants a preset or the like
    return [runner for runner in runners if runner.builder.depth > 0]


def _seen(runner: PolicyRunner) -> int:
    """Return how many numbers its network sees."""
    return sum(runner.builder.width(name) for name in runner.builder.slots)
