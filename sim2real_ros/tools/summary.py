# SPDX-License-Identifier: Apache-2.0
"""The summary of a run, from the simulator's trace: were the commands followed, did the robot fall, how old were torques."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sim2real_ros.contract import Contract
from sim2real_ros.errors import RunError
from sim2real_ros.rotations import tilt, world_to_base, xyzw_from_wxyz
from sim2real_ros.sim.verdict import SETTLE_S, fallen, follows


@dataclass(frozen=True, slots=True)
class Segment:
    """A command and when it was given, s of simulated time."""

    begin: float
    end: float
    command: tuple[float, ...]


def summarise(path: Path, segments: list[Segment], mode: str, contract: Contract, *, whole: bool = True) -> int:
    """Print the summary.

    Args:
        path: of the simulator's trace.
        segments: commands that were given.
        mode: at the end.
        contract: of the policy.
        whole: whether every command was given to its end, the policy being followed all the time.

    Returns:
        0 if the policy was followed to the end without a fall and every command was met within 15 % (0.1 for small ones).
    """
    if not path.is_file():
        raise RunError('the simulator left no trace; its own message is above')
    with np.load(path, allow_pickle=False) as archive:
        trace = dict(archive)
    console = Console(markup=False)
    table = Table(title=f'{contract.file.name}: what the simulator saw', title_justify='left')
    for column in ('command x, y, yaw', 'measured', 'time', 'followed'):
        table.add_column(column)
    followed = bool(segments)
    for segment in segments:
        measured, good = _follow(trace, segment)
        followed &= good
        table.add_row(
            _numbers(np.array(segment.command)),
            _numbers(measured),
            f'{segment.end - segment.begin:.1f} s',
            'yes' if good else 'no',
        )
    console.print(table)
    walk = _between(trace, segments[0].begin, segments[-1].end) if segments else np.zeros(len(trace['time']), bool)
    fell = _fell(trace, walk)
    lines = _facts(trace, walk)
    if mode != 'damping':
        lines.append(f'ended in the mode {mode}')
    walked = followed and not fell and whole and mode == 'damping'
    console.print('; '.join(lines))
    verdict = _verdict(walked, fell, whole)
    console.print(verdict, style='green' if walked else 'red')
    return 0 if walked else 1


def _verdict(walked: bool, fell: bool, whole: bool) -> str:
    if walked:
        return 'the robot walked'
    if fell:
        return 'the robot fell'
    if not whole:
        return 'the safety node stopped the robot before the end: its reason is above, more of it in: sim2real trips 1'
    return 'the robot did not do what it was told'


def _between(trace: dict[str, np.ndarray], begin: float, end: float) -> np.ndarray:
    return (trace['time'] >= begin) & (trace['time'] < end)


def _follow(trace: dict[str, np.ndarray], segment: Segment) -> tuple[np.ndarray, bool]:
    rows = _between(trace, min(segment.begin + SETTLE_S, segment.end - 0.1), segment.end)
    if not rows.any():
        return np.full(3, np.nan), False
    quat = xyzw_from_wxyz(trace['qpos'][rows, 3:7])
    planar = world_to_base(quat, trace['qvel'][rows, :3])[:, :2]
    measured = np.append(planar.mean(axis=0), trace['qvel'][rows, 5].mean())
    return measured, follows(measured, np.array(segment.command))


def _fell(trace: dict[str, np.ndarray], walk: np.ndarray) -> bool:
    return bool(fallen(xyzw_from_wxyz(trace['qpos'][walk, 3:7]), trace['qpos'][walk, 2]).any())


def _facts(trace: dict[str, np.ndarray], walk: np.ndarray) -> list[str]:
    if not walk.any():
        return ['the policy was never followed']
    path = np.linalg.norm(np.diff(trace['qpos'][walk, :2], axis=0), axis=1).sum()
    age = trace['command_age'][walk]
    return [
        f'{path:.1f} m in {walk.sum() * (trace["time"][1] - trace["time"][0]):.1f} s',
        f'feet lifted {100 * np.quantile(trace["foot_height"][walk], 0.95):.0f} cm',
        f'peak torque {np.abs(trace["torque"][walk]).max():.1f} N m',
        f'largest lean {tilt(xyzw_from_wxyz(trace["qpos"][walk, 3:7])).max():.2f} rad',
        f'command age {1e3 * np.nanmedian(age):.1f} ms',
    ]


def _numbers(values: np.ndarray) -> str:
    return '  '.join(f'{value:+.2f}' for value in values)
