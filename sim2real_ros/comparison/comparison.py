# SPDX-License-Identifier: Apache-2.0
"""`compare_runs`: two recorded runs of the same robot, policy and commands, and what a reader must know before believing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim2real_ros.comparison.alignment import Alignment, align, resample
from sim2real_ros.comparison.measures import Measures, measure
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import RecordingError
from sim2real_ros.joints import JointMap
from sim2real_ros.recording.run import Run

NOTABLE_LAG_S = 0.005
HELD_PERIODS = 2  # for which the last sample of a stream stands
BASE = (('forward', 'm/s'), ('left', 'm/s'), ('yaw', 'rad/s'))
NAMES = {
    'position': 'the joint positions',
    'velocity': 'the joint velocities',
    'torque': 'the torques',
    'base': 'the velocity of the base',
}
PARTS = {  # of a recording, that are not compared themselves
    'base': 'the IMU',
    'targets': "the policy's targets",
    'ticks': "the policy's trace",
    'goal': 'the goal pose',
    'contacts': 'the foot contacts',
    'modes': 'the modes',
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence about the comparison itself."""

    level: Literal['good', 'warn', 'bad']
    text: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of both runs on the common grid."""

    name: str
    unit: str
    signals: tuple[str, ...]  # (w,) joints, or directions
    a: np.ndarray  # (k, w)
    b: np.ndarray  # (k, w)
    measures: Measures


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side; the second one's differences are b - a."""

    runs: tuple[Run, Run]
    alignment: Alignment
    quantities: dict[str, Quantity]  # position, velocity, torque, base: those that both have
    ages: tuple[np.ndarray, np.ndarray]  # s, of the commands in each run; empty where they are not known
    findings: list[Finding]
    lopsided: bool  # whether one run tells what the other does not

    @property
    def identical(self) -> bool:
        """Whether both tell the same things, and those without any difference."""
        return not self.lopsided and all((np.nan_to_num(q.measures.largest) == 0).all() for q in self.quantities.values())


def compare_runs(a: Run, b: Run) -> Comparison:
    """Set two runs side by side.

    Raises:
        RecordingError: they are of different robots, too little of them overlaps, or no joint position is told by both.
    """
    refuse_other_robots(a, b)
    to_a = JointMap(b.joints, a.joints)
    alignment = align(a, b)
    begin, time = alignment.begin, alignment.time
    at = (begin[0] + time, begin[1] + time)
    quantities: dict[str, Quantity] = {}
    missing: list[Finding] = []
    uneven: list[bool] = []

    def add(name: str, unit: str, signals: tuple[str, ...], left: np.ndarray, right: np.ndarray) -> None:
        """Compare one quantity, (k, n) in each run, or note what is missing of it."""
        left, right = (np.where(np.isfinite(values), values, np.nan) for values in (left, right))
        known = np.isfinite(left).any(axis=0) & np.isfinite(right).any(axis=0)
        told = [np.isfinite(values[:, known]).all(axis=1) for values in (left, right)]
        measures = measure(left, right, alignment.counts & told[0] & told[1], alignment.step_s)
        missing.extend(_silent(name, signals, (a, b), [np.isfinite(v[alignment.counts]).any(axis=0) for v in (left, right)]))
        missing.extend(_short(name, alignment, told) if known.any() else ())
        uneven.append(bool((np.isfinite(left) != np.isfinite(right))[alignment.counts].any()))
        if not np.isnan(measures.rmse).all():
            quantities[name] = Quantity(name, unit, signals, left, right, measures)

    add('position', 'rad', a.joints, *_both(a.states.time, a.states.position, b.states.time, to_a(b.states.position), at))
    add('velocity', 'rad/s', a.joints, *_both(a.states.time, a.states.velocity, b.states.time, to_a(b.states.velocity), at))
    if 'position' not in quantities:
        silent = next((f.text for f in missing), 'the joint positions cannot be compared')
        raise RecordingError(f'{silent}; no moment after {alignment.by} has those of both {a.source} and {b.source}')
    add('torque', 'N m', a.joints, _torque(a, at[0]), to_a(_torque(b, at[1])))
    add('base', '', tuple(name for name, _ in BASE), _base(a, at[0]), _base(b, at[1]))
    ages = (_ages(a, begin[0], time[-1]), _ages(b, begin[1], time[-1]))
    parts = list(_parts(a, b))
    findings = [*_policies(a, b), *_commands(alignment), *missing, *parts, *_lag(quantities), *_notes(a, b)]
    lopsided = any(uneven) or bool(parts) or _known(a) != _known(b)
    return Comparison((a, b), alignment, quantities, ages, findings, lopsided)


def _known(run: Run) -> tuple[bool, bool]:
    return run.contract is not None, run.velocity is not None


def refuse_other_robots(a: Run, b: Run) -> None:
    """Raise RecordingError unless both runs are of one robot."""
    if a.robot and b.robot and a.robot != b.robot:
        raise RecordingError(f'these are different robots: {a.source} is of {a.robot}, {b.source} of {b.robot}')
    only = [sorted(set(x.joints) - set(y.joints)) for x, y in ((a, b), (b, a))]
    if any(only):
        told = '; '.join(f'only {r.source} has {", ".join(own)}' for r, own in zip((a, b), only, strict=True) if own)
        raise RecordingError(f'these are different robots: {told}')


def _both(
    time_a: np.ndarray, a: np.ndarray, time_b: np.ndarray, b: np.ndarray, at: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return _sampled(time_a, a, at[0]), _sampled(time_b, b, at[1])


def _sampled(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return values (k, w) at some times (m,), (m, w): just beyond its ends those of the last sample, NaN farther out.

    Streams of one run do not begin and end with the same instant; one that stopped long before the other tells nothing.
    """
    if not len(time):
        return np.full((len(at), values.shape[1]), np.nan)
    inside = np.clip(at, time[0], time[-1])
    reach = HELD_PERIODS * float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    return np.where((np.abs(at - inside) <= reach)[:, None], resample(time, values, inside), np.nan)


def _torque(run: Run, at: np.ndarray) -> np.ndarray:
    """Return the torques (m, n), NaN where the run does not tell."""
    if run.torques is None:
        return np.full((len(at), len(run.joints)), np.nan)
    return _sampled(run.torques.time, run.torques.torque, at)


def _base(run: Run, at: np.ndarray) -> np.ndarray:
    """Return forward, left and yaw (m, 3) of the base, NaN where the run does not tell."""
    values = np.full((len(at), 3), np.nan)
    if run.odometry is not None:
        values[:, :2] = _sampled(run.odometry.time, run.odometry.lin_vel[:, :2], at)
    if run.base is not None:
        values[:, 2:] = _sampled(run.base.time, run.base.ang_vel[:, 2:], at)
    return values


def _ages(run: Run, begin: float, duration: float) -> np.ndarray:
    if run.torques is None:
        return np.zeros(0)
    inside = (run.torques.time >= begin) & (run.torques.time <= begin + duration)
    ages = run.torques.age[inside]
    return ages[np.isfinite(ages)]


# --- what a reader must know


def _policies(a: Run, b: Run) -> Iterator[Finding]:
    if a.contract is None or b.contract is None:
        silent = ' and '.join(run.source for run in (a, b) if run.contract is None)
        yield Finding('warn', f'the policy is not known: {silent} holds no contract')
    elif a.contract.id != b.contract.id:
        names = ' and '.join(f'{run.contract.file.name} [{run.contract.id}]' for run in (a, b) if run.contract is not None)
        yield Finding('bad', f'the policies differ: {names}; they differ in {", ".join(_differing(a.contract, b.contract))}')
    else:
        yield Finding('good', f'the same policy: {a.contract.file.name} [{a.contract.id}]')


def _differing(a: Contract, b: Contract) -> list[str]:
    left, right = a.file.model_dump(mode='json'), b.file.model_dump(mode='json')
    return [name for name in left if left[name] != right.get(name)]


def _commands(alignment: Alignment) -> Iterator[Finding]:
    if alignment.commands is None:
        yield Finding('warn', 'the commands are not known: one recording does not hold them')
    elif alignment.agreeing == 1.0:
        yield Finding('good', 'the same commands all the time')
    else:
        where = int(np.abs(alignment.commands[0] - alignment.commands[1]).max(axis=1).argmax())
        left, right = ('  '.join(f'{v:g}' for v in command[where]) for command in alignment.commands)
        when = f'at {alignment.time[where]:.2f} s {left} in A and {right} in B'
        if alignment.counts.all():
            yield Finding('bad', f'the commands differ: {when}; everything counts all the same')
        else:
            share = f'{1 - alignment.agreeing:.1%} of the time'
            level: Literal['good', 'warn'] = 'good' if alignment.agreeing > 0.95 else 'warn'
            yield Finding(level, f'the commands differ for {share}, which is left out: {when}')


def _silent(name: str, signals: tuple[str, ...], runs: tuple[Run, Run], told: list[np.ndarray]) -> Iterator[Finding]:
    """Say which signals of a quantity one run does not tell at all; told: (w,) bool of each run."""
    for run, own, other in zip(runs, told, reversed(told), strict=True):
        lacks = [signal for signal, here, there in zip(signals, own, other, strict=True) if there and not here]
        if lacks:
            which = f' ({", ".join(lacks)})' if len(lacks) < len(signals) else ''
            yield Finding('warn', f'{NAMES[name]} cannot be compared{which}: {run.source} does not tell')
    if not (told[0].any() or told[1].any() or name == 'base'):  # an arm has no odometry
        yield Finding('warn', f'{NAMES[name]} cannot be compared: neither recording tells them')


def _parts(a: Run, b: Run) -> Iterator[Finding]:
    """Say which parts one recording holds and the other does not."""
    for run, other in ((a, b), (b, a)):
        lacks = [text for part, text in PARTS.items() if not getattr(run, part) and getattr(other, part)]
        if lacks:
            yield Finding('warn', f'{run.source} does not hold {", ".join(lacks)}, {other.source} does')


def _short(name: str, alignment: Alignment, told: list[np.ndarray]) -> Iterator[Finding]:
    """Say how much of a quantity was left out, as a run does not tell it at all times; told: (k,) bool of each run."""
    counts, both = alignment.counts, alignment.counts & told[0] & told[1]
    if not (both == counts).all():
        who = ' and '.join(letter for letter, rows in zip('AB', told, strict=True) if not rows[counts].all())
        seconds, whole = (alignment.step_s * mask.sum() for mask in (both, counts))
        yield Finding('warn', f'{name} is compared for {seconds:.2f} of {whole:.2f} s: {who} does not tell the rest')


def _lag(quantities: dict[str, Quantity]) -> Iterator[Finding]:
    lag = quantities['position'].measures.lag_of_all_s
    if np.isfinite(lag) and abs(lag) > NOTABLE_LAG_S:
        later, earlier = ('B', 'A') if lag > 0 else ('A', 'B')
        yield Finding('warn', f'{later} is {1e3 * abs(lag):.1f} ms later than {earlier}, as after a delay of sensors or motors')


def _notes(a: Run, b: Run) -> Iterator[Finding]:
    for letter, run in zip('AB', (a, b), strict=True):
        yield from (Finding('warn', f'{letter}: {note}') for note in run.notes)
