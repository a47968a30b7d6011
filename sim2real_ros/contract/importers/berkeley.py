# SPDX-License-Identifier: Apache-2.0
"""Berkeley Humanoid Lite: `configs/policy_*.yaml`, written by its play script.

The observation stands in the code, policy/rl_controller.py of Berkeley-Humanoid-Lite-Lowlevel: command, angular velocity,
gravity, joint positions and velocities, last action (clipped, unscaled); frames stacked oldest first, zeros before the first.
"""

from __future__ import annotations

from pathlib import Path

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import Column, assume_history, outputs_of, put_velocity, rate
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, single_file, yaml_files
from sim2real_ros.contract.importers.tables import by_joint, note_rounding

NEEDS = 'configs/policy_*.yaml (policy_dt, joints, joint_kp, action_indices) and the network'
SIGNS = {'policy_dt', 'joints', 'joint_kp', 'joint_kd', 'action_indices', 'default_joint_positions'}
TERMS = ('velocity_command', 'base_ang_vel', 'projected_gravity', 'joint_pos_rel', 'joint_vel', 'last_action')
CODE = 'rl_controller.py of Berkeley-Humanoid-Lite-Lowlevel; the YAML does not say it'
TRAINED = {'x': [-1.0, 1.0], 'y': [-0.5, 0.5], 'yaw': [-1.5, 1.5]}


def detect(source: Path) -> float:
    """Return 1 where a YAML file with the keys of the play script is there."""
    return 1.0 if _files(source) else 0.0


def _files(source: Path) -> list[Path]:
    return [path for path in yaml_files(source) if peek(path).keys() >= SIGNS]


def read(source: Path, hints: Hints) -> Imported:
    """Read a policy; see the module for the conventions."""
    path = single_file(_files(source), source, NEEDS)
    keys = Keys(load_inert(path), str(path))
    names = list(hints.joints or keys.names('joints'))
    driven = keys.indices('action_indices', len(names))
    if keys.whole('num_actions') != len(driven) or not driven:
        keys.fault('num_actions', f'is {keys.data.get("num_actions")}, but action_indices names {len(driven)} joints')
    tables = {ours: keys.numbers(theirs, len(names)) for ours, theirs in (
        ('default_position', 'default_joint_positions'), ('stiffness', 'joint_kp'), ('damping', 'joint_kd'))}  # fmt: skip
    keys.raise_faults()
    joints = [names[i] for i in driven]
    near = [path.parent, path.parent.parent, path.parent.parent / 'checkpoints', path.parent / 'checkpoints']
    network = find_network(str(keys.data.get('policy_checkpoint_path') or '') or None, near, hints, str(path))
    imported = Imported({'name': hints.name or path.stem, 'robot': hints.robot or 'berkeley_humanoid_lite'}, network)
    imported.contract['joints'] = joints
    imported.contract |= {field: by_joint(joints, [values[i] for i in driven]) for field, values in tables.items()}
    rate(imported, keys.number('policy_dt'))
    _tensors(keys, imported, joints, network)
    note_rounding(imported, {name: list(imported.contract[name].values()) for name in ('stiffness', 'damping')}, path.name)
    why = 'UniformVelocityCommandCfg of the biped in Berkeley-Humanoid-Lite; command_velocity is only where it starts'
    put_velocity(imported, TRAINED, why)
    if len(joints) < len(names):
        idle = ', '.join(name for name in names if name not in joints)
        imported.notes.append(f'The policy neither sees nor drives {idle}; the safety node holds them.')
    imported.contract['provenance'] = {'trainer': 'Berkeley-Humanoid-Lite', 'licence': 'MIT upstream', 'source': path.name}
    return imported


def _tensors(keys: Keys, imported: Imported, joints: list[str], network: Path) -> None:
    io, count = tensors(network), len(joints)
    terms = [{'term': term} | ({'value': 'clipped'} if term == 'last_action' else {}) for term in TERMS]
    length = keys.whole('history_length', 0) + 1
    width, declared = 9 + 3 * count, keys.number('num_observations')
    if declared != width:
        keys.fault('num_observations', f'is {declared:g}; the code builds {width} for {count} joints, before any history')
    stack = {'lags': list(range(length - 1, -1, -1)), 'layout': 'frame_major', 'fill': 'zeros'}
    imported.contract['inputs'] = {io.observation().name: {'stack': stack, 'terms': terms}} | io.state_inputs()
    imported.assume(f'inputs.{io.observation().name}.terms', list(TERMS), CODE, put=False)
    scales = keys.numbers('action_scale', count)
    low, high = (keys.numbers(f'action_limit_{side}', count) for side in ('lower', 'upper'))
    keys.raise_faults()
    columns = [Column(joint, scales[i], clip=(low[i], high[i])) for i, joint in enumerate(joints)]
    imported.contract['outputs'] = outputs_of(io.action().name, columns)
    assume_history(imported, CODE)
