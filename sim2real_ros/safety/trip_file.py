# SPDX-License-Identifier: Apache-2.0
"""The record of one trip as a file: an npz of plain arrays and a JSON string, readable with numpy alone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.errors import NotFoundError, TripFileError

FORMAT = 'sim2real trip 1'
META = ('fault', 'message', 'robot', 'policy', 'contract', 'unix_time', 'row', 'before_s', 'after_s', 'modes', 'reasons')
NOTES = ('note_row', 'note_stamp', 'observation', 'action')
OURS = re.compile(r'\d{8}T\d{6}Z_.+\.npz(\.part)?')  # files that may be removed to make room
UNREADABLE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def columns(n: int) -> dict[str, tuple[int, ...]]:
    """Return the name and the shape of what is recorded in each tick of a robot with n joints."""
    return {
        'stamp': (),  # s, of the joint sample
        'mode': (),  # index in meta `modes`
        'imu_age': (),  # s
        'target_stamp': (),  # s, of the state that the targets answer
        'joint_pos': (n,),  # rad
        'joint_vel': (n,),  # rad/s
        'base_quat_xyzw': (4,),
        'base_ang_vel': (3,),  # rad/s, base frame
        'target_position': (n,),  # rad
        'target_velocity': (n,),  # rad/s
        'target_effort': (n,),  # N m
        'torque_wanted': (n,),  # N m, before any limit
        'torque_rate': (n,),  # N m, after this limit, as the next two
        'torque_envelope': (n,),
        'torque_barrier': (n,),
        'torque_sent': (n,),  # N m
        'reasons': (n,),  # bit mask, meta `reasons`
    }


@dataclass(frozen=True, slots=True)
class Trip:
    """What happened around a trip. Joints in robot order; NaN where there was nothing.

    Attributes:
        joints: n names.
        columns: the arrays of `columns`, each (k, *shape), one row per tick.
        notes: what the policy saw and did: note_row (m,) is the tick after which it was known, negative for before the
            first one; note_stamp (m,) s; observation (m, o); action (m, a). Narrower ones are filled up with NaN.
        meta: the keys of `META` and the versions; `row` is the tick that tripped.
    """

    joints: tuple[str, ...]
    columns: dict[str, np.ndarray]
    notes: dict[str, np.ndarray]
    meta: dict[str, Any]

    @property
    def row(self) -> int:
        """The tick that tripped."""
        return int(self.meta['row'])

    def mode(self, row: int) -> str:
        """Return the name of the mode in a tick."""
        return str(self.meta['modes'][int(self.columns['mode'][row])])

    def reasons(self, mask: int) -> str:
        """Return the names of the bits of a mask, as they were called when the trip was recorded."""
        return ' '.join(name.lower() for name, bit in self.meta['reasons'].items() if mask & bit)


def utc(unix_time: float) -> datetime:
    """Return a time of the system clock in UTC."""
    return datetime.fromtimestamp(unix_time, timezone.utc)


def trips_folder() -> Path:
    """Return where trips are kept: `sim2real_trips` in the folder of the ROS logs."""
    log, home = os.environ.get('ROS_LOG_DIR'), os.environ.get('ROS_HOME')
    path = Path(log) if log else Path(home or '~/.ros') / 'log'
    with contextlib.suppress(RuntimeError):  # a user without a home
        return path.expanduser() / 'sim2real_trips'
    return Path(tempfile.gettempdir()) / 'sim2real_trips'


def trip_files(folder: Path) -> list[Path]:
    """Return the trips in a folder, newest first, going by their names."""
    files = folder.iterdir() if folder.is_dir() else iter(())
    return sorted((f for f in files if f.suffix == '.npz' and OURS.fullmatch(f.name)), key=lambda f: f.name, reverse=True)


def save_trip(trip: Trip, folder: Path) -> Path:
    """Write a trip under a new name; the file is whole or absent, also when the power goes.

    Raises:
        OSError: the disk is full, the folder cannot be written, ...
    """
    folder.mkdir(parents=True, exist_ok=True)
    meta = {'format': FORMAT} | trip.meta
    path, part = _claim(folder, meta)
    try:
        with part.open('wb') as file:
            arrays = trip.columns | trip.notes
            np.savez_compressed(file, joints=np.array(trip.joints), meta=np.array(json.dumps(meta)), **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def _claim(folder: Path, meta: dict[str, Any]) -> tuple[Path, Path]:
    """Return a name that no file has, and the existing, empty file to write to until then."""
    robot, fault = (re.sub(r'[^A-Za-z0-9_-]+', '-', meta[key])[:60] or 'unnamed' for key in ('robot', 'fault'))
    stem = f'{utc(meta["unix_time"]):%Y%m%dT%H%M%SZ}_{robot}_{fault}'
    number = 1
    while True:
        path = folder / (f'{stem}.npz' if number == 1 else f'{stem}_{number}.npz')
        part = path.with_name(path.name + '.part')
        number += 1
        with contextlib.suppress(FileExistsError):
            part.touch(exist_ok=False)
            if not path.exists():  # looked at last: another process may have finished this very name
                return path, part
            part.unlink()


def remove_oldest(folder: Path, keep: int, own: set[Path]) -> None:
    """Keep so many trips, going by their names; `own` go last: a robot without a clock may date its newest trips the oldest."""
    files = sorted((f for f in folder.iterdir() if OURS.fullmatch(f.name)), key=lambda f: (f in own, f.name))
    for file in files[: max(0, len(files) - keep)]:
        file.unlink(missing_ok=True)


def load_meta(path: Path) -> dict[str, Any]:
    """Read what a trip was, without its rows.

    Raises:
        NotFoundError: there is no such file.
        TripFileError: it is not the record of a trip, or a part of one.
    """
    with _archive(path) as archive:
        return _meta(archive)


def load_trip(path: Path) -> Trip:
    """Read a trip and check that it is complete.

    Raises:
        NotFoundError: there is no such file.
        TripFileError: it is not the record of a trip, or a part of one.
    """
    with _archive(path) as archive:
        meta = _meta(archive)
        joints = tuple(str(name) for name in archive['joints'])
        shapes = columns(len(joints))
        trip = Trip(joints, {name: archive[name] for name in shapes}, {name: archive[name] for name in NOTES}, meta)
        k = len(trip.columns['stamp'])
        for name, shape in shapes.items():
            if trip.columns[name].shape != (k, *shape):
                raise ValueError(f'{name} has the shape {trip.columns[name].shape}, it should be {(k, *shape)}')
        if len({len(trip.notes[name]) for name in NOTES}) > 1:
            raise ValueError('the notes of the policy differ in number')
        if not 0 <= trip.row < k:
            raise ValueError(f'the trip is at row {trip.row} of {k}')
        if not np.isin(trip.columns['mode'], range(len(meta['modes']))).all():
            raise ValueError('a mode has no name')
        return trip


def _meta(archive: Any) -> dict[str, Any]:
    meta = json.loads(str(archive['meta']))
    if meta['format'] != FORMAT:
        raise ValueError(f'its format is "{meta["format"]}", this version reads "{FORMAT}"')
    if missing := [key for key in META if key not in meta]:
        raise ValueError(f'it does not say {", ".join(missing)}')
    return dict(meta)


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[Any]:
    try:
        with path.open('rb') as file:
            if not zipfile.is_zipfile(file):
                raise ValueError('it is no npz archive')
        with np.load(path, allow_pickle=False) as archive:
            yield archive
    except FileNotFoundError:
        raise NotFoundError(f'{path}: there is no such file; `sim2real trips` lists those that were recorded') from None
    except UNREADABLE as error:
        what = f'no {error.args[0]} in it' if isinstance(error, KeyError) and error.args else str(error) or type(error).__name__
        raise TripFileError(
            f'{path}: not the record of a trip, or cut short ({what}); copy it again from the robot, or delete it'
        ) from None
