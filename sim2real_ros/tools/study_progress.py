# SPDX-License-Identifier: Apache-2.0
"""The bar of `sim2real validate`: how far it is, how many seconds of robot a second, how long it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sim2real_ros.validation.episode import Episode


class StudyProgress:
    """A bar on a terminal; throughput and failures anywhere.

    Attributes:
        failures: so far.
    """

    def __init__(self, title: str, episodes: int, done: int = 0) -> None:
        columns = (
            TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(), TextColumn('{task.fields[speed]}'),
            TimeRemainingColumn(elapsed_when_finished=True),
        )  # fmt: skip
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self._task = self._bar.add_task(title, total=episodes, completed=done, speed='')
        self._begin, self._robot_s, self._title, self.failures = time.monotonic(), 0.0, title, 0

    def __enter__(self) -> StudyProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def __call__(self, episodes: Sequence[Episode]) -> None:
        """Take note of a batch."""
        self._robot_s += sum(episode.end_s for episode in episodes)
        self.failures += sum(not episode.passed for episode in episodes)
        title = self._title + (f', {self.failures} failed' if self.failures else '')
        self._bar.update(self._task, advance=len(episodes), speed=f'{self.throughput:.0f} robot s/s', description=title)

    def advance(self, steps: int = 1) -> None:
        """Take note of steps that are no batches."""
        self._bar.advance(self._task, steps)

    @property
    def throughput(self) -> float:
        """Seconds of robot per second, so far."""
        return self._robot_s / max(1e-9, time.monotonic() - self._begin)

    @property
    def sentence(self) -> str:
        """What was run here, for people; '' where everything was there already."""
        seconds = time.monotonic() - self._begin
        return f'{self._robot_s:.0f} s of robot in {seconds:.0f} s ({self.throughput:.0f} a second)' if self._robot_s else ''
