# SPDX-License-Identifier: Apache-2.0
"""The simulator's own trace (`sim/trace.py`, `sim2real run --trace`) as a run: the truth to hold a recording against."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim2real_ros.errors import JointError, RecordingError
from sim2real_ros.joints import JointMap
from sim2real_ros.npz import numbers, read_npz
from sim2real_ros.paths import read_file
from sim2real_ros.recording.run import Base, Joints, Odometry, Run, Torques, longest_part
from sim2real_ros.rotations import world_to_base, xyzw_from_wxyz

FREE = 7  # numbers of a free base in qpos, one less in qvel


def run_of_trace(path: Path, robot: str = '') -> Run:
    """Read a trace; it knows neither policy nor commands, so runs are aligned by the mode alone.

    Raises:
        RecordingError: it is no trace of a simulator; the message says why.
    """
    try:
        data = read_npz(read_file(path))
        time, qpos, qvel, torque, age = (numbers(data, name) for name in ('time', 'qpos', 'qvel', 'torque', 'command_age'))
        joints, mode = _texts(data, 'joints'), np.array(_texts(data, 'mode'))
        hinges = _texts(data, 'hinges') if 'hinges' in data else joints
        _check_shapes(len(joints), len(hinges), time=time, mode=mode, command_age=age, qpos=qpos, qvel=qvel, torque=torque)
        if len(keep := longest_part(time)) < 2:
            raise ValueError('it has no two rows')
        time, qpos, qvel, torque, age, mode = (rows[keep] for rows in (time, qpos, qvel, torque, age, mode))
        free = qpos.shape[1] - len(hinges)
        pick = JointMap(hinges, joints, source='the trace', target='the robot')
        states = Joints(time, pick(qpos[:, free:]), pick(qvel[:, max(free - 1, 0) :]), torque)
        told = np.isfinite(age)
        torques = Torques(time[told] - age[told], torque[told], age[told], mode[told]) if told.any() else None
    except (OSError, ValueError, IndexError, JointError) as error:
        raise RecordingError(f'{path} is no trace of the simulator: {error}') from None
    base = odometry = None
    if free == FREE:
        quat = xyzw_from_wxyz(qpos[:, 3:7])
        base = Base(time, quat, qvel[:, 3:6], np.full((len(time), 3), np.nan))
        odometry = Odometry(time, qpos[:, :3], world_to_base(quat, qvel[:, :3]))
    changes = np.flatnonzero(np.append(True, mode[1:] != mode[:-1]))
    modes = tuple((float(time[i]), str(mode[i])) for i in changes)
    return Run(str(path), robot, joints, states, base, odometry, torques, modes=modes)


def _texts(data: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    """Return an array of text; raises ValueError if it is not there or something else."""
    if name not in data:
        raise ValueError(f'{name} is missing')
    if data[name].ndim != 1 or data[name].dtype.kind not in 'US':
        raise ValueError(f'{name} is {data[name].dtype} of shape {data[name].shape}; a row of names is expected')
    return tuple(data[name].astype(str).tolist())


def _check_shapes(joints: int, hinges: int, **arrays: np.ndarray) -> None:
    """Raise ValueError unless the arrays belong to each other and time is a number everywhere."""
    rows = len(arrays['time']) if arrays['time'].ndim else 0
    for name, values in arrays.items():
        table = name in ('qpos', 'qvel', 'torque')
        if values.ndim != 1 + table or len(values) != rows:
            raise ValueError(f'{name} has the shape {values.shape}; {rows} rows are expected, as in time')
    if not np.isfinite(arrays['time']).all():
        raise ValueError('time is not finite everywhere')
    if arrays['torque'].shape[1] != joints:
        raise ValueError(f'torque has {arrays["torque"].shape[1]} columns for {joints} joints')
    for name, base in (('qpos', FREE), ('qvel', FREE - 1)):
        if (columns := arrays[name].shape[1]) not in (hinges, hinges + base):
            raise ValueError(
                f'{name} has {columns} columns; {hinges} joints need {hinges}, or {hinges + base} with a free base'
            )
