# SPDX-License-Identifier: Apache-2.0
"""`sim2real trips [N|FILE]`: the trips that the flight recorder of the safety node kept, or one of them in detail."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sim2real_ros.errors import NotFoundError, OutputError, Sim2RealError
from sim2real_ros.safety.trip_file import Trip, load_meta, load_trip, trip_files, trips_folder, utc
from sim2real_ros.tools.trip_report import print_trip

WIDTH = 120  # characters, where the output is no terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('trip', nargs='?', help='number in the list, 1 is the newest, or a file; without it, the list')
    parser.add_argument('--folder', type=Path, help='where the trips are (default: the folder of the ROS logs)')
    parser.add_argument('--csv', type=Path, metavar='OUT', help='also write the rows of the trip here')


def main(arguments: argparse.Namespace) -> int:
    """List the trips or print one."""
    folder = arguments.folder or trips_folder()
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    if arguments.trip is None:
        if arguments.csv is not None:
            raise OutputError('--csv writes the rows of one trip: say which, `sim2real trips 1 --csv OUT` for the newest')
        list_trips(console, folder)
        return 0
    path = find_trip(arguments.trip, folder)
    trip = load_trip(path)
    print_trip(console, path, trip)
    if arguments.csv is not None:
        write_csv(trip, arguments.csv)
        console.print(f'{len(trip.columns["stamp"])} rows written to {arguments.csv}')
    return 0


def list_trips(console: Console, folder: Path) -> None:
    """Print a table of the trips in a folder, newest first; what cannot be read is named below it."""
    files = trip_files(folder)
    if not files:
        console.print(
            f'No trip is recorded in {folder}: the safety node has stopped no robot yet, or it logs elsewhere.', soft_wrap=True
        )
        return
    table = Table(title=f'trips in {folder}', title_justify='left', box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ('#', 'UTC', 'robot', 'policy', 'fault'):
        table.add_column(column, no_wrap=True)
    table.add_column('message', overflow='fold')
    table.add_column('s before, after', justify='right')
    unreadable = []
    for number, path in enumerate(files, start=1):
        try:
            meta = load_meta(path)
        except Sim2RealError as error:
            unreadable.append(f'#{number} {error}')
            continue
        fault = meta['fault'] + (f' (+{len(meta["further"])})' if meta.get('further') else '')
        table.add_row(
            str(number), f'{utc(meta["unix_time"]):%Y-%m-%d %H:%M:%S}', meta['robot'], meta['policy'] or '-', fault,
            meta['message'], f'{meta["before_s"]:.1f} {meta["after_s"]:.1f}',
        )  # fmt: skip
    console.print(table)
    for line in unreadable:
        console.print(line, style='red', soft_wrap=True)


def find_trip(text: str, folder: Path) -> Path:
    """Return the file of a trip by its number in the list, its path or its name in the folder.

    Raises:
        NotFoundError: there is none.
    """
    files = trip_files(folder)
    if text.isdecimal():
        if 1 <= int(text) <= len(files):
            return files[int(text) - 1]
        has = f'has the trips 1 to {len(files)}' if files else 'has none'
        raise NotFoundError(f'there is no trip {text}: {folder} {has}; `sim2real trips` lists them')
    path = Path(text).expanduser()
    return folder / text if not path.exists() and (folder / text).exists() else path


def write_csv(trip: Trip, path: Path) -> None:
    """Write one line per tick; vectors take a column per joint or axis, the mode is written by its name.

    Raises:
        OutputError: the file cannot be written.
    """
    names, parts = [], []
    for name, column in trip.columns.items():
        suffixes = trip.joints if column.shape[1:] == (len(trip.joints),) and not name.startswith('base') else 'xyzw'
        names += [name] if column.ndim == 1 else [f'{name}.{suffix}' for suffix, _ in zip(suffixes, column.T, strict=False)]
        parts += [_words(trip) if name == 'mode' else column.astype(object).reshape(len(column), -1)]
    try:
        with path.open('w', newline='', encoding='utf-8') as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(np.concatenate(parts, axis=1).tolist())
    except OSError as error:
        raise OutputError(f'--csv {path}: {error.strerror or error}; give a file in a folder that you may write to') from None


def _words(trip: Trip) -> np.ndarray:
    return np.array([trip.mode(row) for row in range(len(trip.columns['mode']))], object)[:, None]
