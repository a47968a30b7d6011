# SPDX-License-Identifier: Apache-2.0
"""unitree_rl_lab and unitree_rl_mjlab: `params/deploy.yaml` beside `exported/policy.onnx`.

Two joint orders stand in one file: gains are in the order of the motors, everything else in the order of the policy. Upstream
code: deploy/include/isaaclab (clip, then scale, then history; history per term, oldest first, filled with the first value;
clip of an action bounds the target), source/.../utils/export_deploy_cfg.py (all numbers rounded to 3 significant digits).
"""

from __future__ import annotations

from pathlib import Path

from sim2real_ros.contract.importers.deploy_terms import observation_inputs
from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import Column, assume_history, outputs_of, put_velocity, rate
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, single_file, yaml_files
from sim2real_ros.contract.importers.tables import by_joint, note_rounding
from sim2real_ros.contract.importers.unitree_sdk import find_motors

NEEDS = (
    'unitree_rl_lab, unitree_rl_mjlab: a folder with params/deploy.yaml (joint_ids_map, observations) and exported/policy.onnx'
)
SIGNS = {'joint_ids_map', 'step_dt', 'observations', 'actions'}
AXES = {'x': 'lin_vel_x', 'y': 'lin_vel_y', 'yaw': 'ang_vel_z'}
TYPES = {'JointPosition': 'joint_position', 'JointVelocity': 'joint_velocity', 'JointEffort': 'joint_torque'}


def detect(source: Path) -> float:
    """Return 1 where a deploy.yaml with the keys of the exporter is there."""
    return 1.0 if _files(source) else 0.0


def _files(source: Path) -> list[Path]:
    return [path for path in yaml_files(source) if peek(path).keys() >= SIGNS]


def read(source: Path, hints: Hints) -> Imported:
    """Read a policy; see the module for the conventions."""
    path = single_file(_files(source), source, NEEDS)
    keys = Keys(load_inert(path), str(path))
    indices = keys.indices('joint_ids_map')
    if not indices:
        keys.fault('joint_ids_map', 'names no joint')
    count = len(indices)
    pose = keys.numbers('default_joint_pos', count)
    gains = {name: _policy_order(keys, name, indices) for name in ('stiffness', 'damping')}
    keys.raise_faults()
    joints, robot, why = _joints(keys, path, hints, indices, pose)
    network = find_network(None, [path.parent.parent / 'exported', path.parent, path.parent / 'exported'], hints, str(path))
    imported = Imported({'name': hints.name or _name(path), 'robot': hints.robot or robot}, network)
    imported.contract |= {'joints': joints, 'default_position': by_joint(joints, pose)}
    imported.contract |= {name: by_joint(joints, values) for name, values in gains.items()}
    imported.assume('joints', f'{len(joints)} names', why, put=False)
    rate(imported, keys.number('step_dt'))
    io = tensors(network)
    imported.contract['inputs'] = observation_inputs(keys, imported, io, joints)
    columns = _columns(keys, joints, pose)
    keys.raise_faults()
    imported.contract['outputs'] = outputs_of(io.action().name, columns)
    _commands(keys, imported)
    keys.raise_faults()
    assume_history(
        imported, 'deploy/include/isaaclab/manager: per term unless use_gym_history, oldest first, filled with the first'
    )
    _note_order(imported, indices)
    imported.contract['provenance'] = {'trainer': 'unitree_rl_lab or unitree_rl_mjlab (deploy.yaml)', 'source': path.name}
    return imported


def _joints(keys: Keys, path: Path, hints: Hints, indices: list[int], pose: list[float]) -> tuple[list[str], str, str]:
    motors = find_motors(path, hints, indices, pose)
    if motors is None:
        keys.fault(
            'joint_ids_map',
            f'{len(indices)} joints drive motors up to number {max(indices)}, and the file has no joint names. Name the robot '
            '(--robot g1, go2, h1 ...), or give the names in the order of the motors with --joints',
        )
    keys.raise_faults()
    assert motors is not None
    return [motors.names[i] for i in indices], motors.robot, motors.why


def _policy_order(keys: Keys, name: str, indices: list[int]) -> list[float]:
    """Return gains, which stand in motor order, in the order of the policy; motors without a joint may be left out."""
    values = keys.numbers(name)
    if not indices:
        return []
    if max(indices) < len(values):
        return [values[i] for i in indices]
    if len(values) == len(indices):
        ranks = {motor: rank for rank, motor in enumerate(sorted(indices))}
        return [values[ranks[i]] for i in indices]
    keys.fault(name, f'has {len(values)} numbers in motor order, but joint_ids_map names motor {max(indices)}')
    return [0.0] * len(indices)


def _columns(keys: Keys, joints: list[str], pose: list[float]) -> list[Column]:
    columns = []
    for name in keys.below('actions').data:
        action = keys.below('actions').below(name)
        kind = next((ours for theirs, ours in TYPES.items() if name.startswith(theirs)), None)
        if kind is None:
            action.fault('', f'is not known; known are {", ".join(f"{theirs}Action" for theirs in TYPES)}')
            continue
        own = _own(action, len(joints))
        scales = action.numbers('scale', len(own))
        offsets = action.numbers('offset', len(own), [pose[i] if kind == 'joint_position' else 0.0 for i in own])
        clips = _clips(action, len(own))
        if len(scales) != len(own) or len(offsets) != len(own):
            continue
        for i, scale, offset, clip in zip(own, scales, offsets, clips, strict=True):
            base = None if kind != 'joint_position' or offset == pose[i] else offset
            columns.append(Column(joints[i], scale, base, target_clip=clip, type=kind))
    if any(column.offset is not None for column in columns):  # all or none, so that the output stays one
        resting = dict(zip(joints, pose, strict=True))
        columns = [Column(c.joint, c.scale, resting[c.joint] if c.offset is None and c.type == 'joint_position' else c.offset,
                          target_clip=c.target_clip, type=c.type) for c in columns]  # fmt: skip
    return columns


def _own(action: Keys, count: int) -> list[int]:
    """Return the joints of an action, as indices into the policy's joints."""
    ids = action.data.get('joint_ids')
    if ids is None:
        return list(range(count))
    if isinstance(ids, slice):
        return list(range(count))[ids]
    return action.indices('joint_ids', count)


def _clips(action: Keys, count: int) -> list[tuple[float, float] | None]:
    value = action.data.get('clip')
    pairs = value if isinstance(value, list) and value and isinstance(value[0], list) else [value] * count
    if len(pairs) != count or any(pair is not None and (not isinstance(pair, list) or len(pair) != 2) for pair in pairs):
        action.fault('clip', f'null or {count} pairs [low, high] are expected')
        return [None] * count
    return [None if pair is None or max(map(abs, map(float, pair))) == float('inf') else (float(pair[0]), float(pair[1]))
            for pair in pairs]  # fmt: skip


def _commands(keys: Keys, imported: Imported) -> None:
    if 'commands' not in keys or 'base_velocity' not in keys.below('commands'):
        return
    ranges = keys.below('commands').below('base_velocity').below('ranges')
    found = {axis: ranges.numbers(key, 2) for axis, key in AXES.items()}
    if all(len(pair) == 2 for pair in found.values()):
        put_velocity(imported, found)
    if 'heading' in ranges:
        imported.notes.append("The trainer commanded a heading; the yaw rate that follows it is the operator's business here.")


def _note_order(imported: Imported, indices: list[int]) -> None:
    if indices != list(range(len(indices))):
        imported.notes.append('Gains stand in motor order in the file, pose and scales in policy order; all are by name here.')
    rounded: dict[str, list[float]] = {name: list(imported.contract[name].values()) for name in ('stiffness', 'damping')}
    for name, entry in imported.contract['outputs'].items():
        scale = entry['scale']
        rounded[f'outputs.{name}.scale'] = list(scale.values()) if isinstance(scale, dict) else [scale]
    note_rounding(imported, rounded, 'export_deploy_cfg.py writes 3 significant digits')


def _name(path: Path) -> str:
    folder = path.parent.parent if path.parent.name == 'params' else path.parent
    return folder.name or 'policy'
