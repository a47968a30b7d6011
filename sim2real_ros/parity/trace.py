# SPDX-License-Identifier: Apache-2.0
"""`Trace`: what a trainer's own deployment saw and did, tick by tick, from an npz file.

Arrays of k policy ticks:

    t (k,)                       s
    qpos (k, nq), qvel (k, nv)   MuJoCo's layout: a free base first, quaternion wxyz, velocity in the world, rate in the base
    joint_pos, joint_vel (k, n)  instead of them, with base_quat_wxyz or base_quat_xyzw (k, 4) and, in the base frame,
                                 base_ang_vel, base_lin_vel (k, 3); beside qpos and qvel they count instead of those
    command (k, 3) or (3,)       m/s, m/s, rad/s
    goal (k, 7) or (7,)          m, quaternion x, y, z, w
    in__<tensor>, out__<tensor>  what the network was fed and gave
    target (k, n)                joint targets, rad, in the order of `policy_joints`
    meta                         JSON: joints (or mjcf_hinge_joints), policy_joints, command, goal
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.errors import ModelFileError
from sim2real_ros.npz import read_npz
from sim2real_ros.paths import read_file
from sim2real_ros.rotations import world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import LEVEL_XYZW, RobotState

FREE_JOINT = 7  # numbers in qpos, one less in qvel


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded run of k policy ticks."""

    joints: tuple[str, ...]  # order of the states
    policy_joints: tuple[str, ...]  # order of the targets
    states: list[RobotState]  # (k,)
    commands: np.ndarray  # (k, 3) m/s, m/s, rad/s
    goal: np.ndarray | None  # (k, 7) m, quaternion xyzw
    inputs: dict[str, np.ndarray]  # (k, width) by tensor name
    outputs: dict[str, np.ndarray]  # (k, ...) by tensor name
    targets: np.ndarray | None  # (k, n) rad


def load_trace(path: Path) -> Trace:
    """Read a trace.

    Raises:
        ModelFileError: the file cannot be read, or lacks what a trace needs; the message says what.
    """
    try:
        data = read_npz(read_file(path))
        meta = json.loads(str(data['meta'])) if 'meta' in data else {}
        states = _states(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f'{path} is no trace: {error}; docs/parity.md has the format') from None
    joints = meta.get('joints') or meta.get('mjcf_hinge_joints')
    if not joints:
        raise ModelFileError(f'{path} does not tell the order of its joints: meta needs "joints"')
    if len(joints) != len(states[0].joint_pos):
        raise ModelFileError(f'{path} names {len(joints)} joints and has {len(states[0].joint_pos)} positions')
    goal = data.get('goal', meta.get('goal'))
    return Trace(
        tuple(joints),
        tuple(meta.get('policy_joints') or joints),
        states,
        _commands(data, meta, len(states)),
        None if goal is None else np.broadcast_to(np.array(goal, dtype=float), (len(states), 7)).copy(),
        {name: values.reshape(len(values), -1) for name, values in _part(data, 'in__').items()},
        _part(data, 'out__'),
        data.get('target'),
    )


def _part(data: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): values for key, values in data.items() if key.startswith(prefix)}


def _commands(data: Mapping[str, np.ndarray], meta: Mapping[str, Any], count: int) -> np.ndarray:
    command = np.asarray(data.get('command', meta.get('command', (0.0, 0.0, 0.0))), dtype=float)
    return np.broadcast_to(command, (count, command.shape[-1]))[:, :3].copy()


def _states(data: Mapping[str, np.ndarray]) -> list[RobotState]:
    stamps = data['t'].tolist()
    if 'qpos' in data:
        states = [_from_mujoco(*sample) for sample in zip(stamps, data['qpos'], data['qvel'], strict=True)]
    else:
        joints = zip(stamps, data['joint_pos'], data['joint_vel'], strict=True)
        states = [RobotState(*sample, LEVEL_XYZW, np.zeros(3), np.zeros(3)) for sample in joints]
    read = {name: data[name] for name in ('base_ang_vel', 'base_lin_vel') if name in data}
    if 'base_quat_xyzw' in data:
        read['base_quat_xyzw'] = data['base_quat_xyzw']
    elif 'base_quat_wxyz' in data:
        read['base_quat_xyzw'] = xyzw_from_wxyz(data['base_quat_wxyz'])
    rows = (dict(zip(read, row, strict=True)) for row in zip(*read.values(), strict=True))
    return [replace(state, **row) for state, row in zip(states, rows, strict=True)] if read else states


def _from_mujoco(stamp: float, qpos: np.ndarray, qvel: np.ndarray) -> RobotState:
    if len(qpos) == len(qvel):  # bolted down
        return RobotState(stamp, qpos, qvel, LEVEL_XYZW, np.zeros(3), np.zeros(3))
    quat = xyzw_from_wxyz(qpos[3:FREE_JOINT])
    joint_pos, joint_vel = qpos[FREE_JOINT:], qvel[FREE_JOINT - 1 :]
    return RobotState(
        stamp, joint_pos, joint_vel, quat, qvel[3:6], world_to_base(quat, qvel[:3]), base_pos=qpos[:3]
    )  # fmt: skip
