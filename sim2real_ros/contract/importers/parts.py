# SPDX-License-Identifier: Apache-2.0
"""Parts of a draft that several formats share: actions of an output tensor, the velocity command, the processing of a term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sim2real_ros.contract.importers.draft import Imported
from sim2real_ros.contract.importers.tables import by_joint, one_or_list, one_or_table

TIMEOUT_S = 0.5
LARGE = 1e6  # a bound that is none


@dataclass(frozen=True)
class Column:
    """What one number of an output tensor does: target = offset + scale * clip(number)."""

    joint: str
    scale: float
    offset: float | None = None  # rad; None: the default position
    clip: tuple[float, float] | None = None
    target_clip: tuple[float, float] | None = None
    type: str = 'joint_position'


def outputs_of(tensor: str, columns: Sequence[Column]) -> dict[str, dict[str, Any]]:
    """Return the entries of `outputs` for a tensor: one, or one per run of neighbours of equal type and clip.

    The entries stand in the order of the tensor, so that the last action keeps its order.
    """
    numbered = list(enumerate(columns))
    runs = [list(run) for _, run in groupby(numbered, key=lambda item: (item[1].type, item[1].clip, item[1].offset is None))]
    if len(runs) == 1:
        return {tensor: _output([column for _, column in runs[0]])}
    entries = {}
    for i, run in enumerate(runs):
        part = [column for _, column in run]
        place = {'tensor': tensor, 'columns': [index for index, _ in run], 'joints': [column.joint for column in part]}
        entries[f'{tensor}_{i}'] = _output(part) | place
    return entries


def _output(columns: Sequence[Column]) -> dict[str, Any]:
    first, joints = columns[0], [column.joint for column in columns]
    output: dict[str, Any] = {'type': first.type, 'scale': one_or_table(joints, [column.scale for column in columns])}
    offsets = [column.offset for column in columns if column.offset is not None]
    if not offsets:
        output['offset'] = 'default' if first.type == 'joint_position' else 'zeros'
    else:
        output['offset'] = 'zeros' if not any(offsets) else by_joint(joints, offsets)
    output['clip'] = None if first.clip is None else list(first.clip)
    bounds = {column.joint: list(column.target_clip) for column in columns if column.target_clip is not None}
    return output | ({'target_clip': bounds} if bounds else {})


def processed(use: dict[str, Any], scale: Any, clip: Sequence[float] | None, order: Sequence[str]) -> dict[str, Any]:
    """Return a term with its scale and clip; their order is stated where there are both."""
    values = scale if isinstance(scale, list) else [scale]
    number = one_or_list([float(value) for value in values])
    if number != 1.0:
        use['scale'] = number
    if clip is not None:
        use['clip'] = list(clip)
    if 'scale' in use and 'clip' in use:
        use['process'] = list(order)
    return use


def bounds_of(pair: Sequence[float] | None) -> list[float] | None:
    """Return [low, high], or None where it bounds nothing."""
    if pair is None or (pair[0] <= -LARGE and pair[1] >= LARGE):
        return None
    return [max(pair[0], -LARGE), min(pair[1], LARGE)]


def put_velocity(imported: Imported, ranges: Mapping[str, Sequence[float]], why: str | None = None) -> None:
    """Put the ranges of the velocity command into a draft.

    Args:
        imported: the draft.
        ranges: [low, high] of x, y, yaw; m/s, m/s, rad/s.
        why: where the source does not state them, why just these.
    """
    imported.contract.setdefault('commands', {})['velocity'] = {}
    for axis, (low, high) in ranges.items():
        path, pair = f'commands.velocity.{axis}', [min(low, 0.0), max(high, 0.0)]
        imported.contract['commands']['velocity'][axis] = pair
        if why is not None:
            imported.assume(path, pair, why, put=False)
        elif pair != [low, high]:
            imported.assume(
                path, pair, f'the source says [{low:g}, {high:g}]; 0, the command of silence, must lie inside', put=False
            )
    imported.assume(
        'commands.velocity.timeout_s', TIMEOUT_S, 'no trainer states how long a command holds; half a second is short'
    )


def rate(imported: Imported, period_s: float) -> None:
    """Put the policy's rate into a draft; a period of 0.02 s is 50 Hz, not 50.0000001."""
    if period_s > 0:
        imported.contract['rate_hz'] = round(1.0 / period_s, 6)


def clock(period_s: float, first_tick: int = 0) -> dict[str, Any]:
    """Return a gait clock of one sine and one cosine that does not look at the command, as an entry `phase`."""
    phase = {'period_s': period_s, 'encoding': ['sin', 'cos'], 'offsets': [0.0], 'timebase': 'policy_ticks'}
    return phase | {'stop_at_zero_command': False} | ({'first_tick': first_tick} if first_tick else {})


def assume_history(imported: Imported, source: str, fields: Sequence[str] = ('layout', 'fill')) -> None:
    """Record that the form of the histories stands in upstream code, not in the file."""
    for name, entry in imported.contract['inputs'].items():
        stack = entry.get('stack')
        if stack is not None and stack['lags'] != [0]:
            for field in fields:
                imported.assume(f'inputs.{name}.stack.{field}', stack[field], source, put=False)
