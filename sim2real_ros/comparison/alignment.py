# SPDX-License-Identifier: Apache-2.0
"""Which moment of one run is which moment of the other: both begin when the policy did, and count while commands agree.

Wall time means nothing between two runs, and neither do their stamps. A policy with a gait clock that always runs starts it
in its first tick, so that tick is the best origin; any other begins to move with the first command that it is given. A trace
without policy ticks is aligned by the mode `active`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sim2real_ros.errors import RecordingError
from sim2real_ros.recording.run import Run

SAME_COMMAND = 1e-3  # m/s, rad/s
SHORTEST_S = 0.5  # of a comparison
ROUNDING = 1e-3  # of a step
FINEST_S = 0.001  # of the grid


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two runs on one grid."""

    by: str  # what was taken as the beginning
    begin: tuple[float, float]  # s, on the clock of each run
    time: np.ndarray  # (k,) s from there on
    counts: np.ndarray  # (k,) bool, where commands agree; all of them where they never do
    commands: tuple[np.ndarray, np.ndarray] | None  # (k, 3) of each; None where one does not tell
    agreeing: float  # share of the time in which the commands agree; NaN where one does not tell

    @property
    def step_s(self) -> float:
        """Of the grid."""
        return float(self.time[1] - self.time[0])


def align(a: Run, b: Run) -> Alignment:
    """Align two runs.

    Raises:
        RecordingError: too little of them overlaps.
    """
    by, begin = _beginning(a, b)
    ends = [_end(run, start) for run, start in zip((a, b), begin, strict=True)]
    duration = min(end - start for end, start in zip(ends, begin, strict=True))
    if duration < SHORTEST_S:
        raise RecordingError(
            f'only {max(duration, 0):.2f} s of {a.source} and {b.source} overlap after {by}; {SHORTEST_S:g} s are needed'
        )
    step = max(min(float(np.median(np.diff(run.states.time))) for run in (a, b)), FINEST_S)
    time = step * np.arange(int(np.ceil(duration / step - ROUNDING)))  # what comes at the end is no longer the policy's
    if a.velocity is None or b.velocity is None:
        return Alignment(by, begin, time, np.ones(len(time), bool), None, np.nan)
    commands = (a.velocity.at(begin[0] + time), b.velocity.at(begin[1] + time))
    agree = np.abs(commands[0] - commands[1]).max(axis=1) <= SAME_COMMAND
    counts = agree if agree.sum() * step >= SHORTEST_S else np.ones(len(time), bool)
    return Alignment(by, begin, time, counts, commands, float(agree.mean()))


def resample(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return values (k, w) at some times (m,), (m, w), between samples by a straight line; NaN outside of them."""
    rows = np.append(time[1:] != time[:-1], True)  # of several at one time the last counts
    columns = [np.interp(at, time[rows], column, left=np.nan, right=np.nan) for column in values[rows].T]
    return np.stack(columns, axis=1)


def _beginning(a: Run, b: Run) -> tuple[str, tuple[float, float]]:
    for by, find in BEGINNINGS.items():
        first, second = find(a), find(b)
        if first is not None and second is not None:
            return by, (first, second)
    return 'the first joint state', (float(a.states.time[0]), float(b.states.time[0]))


def _first_tick(run: Run) -> float | None:
    """Return when the policy took its first tick of the longest walk."""
    if run.ticks is None or run.ticks.first.all():
        return None
    starts = np.flatnonzero(run.ticks.first)
    if not len(starts):
        return None
    lengths = np.diff(np.append(starts, len(run.ticks.first)))
    return float(run.ticks.time[starts[lengths.argmax()]])


def _first_commanded_tick(run: Run) -> float | None:
    """Return when a policy without a clock of its own was first told to move."""
    phase = None if run.contract is None else run.contract.file.phase
    first = _first_tick(run)
    if run.ticks is None or first is None or (phase is not None and not phase.stop_at_zero_command):
        return None
    told = (run.ticks.time >= first) & run.ticks.command.any(axis=1)
    return float(run.ticks.time[told.argmax()]) if told.any() else None


def _activation(run: Run) -> float | None:
    spans = run.spans('active')
    return max(spans, key=lambda span: span[1] - span[0])[0] if spans else None


def _first_command(run: Run) -> float | None:
    if run.velocity is None or not run.velocity.command.any():
        return None
    return float(run.velocity.time[np.flatnonzero(run.velocity.command.any(axis=1))[0]])


BEGINNINGS: Mapping[str, Callable[[Run], float | None]] = {
    'the first tick with a command': _first_commanded_tick,
    "the policy's first tick": _first_tick,
    'the mode active': _activation,
    'the first command': _first_command,
}


def _end(run: Run, begin: float) -> float:
    """Return when the policy was no longer followed, or the run ends."""
    last = float(run.states.time[-1])
    followed = [end for start, end in run.spans('active') if end > begin + SHORTEST_S and start <= begin + SHORTEST_S]
    return min([*followed[:1], last])
