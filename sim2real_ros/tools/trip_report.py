# SPDX-License-Identifier: Apache-2.0
"""One recorded trip as text: the reason, the sensors, the joints, the ticks before it, the limits and the worst values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sim2real_ros.rotations import tilt
from sim2real_ros.safety.trip_file import Trip, utc

TICKS = 10  # shown before the trip
LIMITED_S = 1.0  # in which the work of the limits is counted
STAGES = ('torque_wanted', 'torque_rate', 'torque_envelope', 'torque_barrier', 'torque_sent')


def print_trip(console: Console, path: Path, trip: Trip) -> None:
    """Print everything."""
    meta = trip.meta
    policy = f'policy {meta["policy"]} [{meta["contract"]}]' if meta['policy'] else 'no policy'
    console.print(f'{utc(meta["unix_time"]):%Y-%m-%d %H:%M:%S} UTC, robot {meta["robot"]}, {policy}')
    console.print(f'{meta["fault"]}: {meta["message"]}', style='bold red')
    for row, fault, message in meta.get('further', []):
        console.print(f'then, after {_since(trip, row):+.3f} s, {fault}: {message}')
    before = trip.mode(trip.row - 1) if trip.row else 'nothing recorded'
    console.print(
        f'{len(trip.columns["stamp"])} ticks, {meta["before_s"]:.2f} s before and {meta["after_s"]:.2f} s after; '
        f'mode {before}, then {trip.mode(trip.row)}\n{path}\n',
        soft_wrap=True,
    )
    console.print(_sensors(trip))
    console.print(_joints(trip))
    console.print(_ticks(trip))
    console.print(_limits(trip))
    console.print(_worst(trip))


def _since(trip: Trip, row: int) -> float:
    """Return s from the trip to a tick."""
    stamp = trip.columns['stamp']
    return float(stamp[min(max(row, 0), len(stamp) - 1)] - stamp[trip.row])


def _number(value: float, digits: int = 2) -> str:
    return f'{value:.{digits}f}' if np.isfinite(value) else '-' if np.isnan(value) else f'{value}'


def _table(title: str, numbers: tuple[str, ...], before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> Table:
    """Return an empty table: columns of words, of numbers, of words."""
    table = Table(title=title, title_justify='left', box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in before:
        table.add_column(column, no_wrap=True)
    for column in numbers:
        table.add_column(column, no_wrap=True, justify='right')
    for column in after:
        table.add_column(column, overflow='fold')
    return table


def _sensors(trip: Trip) -> Table:
    columns, row = trip.columns, trip.row
    stamp, velocity = columns['stamp'], np.abs(columns['joint_vel'][row])
    fastest = int(np.nan_to_num(velocity, nan=np.inf).argmax())
    period = f'{1e3 * (stamp[row] - stamp[row - 1]):.1f} ms after the one before' if row else 'the first one'
    table = Table(title='what the sensors said', title_justify='left', show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row('joint state', f'stamp {stamp[row]:.4f} s, {period}')
    table.add_row('base', f'leans by {_number(_lean(columns["base_quat_xyzw"][row]))} rad')
    table.add_row('quaternion x, y, z, w', '  '.join(_number(v, 3) for v in columns['base_quat_xyzw'][row]))
    table.add_row('angular velocity', '  '.join(_number(v) for v in columns['base_ang_vel'][row]) + '  rad/s')
    table.add_row('IMU sample', f'{_number(1e3 * columns["imu_age"][row], 1)} ms older than the joint state')
    table.add_row('targets', _targets(trip))
    table.add_row('fastest joint', f'{trip.joints[fastest]} at {_number(columns["joint_vel"][row, fastest])} rad/s')
    table.add_row('', '')
    return table


def _targets(trip: Trip) -> str:
    """Return how old the targets were that counted at the trip, or the last ones before it."""
    stamps = trip.columns['target_stamp'][: trip.row + 1]
    counted = np.flatnonzero(np.isfinite(stamps))
    if not counted.size:
        return 'none were recorded'
    age = _number(1e3 * (trip.columns['stamp'][trip.row] - stamps[counted[-1]]), 1)
    return (
        f'answer a state of {age} ms before'
        if counted[-1] == trip.row
        else f'none count; the last answer a state of {age} ms before'
    )


def _joints(trip: Trip) -> Table:
    columns, row = trip.columns, trip.row
    stages = ('wanted', 'rate', 'envel.', 'barrier', 'sent')
    title = 'joints at the trip: rad, rad/s; torque in N m as wanted, after each limit where it differs, and as sent'
    table = _table(title, ('q', 'v', 'target', *stages), ('joint',), ('reasons',))
    for i, joint in enumerate(trip.joints):
        torque = [float(columns[stage][row, i]) for stage in STAGES]
        shown = [_number(torque[0])]
        shown += ['' if now == last else _number(now) for last, now in zip(torque[:3], torque[1:4], strict=True)]
        state = (_number(columns[name][row, i]) for name in ('joint_pos', 'joint_vel', 'target_position'))
        table.add_row(joint, *state, *shown, _number(torque[4]), trip.reasons(int(columns['reasons'][row, i])))
    return table


def _ticks(trip: Trip) -> Table:
    columns, age = trip.columns, _target_age(trip)
    title = f'the last {TICKS} ticks before it, and the trip itself: largest values over the joints'
    table = _table(
        title, ('ms', 'lean', '|gyro|', '|v|', '|wanted|', '|sent|', 'targets ms', 'IMU ms'), (), ('mode', 'reasons')
    )
    for row in range(max(0, trip.row - TICKS), trip.row + 1):
        gyro = float(np.linalg.norm(columns['base_ang_vel'][row]))
        peaks = (np.abs(columns[name][row]).max() for name in ('joint_vel', 'torque_wanted', 'torque_sent'))
        table.add_row(
            f'{1e3 * _since(trip, row):.1f}', _number(_lean(columns['base_quat_xyzw'][row])), _number(gyro),
            *(_number(float(peak)) for peak in peaks), _number(1e3 * age[row], 1), _number(1e3 * columns['imu_age'][row], 1),
            trip.mode(row), trip.reasons(int(np.bitwise_or.reduce(columns['reasons'][row]))),
        )  # fmt: skip
    return table


def _limits(trip: Trip) -> Table | str:
    """Return which limit altered which joints in the last second."""
    stamp = trip.columns['stamp'][: trip.row + 1]
    recent = np.flatnonzero(stamp >= stamp[max(0, trip.row - 1)] - LIMITED_S)
    masks = trip.columns['reasons'][recent]
    rows = []
    for name, bit in trip.meta['reasons'].items():
        hit = (masks & np.uint32(bit)) != 0
        if hit.any():
            count = hit.sum(axis=0)
            worst = [f'{trip.joints[i]} {count[i]}' for i in np.argsort(-count, kind='stable') if count[i]]
            more = f', {len(worst) - 4} more' if len(worst) > 4 else ''
            rows.append((name.lower(), f'{hit.any(axis=1).mean():.0%}', ', '.join(worst[:4]) + more))
    if not rows:
        return 'no limit altered a torque in the last second\n'
    table = _table(
        f'what altered torques in the last second before it, {len(recent)} ticks', (), ('by', 'of ticks'), ('joints',)
    )
    for row in rows:
        table.add_row(*row)
    return table


def _worst(trip: Trip) -> Table:
    """Return the largest values up to the trip, where and when."""
    c, until = trip.columns, trip.row + 1
    values = {
        'joint speed, rad/s': np.abs(c['joint_vel']),
        'distance from the target, rad': np.abs(c['target_position'] - c['joint_pos']),
        'torque wanted, N m': np.abs(c['torque_wanted']),
        'torque sent, N m': np.abs(c['torque_sent']),
        'lean, rad': np.array([_lean(quat) for quat in c['base_quat_xyzw']]),
        'angular velocity, rad/s': np.linalg.norm(c['base_ang_vel'], axis=1),
        'gap between joint states, ms': 1e3 * np.diff(c['stamp'], prepend=c['stamp'][0]),
        'age of the IMU sample, ms': 1e3 * c['imu_age'],
        'age of the targets, ms': 1e3 * _target_age(trip),
    }
    table = _table('worst values up to the trip', ('value', 's'), ('what',), ('where',))
    for name, value in values.items():
        seen = value[:until].reshape(until, -1)
        if np.isnan(seen).all():
            continue
        row, joint = np.unravel_index(int(np.nanargmax(seen)), seen.shape)
        table.add_row(
            name,
            _number(float(seen[row, joint])),
            f'{_since(trip, int(row)):+.3f}',
            trip.joints[joint] if value.ndim == 2 else '',
        )
    if len(action := trip.notes['action']) and action.size and not np.isnan(action).all():
        table.add_row('action of the policy', _number(float(np.nanmax(np.abs(action)))), '', f'{len(action)} answers recorded')
    return table


def _target_age(trip: Trip) -> np.ndarray:
    """Return s, (k,), from the state that the targets answer to the tick."""
    return trip.columns['stamp'] - trip.columns['target_stamp']


def _lean(quat_xyzw: np.ndarray) -> float:
    return float(tilt(quat_xyzw)) if np.isfinite(quat_xyzw).all() else np.nan
