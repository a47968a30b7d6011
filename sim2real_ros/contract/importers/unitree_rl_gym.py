# SPDX-License-Identifier: Apache-2.0
"""unitree_rl_gym: `deploy_mujoco/configs/*.yaml` and `deploy_real/configs/*.yaml`.

What the observation consists of stands in the code: deploy_mujoco.py and deploy_real.py build angular velocity, gravity,
command, joint positions and velocities, last action, sine and cosine of a clock of 0.8 s, whose counter runs before the first
tick. The MuJoCo file has no range of the command; the real one has max_cmd, by which the stick is multiplied before cmd_scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import Column, clock, outputs_of, processed, put_velocity, rate
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, unreadable, yaml_files
from sim2real_ros.contract.importers.tables import by_joint
from sim2real_ros.contract.importers.unitree_sdk import G1, H1, H1_2, SOURCE, find_motors
from sim2real_ros.errors import FormatError

NEEDS = 'the YAML of deploy_mujoco (simulation_dt, kps) or deploy_real (control_dt, kps), and the network'
SIGNS = {'kps', 'kds', 'default_angles', 'cmd_scale', 'num_obs'}
LEGS = {'g1': G1[:12], 'h1': [H1[i] for i in (7, 3, 4, 5, 10, 8, 0, 1, 2, 11)], 'h1_2': H1_2[:12]}
SHARED = ('kps', 'kds', 'default_angles', 'ang_vel_scale', 'dof_pos_scale', 'dof_vel_scale', 'action_scale', 'cmd_scale')
MAX_CMD = (0.8, 0.5, 1.57)
CODE = 'deploy_mujoco.py and deploy_real.py of unitree_rl_gym; the YAML does not say it'


def detect(source: Path) -> float:
    """Return 1 where a YAML file with the keys of deploy_mujoco or deploy_real is there."""
    return 1.0 if _files(source) else 0.0


def _files(source: Path) -> list[Path]:
    return [path for path in yaml_files(source) if peek(path).keys() >= SIGNS]


def read(source: Path, hints: Hints) -> Imported:
    """Read a policy; see the module for the conventions."""
    path, keys = _merged(source)
    count = keys.whole('num_actions')
    pose, kp, kd = (keys.numbers(name, count) for name in ('default_angles', 'kps', 'kds'))
    keys.raise_faults()
    network = find_network(str(keys.data.get('policy_path') or '') or None, _near(path), hints, keys.source)
    imported = Imported({'name': hints.name or f'unitree_rl_gym_{path.stem}', 'robot': hints.robot or path.stem}, network)
    joints = _joints(keys, imported, path, hints, count, pose)
    imported.contract |= {'joints': joints, 'default_position': by_joint(joints, pose)}
    imported.contract |= {'stiffness': by_joint(joints, kp), 'damping': by_joint(joints, kd)}
    period = keys.number('control_dt', None) or keys.number('simulation_dt') * keys.number('control_decimation')
    rate(imported, period)
    io = tensors(network)
    name = io.observation().name
    imported.contract['inputs'] = {name: _observation(keys, imported, name, count)} | io.state_inputs()
    scale = keys.number('action_scale')
    keys.raise_faults()
    imported.contract['outputs'] = outputs_of(io.action().name, [Column(joint, scale) for joint in joints])
    _commands(keys, imported)
    keys.raise_faults()
    if keys.data.get('imu_type') == 'torso':
        imported.notes.append(
            'The IMU of this robot sits on the torso: imu/data must be turned into the pelvis by the waist yaw.'
        )
    imported.contract['provenance'] = {'trainer': 'unitree_rl_gym', 'source': path.name}
    return imported


def _merged(source: Path) -> tuple[Path, Keys]:
    """Return the file of the robot, with the values of its counterpart for the simulator or the real robot if that is there."""
    found = _files(source)
    if not found:
        raise FormatError(f'{source} is not what this format needs: {NEEDS}{unreadable(source)}')
    if len({path.stem for path in found}) > 1:
        raise FormatError(f'{source} holds several robots; give one of the files: {", ".join(map(str, found))}')
    real = sorted(found, key=lambda path: 'control_dt' not in peek(path))
    data: dict[str, Any] = {}
    name = ' and '.join(str(path) for path in real)
    for path in reversed(real):
        data |= load_inert(path)
    keys = Keys(data, name)
    for key in SHARED if len(real) > 1 else ():
        values = [peek(path).get(key) for path in real]
        if any(value != values[0] for value in values):
            keys.fault(key, f'{real[0]} says {values[0]}, {real[1]} says {values[1]}; give the file that you mean')
    keys.raise_faults()
    return real[0], keys


def _near(path: Path) -> list[Path]:
    """Return the folders that may hold the network: beside the YAML, above, and deploy/pre_train/<robot>."""
    above = list(path.resolve().parents)[:4]
    return [*above, *(folder / 'pre_train' / path.stem for folder in above)]


def _joints(keys: Keys, imported: Imported, path: Path, hints: Hints, count: int, pose: list[float]) -> list[str]:
    if hints.joints is not None and len(hints.joints) == count:
        imported.assume('joints', f'{count} names', 'the names that the user gave, in policy order', put=False)
        return list(hints.joints)
    indices = keys.indices('leg_joint2motor_idx', None, ())
    if indices and len(indices) != count:
        keys.fault('leg_joint2motor_idx', f'has {len(indices)} numbers, num_actions is {count}')
        keys.raise_faults()
    motors = find_motors(path, Hints(hints.workspace, hints.robot), indices, pose) if indices else None
    if motors is not None:
        imported.assume('joints', f'{count} names', f'leg_joint2motor_idx, as motors of the robot: {motors.why}', put=False)
        return [motors.names[i] for i in indices]
    legs = LEGS.get(hints.robot or path.stem, [])
    if len(legs) != count:
        known = ', '.join(f'{robot} ({len(names)})' for robot, names in LEGS.items())
        keys.fault('num_actions', f'{count} joints without names, in the order of xml_path; known are the legs of {known}. '
                   'Give the names with --joints, or the model with --joints-from')  # fmt: skip
    keys.raise_faults()
    imported.assume('joints', f'{count} names', f'the legs of the {path.stem} in the order of its model; {SOURCE}', put=False)
    return list(legs)


def _observation(keys: Keys, imported: Imported, name: str, count: int) -> dict[str, Any]:
    angular, position, velocity = (keys.number(f'{name}_scale') for name in ('ang_vel', 'dof_pos', 'dof_vel'))
    terms = [
        processed({'term': 'base_ang_vel'}, angular, None, ()),
        {'term': 'projected_gravity'},
        processed({'term': 'velocity_command'}, keys.numbers('cmd_scale', 3) or 1.0, None, ()),
        processed({'term': 'joint_pos_rel'}, position, None, ()),
        processed({'term': 'joint_vel'}, velocity, None, ()),
        {'term': 'last_action', 'value': 'raw'},
    ]
    width, declared = 9 + 3 * count, keys.number('num_obs')
    if declared == width + 2:
        terms.append({'term': 'phase'})
        imported.contract['phase'] = clock(0.8, first_tick=1)
        imported.assume('phase.period_s', 0.8, CODE, put=False)
        imported.assume('phase.first_tick', 1, f'the counter runs before the observation: {CODE}', put=False)
    elif declared == width + 3 and 'lin_vel_scale' in keys:
        terms.insert(0, processed({'term': 'base_lin_vel'}, keys.number('lin_vel_scale'), None, ()))
    else:
        known = f'{width + 2} with the gait clock, or {width + 3} with lin_vel_scale'
        keys.fault('num_obs', f'is {declared:g}; the code of unitree_rl_gym builds {known} for {count} joints')
    imported.assume(f'inputs.{name}.terms', [use['term'] for use in terms], CODE, put=False)
    return {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': terms}


def _commands(keys: Keys, imported: Imported) -> None:
    given = keys.numbers('max_cmd', 3, None)
    ranges = {axis: [-bound, bound] for axis, bound in zip(('x', 'y', 'yaw'), given or MAX_CMD, strict=True)}
    put_velocity(imported, ranges, None if given else 'max_cmd of the files for the real robots; this file has none')
