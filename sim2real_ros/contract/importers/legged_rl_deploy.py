# SPDX-License-Identifier: Apache-2.0
"""legged_rl_deploy: `config.yaml` with a mapping `policy`: terms with a process order, a stack or a layout of blocks.

Upstream code: src/policy_slot.cpp (all lists in policy order; the last action is the raw output; a stack repeats the first
frame, a layout does as history_warmup says) and include/.../processor.h (steps as process_order says; no order: no step).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.legged_blocks import observation_input
from sim2real_ros.contract.importers.legged_steps import Steps
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import Column, assume_history, outputs_of, put_velocity, rate
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, single_file, yaml_files
from sim2real_ros.contract.importers.tables import by_joint, note_rounding
from sim2real_ros.contract.importers.unitree_sdk import find_motors

NEEDS = 'config.yaml with a mapping "policy" (model_path, joint_ids_map, observations.terms) and the network'
SIGNS = {'joint_ids_map', 'policy_dt', 'observations', 'actions'}


def detect(source: Path) -> float:
    """Return 1 where a YAML file with a mapping `policy` of this format is there."""
    return 1.0 if _files(source) else 0.0


def _files(source: Path) -> list[Path]:
    return [path for path in yaml_files(source) if _policy(peek(path)).keys() >= SIGNS]


def _policy(data: dict[Any, Any]) -> dict[Any, Any]:
    inner = data.get('policy')
    return inner if isinstance(inner, dict) else {}


def read(source: Path, hints: Hints) -> Imported:
    """Read a policy; see the module for the conventions."""
    path = single_file(_files(source), source, NEEDS)
    whole = load_inert(path)
    keys = Keys(whole['policy'], str(path), 'policy')
    indices = keys.indices('joint_ids_map')
    count = len(indices)
    if not count:
        keys.fault('joint_ids_map', 'names no joint')
    kp, kd = (keys.numbers(name, count) for name in ('stiffness', 'damping'))
    action = keys.below('actions').below('JointPositionAction')
    steps = Steps.read(action, count)
    keys.raise_faults()
    pose = steps.target_offset(count)
    joints, robot, why = _joints(keys, whole, path, hints, indices, pose)
    network = find_network(str(keys.data.get('model_path') or '') or None, [path.parent], hints, str(path))
    imported = Imported({'name': hints.name or path.parent.name, 'robot': hints.robot or robot, 'joints': joints}, network)
    imported.contract['default_position'] = by_joint(joints, pose)
    imported.contract |= {'stiffness': by_joint(joints, kp), 'damping': by_joint(joints, kd)}
    imported.assume('joints', f'{count} names', why, put=False)
    imported.assume('default_position', 'offset of the action', 'the file states no pose; the action starts from it', put=False)
    rate(imported, keys.number('policy_dt'))
    io = tensors(network)
    imported.contract['inputs'] = {io.observation().name: observation_input(keys, imported, pose)} | io.state_inputs()
    imported.contract['outputs'] = outputs_of(io.action().name, _columns(action, joints, steps))
    keys.raise_faults()
    _commands(keys, imported)
    keys.raise_faults()
    assume_history(imported, 'policy_slot.cpp: a stack puts frame beside frame and repeats the first')
    note_rounding(imported, {'stiffness': kp, 'damping': kd}, path.name)
    imported.contract['provenance'] = {'trainer': 'deployed with legged_rl_deploy', 'source': path.name}
    return imported


def _joints(
    keys: Keys, whole: dict[str, Any], path: Path, hints: Hints, indices: list[int], pose: list[float]
) -> tuple[list[str], str, str]:
    """Return names, robot and reason; llc_config_file names the robot: .../config/go2.yaml."""
    named = Path(str(whole.get('llc_config_file') or '')).stem or None
    motors = find_motors(path, hints, indices, pose, named)
    if motors is None:
        keys.fault('joint_ids_map', 'the file has no joint names; name the robot with --robot, or the motors with --joints')
        keys.raise_faults()
    assert motors is not None
    return [motors.names[i] for i in indices], motors.robot, motors.why


def _columns(action: Keys, joints: list[str], steps: Steps) -> list[Column]:
    """Return what each output does; clips before the scale bound the output, those at the end the target."""
    columns = []
    for i, joint in enumerate(joints):
        scale, _, clip, target_clip = steps.affine(i)
        columns.append(Column(joint, scale, clip=clip, target_clip=target_clip))
    return columns


def _commands(keys: Keys, imported: Imported) -> None:
    """Put the range of the command: the stick, -1 to 1, after the steps of base_velocity."""
    used = any(use['term'] == 'velocity_command' for use in _uses(imported))
    if not used:
        return
    commands = Keys(keys.data.get('commands') or {}, keys.source, 'policy.commands', keys.faults)
    entry = commands.data.get('base_velocity')
    steps = Steps.read(Keys(entry or {}, keys.source, 'policy.commands.base_velocity', keys.faults), 3)
    ranges = {axis: sorted((steps.apply(-1.0, i), steps.apply(1.0, i))) for i, axis in enumerate(('x', 'y', 'yaw'))}
    why = None if entry else 'base_velocity has no steps, so the stick of the gamepad, -1 to 1, is the command'
    put_velocity(imported, ranges, why)


def _uses(imported: Imported) -> list[dict[str, Any]]:
    parts = [part for entry in imported.contract['inputs'].values() for part in entry.get('blocks', [entry])]
    return [use for part in parts for use in part.get('terms', [])]
