# SPDX-License-Identifier: Apache-2.0
"""Inspecting a policy before it meets a robot: every check by itself, with a verdict and the sentence behind it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DependencyError, DocumentError, JointError, Sim2RealError
from sim2real_ros.observation.moment import TOPICS
from sim2real_ros.policy.golden import check_golden
from sim2real_ros.policy.runner import PolicyRunner
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.safety.adoption import adopt
from sim2real_ros.safety.certificate import certify, gain_faults
from sim2real_ros.validation.admission import examine
from sim2real_ros.validation.tolerance import command_age_margin

RUNS = 500  # of the network, for its latency
BUDGET = 0.25  # of the policy period that the network may take, at its 99th percentile
RANGES = (1.0, 10.0, 1000.0)  # what observations are drawn from, to see how far actions go

Verdict = Literal['pass', 'warn', 'fail', 'skip']


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    verdict: Verdict
    detail: str


def inspect(policy: str, robot_name: str | None = None, command_age_s: float | None = None) -> list[Check]:
    """Check a policy; never raises for what is wrong with it.

    Args:
        policy: what a user calls it.
        robot_name: robot to hold it against, instead of the contract's own.
        command_age_s: how old commands are at the motors, as measured, to be held against what the policy bears.
    """
    try:
        contract = load_contract(policy)
    except Sim2RealError as error:
        return [Check('contract', 'fail', str(error))]
    checks = [Check('contract', 'pass', f'{contract.file.name}, id {contract.id}'), _hash(contract), _assumptions(contract)]
    checks += _against_robot(contract, robot_name or contract.file.robot, asked=robot_name is not None)
    checks += _papers(contract, robot_name or contract.file.robot, command_age_s)
    try:
        runner = PolicyRunner(contract)
    except Sim2RealError as error:
        return [*checks, Check('network', 'fail', str(error))]
    checks.append(Check('network', 'pass', _shapes(runner)))
    for check in (_golden, _latency, _ranges, _not_finite, _sensors):
        checks += _guarded(check, runner)
    return checks


def passed(checks: list[Check]) -> bool:
    """Return whether nothing failed; warnings do not count."""
    return all(check.verdict != 'fail' for check in checks)


def _guarded(check: Callable[[PolicyRunner], Iterator[Check]], runner: PolicyRunner) -> list[Check]:
    try:
        return list(check(runner))
    except Sim2RealError as error:
        return [Check(check.__name__.strip('_').replace('_', ' '), 'fail', str(error))]


def _hash(contract: Contract) -> Check:
    return Check('hash', 'pass', f'sha256 {contract.file.model.sha256}')


def _assumptions(contract: Contract) -> Check:
    assumed = contract.file.assumptions
    if not assumed:
        return Check('assumptions', 'pass', 'none')
    return Check('assumptions', 'warn', f'{len(assumed)} values were assumed at import: {", ".join(a.field for a in assumed)}')


def _against_robot(contract: Contract, robot_name: str, *, asked: bool) -> list[Check]:
    try:
        robot = load_robot(robot_name)
    except Sim2RealError as error:
        return [Check('robot', 'fail' if asked else 'skip', f'{error}; without it joints, pose and gains are not checked')]
    checks = [_adopted(robot, contract)]
    extra = [joint for joint in robot.joints if joint not in contract.joints]
    if extra:
        checks.append(Check('joints left alone', 'warn', f'the policy does not drive {", ".join(extra)}: they hold the pose'))
    if checks[0].verdict == 'pass':
        checks.append(_gains(robot, contract))
    return checks


def _papers(contract: Contract, robot_name: str, command_age_s: float | None) -> list[Check]:
    """Check the passport, and the age of commands where it was measured."""
    try:
        robot = load_robot(robot_name)
    except Sim2RealError:
        robot = None  # told already
    admission = examine(contract, robot)
    wrong: Verdict = 'warn' if admission.missing else 'fail'
    checks = [Check('passport', 'pass' if admission.granted else wrong, admission.text)]
    if command_age_s is not None:
        tolerances = admission.passport.tolerances if admission.passport and admission.granted else {}
        checks.append(Check('command age', *command_age_margin(tolerances, command_age_s)))
    return checks


def _adopted(robot: Robot, contract: Contract) -> Check:
    try:
        adopt(robot, contract)
    except (JointError, DocumentError) as error:
        return Check(f'robot {robot.name}', 'fail', str(error))
    same = contract.joints == robot.joints
    order = 'in its order' if same else 'in an order of its own, matched by name'
    return Check(f'robot {robot.name}', 'pass', f'{len(contract.joints)} joints {order}; default pose inside the limits')


def _gains(robot: Robot, contract: Contract) -> Check:
    try:
        certificate = certify(robot)
        faults = gain_faults(robot, adopt(robot, contract).gains, certificate, 'gains')
    except DependencyError as error:
        return Check('gains', 'skip', str(error))
    if np.isnan(certificate.inertia_low).all():
        return Check('gains', 'skip', next(iter(certificate.weak.values()), 'no certificate'))
    return Check('gains', 'fail', '; '.join(faults)) if faults else Check('gains', 'pass', 'the control rate can hold them')


def _shapes(runner: PolicyRunner) -> str:
    inputs = ', '.join(f'{name} {runner.builder.width(name)}' for name in runner.builder.slots)
    return f'inputs {inputs}; {runner.contract.action_width} actions; warm-up {runner.network.warm_up_ms:.2f} ms'


def _golden(runner: PolicyRunner) -> Iterator[Check]:
    widths = {name: runner.builder.width(name) for name in runner.builder.slots}
    worst = check_golden(runner.contract, widths)
    if worst is None:
        yield Check('golden vectors', 'warn', 'none: nothing shows that this machine computes what the trainer did')
    else:
        yield Check('golden vectors', 'pass', f'reproduced, largest difference {worst:.1e}')


def _latency(runner: PolicyRunner) -> Iterator[Check]:
    feed = _observations(runner, np.zeros)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        runner.network.run(feed)
        times.append(1e3 * (time.perf_counter() - start))
    runner.network.reset()
    p50, p99, worst = np.quantile(times, (0.5, 0.99, 1.0))
    allowed = 1e3 * BUDGET * runner.contract.period_s
    detail = f'p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {worst:.2f} ms of {RUNS}; p99 may take {allowed:.1f} ms'
    yield Check('latency', 'pass' if p99 <= allowed else 'warn', detail)


def _ranges(runner: PolicyRunner) -> Iterator[Check]:
    rng, said, good = np.random.default_rng(0), [], True
    for extent in RANGES:
        largest = 0.0
        for _ in range(20):
            outputs = runner.network.run(_observations(runner, _uniform(rng, extent)))
            largest = max(largest, *(float(np.abs(values).max()) for values in outputs.values()))
            good &= bool(np.isfinite(largest))
        said.append(f'{extent:g}: {largest:.3g}')
    runner.network.reset()
    detail = f'largest action for observations within +-: {", ".join(said)}'
    yield Check('range of actions', 'pass' if good else 'fail', detail)


def _not_finite(runner: PolicyRunner) -> Iterator[Check]:
    """A network that swallows a NaN hides a broken sensor; one that passes it on is caught by us."""
    feed = _observations(runner, np.zeros)
    next(iter(feed.values()))[0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        outputs = runner.network.run(feed)
    runner.network.reset()
    hidden = all(np.isfinite(values).all() for values in outputs.values())
    what = 'the network hides a NaN of its input' if hidden else 'a NaN of the input reaches the actions'
    yield Check('NaN', 'pass', f'{what}; observations and actions that are not finite are refused before and after it')


def _sensors(runner: PolicyRunner) -> Iterator[Check]:
    needs = [TOPICS.get(need, need) for need in runner.builder.needs]
    yield Check('sensors', 'pass', ', '.join(['joint_states', *needs]))


def _uniform(rng: np.random.Generator, extent: float) -> Callable[[int], np.ndarray]:
    return lambda n: rng.uniform(-extent, extent, n)


def _observations(runner: PolicyRunner, make: Callable[[int], np.ndarray]) -> dict[str, np.ndarray]:
    return {name: make(runner.builder.width(name)).astype(np.float32) for name in runner.builder.slots}
