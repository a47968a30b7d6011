# SPDX-License-Identifier: Apache-2.0
"""The thread that writes the files of the flight recorder, so that the control loop never waits for a disk."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from sim2real_ros.safety.trip_file import Trip, remove_oldest, save_trip, trips_folder

SILENCE_S = 1.0  # without ticks: what there is gets written
WAITING = 4  # trips that may wait for a slow disk

Note = tuple[int, float, Any]  # ticks written before it, stamp in s, what the policy saw and did
Decode = Callable[[Any], tuple[Any, Any]]


class Window:
    """A trip on its way to a file: which ticks, which notes, and what to say about it.

    Attributes:
        row: number of the tick that tripped, of all that were ever written.
        end: number of the tick after the last one; valid once `closed`.
        stamp: s, of the tick that tripped.
        notes: what the policy saw and did; those that came before it was closed.
        further: trips while the window was open: tick, fault, message.
    """

    def __init__(self, row: int, about: dict[str, Any], notes: Iterable[Note]) -> None:
        self.row, self.end, self.stamp = row, row, 0.0
        self.about = about
        self.further: list[tuple[int, str, str]] = []
        self.notes = notes
        self.closed = threading.Event()

    def close(self, end: int) -> None:
        """Say that no tick will follow; the first call counts."""
        if not self.closed.is_set():
            self.end, self.notes = end, list(self.notes)
            self.closed.set()


class TripWriter:
    """Writes one window after the other. No failure leaves its thread: it is told to `warn`."""

    def __init__(
        self,
        read: Callable[[Window], Trip | None],
        count: Callable[[], int],
        folder: Path | None,
        keep: int,
        saved: Callable[[Path], None] | None,
        warn: Callable[[str], None] | None,
    ) -> None:
        """Start the thread.

        Args:
            read: copies a closed window out of memory; None when it is empty.
            count: ticks written so far.
            folder: where the files go; `trips_folder()` by default.
            keep: files in the folder.
            saved: told the path of each file.
            warn: told why a file could not be written.
        """
        self._read, self._count, self._folder, self._keep = read, count, folder, keep
        self._saved, self._warn = saved, warn
        self._own: set[Path] = set()
        self._queue: SimpleQueue[Window | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name='flight recorder', daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether too many trips wait already."""
        return self._queue.qsize() >= WAITING

    def put(self, window: Window) -> None:
        """Write a window once it is closed."""
        self._queue.put(window)

    def finish(self, timeout_s: float) -> None:
        """Write what waits, and end; return after a time in any case."""
        self._queue.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (window := self._queue.get()) is not None:
            try:
                self._await(window)
                self._save(window)
            except Exception as error:  # whatever it is, the loop must not hear of it
                self._complain(window.about['fault'], error)

    def _await(self, window: Window) -> None:
        """Wait for the ticks after the trip as long as there are any: sensors may be silent, a simulator may be slow."""
        seen = -1
        while not window.closed.wait(SILENCE_S):
            if self._count() == seen:
                window.close(seen)
            seen = self._count()

    def _save(self, window: Window) -> None:
        trip = self._read(window)
        if trip is None:
            return
        folder = self._folder or trips_folder()
        path = save_trip(trip, folder)
        if self._saved is not None:
            self._saved(path)
        self._own.add(path)
        remove_oldest(folder, self._keep, self._own)

    def _complain(self, fault: str, error: Exception) -> None:
        with contextlib.suppress(Exception):
            if self._warn is not None:
                folder = self._folder or trips_folder()
                self._warn(f'the trip {fault} is not recorded in {folder} ({error}); free space there or set ROS_LOG_DIR')


def pack_notes(notes: Iterable[Note], begin: int, decode: Decode | None) -> dict[str, np.ndarray]:
    """Return the notes as the arrays of `Trip.notes`, their ticks counted from the tick `begin`.

    Args:
        notes: oldest first; those from before `begin` are left out.
        begin: first tick that is recorded.
        decode: turns the data of a note into observation and action; None when they are that already. What
            cannot be decoded becomes NaN.
    """
    kept = [note for note in notes if note[0] >= begin]
    pairs = [_numbers(data, decode) for _, _, data in kept]
    return {
        'note_row': np.array([row - begin for row, _, _ in kept], int) - 1,
        'note_stamp': np.array([stamp for _, stamp, _ in kept], float),
        'observation': _rectangle([observation for observation, _ in pairs]),
        'action': _rectangle([action for _, action in pairs]),
    }


def _numbers(data: Any, decode: Decode | None) -> tuple[np.ndarray, np.ndarray]:
    try:
        observation, action = data if decode is None else decode(data)
        return np.asarray(observation, float).ravel(), np.asarray(action, float).ravel()
    except Exception:  # a broken message is no reason to lose the trip
        return np.zeros(0), np.zeros(0)


def _rectangle(rows: list[np.ndarray]) -> np.ndarray:
    full = np.full((len(rows), max((len(row) for row in rows), default=0)), np.nan)
    for i, row in enumerate(rows):
        full[i, : len(row)] = row
    return full
