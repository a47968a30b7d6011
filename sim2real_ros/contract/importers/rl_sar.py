# SPDX-License-Identifier: Apache-2.0
"""rl_sar: `policy/<robot>/base.yaml` and `policy/<robot>/<policy>/config.yaml`, which overrides it.

Upstream code: library/core/rl_sdk/rl_sdk.cpp (scale, then one clamp of the whole observation; the network's output is clamped
before its scale, and fed back clamped; wheels get velocities and show no position) and observation_buffer.cpp (0 is the newest
frame, zeros before the first). A key that is missing reads as nothing there; here it is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import Column, assume_history, clock, outputs_of, processed, put_velocity, rate
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, single_file, yaml_files
from sim2real_ros.contract.importers.tables import by_joint, note_rounding
from sim2real_ros.errors import DocumentError

NEEDS = 'policy/<robot>/<policy>/config.yaml (observations, rl_kp), base.yaml in a folder above, and the network'
SIGNS = {'model_name', 'observations', 'rl_kp'}
TERMS = {
    'lin_vel': 'base_lin_vel',
    'ang_vel': 'base_ang_vel',
    'ang_vel_body': 'base_ang_vel',
    'ang_vel_world': 'base_ang_vel',  # turned into the base frame there
    'gravity_vec': 'projected_gravity',
    'commands': 'velocity_command',
    'dof_pos': 'joint_pos_rel',
    'dof_vel': 'joint_vel',
    'actions': 'last_action',
    'g1_phase': 'phase',
}
SCALES = {'base_lin_vel': 'lin_vel_scale', 'base_ang_vel': 'ang_vel_scale', 'joint_vel': 'dof_vel_scale'}
WIDE = {'joint_pos_rel', 'joint_vel', 'last_action'}


def detect(source: Path) -> float:
    """Return 1 where a config.yaml with the keys of rl_sar is there."""
    return 1.0 if _files(source) else 0.0


def _files(source: Path) -> list[Path]:
    return [path for path in yaml_files(source) if _policy(peek(path))[1].keys() >= SIGNS]


def _policy(data: dict[Any, Any]) -> tuple[str, dict[Any, Any]]:
    """Return the policy's key and mapping: the only entry of a file, or the file itself."""
    inner = {key: value for key, value in data.items() if isinstance(value, dict)}
    if len(data) == len(inner) == 1:
        return str(next(iter(inner))), next(iter(inner.values()))
    return '', data


def read(source: Path, hints: Hints) -> Imported:
    """Read a policy; see the module for the conventions."""
    path = single_file(_files(source), source, NEEDS)
    key, own = _policy(load_inert(path))
    base, base_path = _base(path, key)
    keys = Keys(base | own, f'{path} with {base_path.name}' if base_path else str(path))
    count = keys.whole('num_of_dofs', 0) or len(keys.numbers('default_dof_pos'))
    joints = _joints(keys, hints, count)
    pose, kp, kd = (keys.numbers(name, count) for name in ('default_dof_pos', 'rl_kp', 'rl_kd'))
    keys.raise_faults()
    named = keys.data.get('model_name')
    network = find_network(str(named) if named else None, [path.parent], hints, keys.source)
    imported = Imported({'name': hints.name or key.replace('/', '_') or path.parent.name, 'joints': joints}, network)
    robot = hints.robot or key.split('/')[0] or (base_path or path).parent.name
    imported.contract |= {'robot': robot, 'default_position': by_joint(joints, pose)}
    imported.contract |= {'stiffness': by_joint(joints, kp), 'damping': by_joint(joints, kd)}
    rate(imported, keys.number('dt') * keys.number('decimation'))
    io = tensors(network)
    columns = _columns(keys, joints)
    imported.contract['inputs'] = {io.observation().name: _observation(keys, imported, joints)} | io.state_inputs()
    keys.raise_faults()
    imported.contract['outputs'] = outputs_of(io.action().name, columns)
    _assume(imported, kp, kd)
    assume_history(imported, 'observation_buffer.cpp starts with zeros', ('fill',))
    if named and Path(str(named)).suffix != network.suffix and network.parent == path.parent:
        imported.notes.append(f'{network.name} beside it is taken for {named}.')
    imported.contract['provenance'] = {'trainer': 'deployed with rl_sar', 'source': key or path.name}
    return imported


def _base(path: Path, key: str) -> tuple[dict[str, Any], Path | None]:
    """Return the robot's own values: of the nearest base.yaml in the folder or above, under the robot's key."""
    for folder in [path.parent, *list(path.resolve().parents)[1:4]]:
        candidate = folder / 'base.yaml'
        if candidate.is_file():
            data = load_inert(candidate)
            robot = key.split('/')[0]
            inner = data.get(robot) if isinstance(data, dict) else None
            if not isinstance(inner, dict):
                raise DocumentError(str(candidate), [f'holds no robot "{robot}", which {path} is for'])
            return inner, candidate
    return {}, None


def _joints(keys: Keys, hints: Hints, count: int) -> list[str]:
    """Return the joints in policy order; joint_mapping points into the names of base.yaml, the order of the motors."""
    names = list(hints.joints) if hints.joints is not None else keys.names('joint_names', [])
    mapping = keys.indices('joint_mapping', len(names) or None, range(count))
    if not names:
        keys.fault(
            'joint_names', 'is missing: base.yaml of the robot has it. Put it beside or above, or give names with --joints'
        )
    elif len(mapping) != count:
        keys.fault('joint_mapping', f'{count} indices into joint_names are expected, not {len(mapping)}')
    keys.raise_faults()
    return [names[i] for i in mapping]


def _columns(keys: Keys, joints: list[str]) -> list[Column]:
    count = len(joints)
    scales = keys.numbers('action_scale', count)
    low, high = (keys.numbers(f'clip_actions_{side}', count, None) for side in ('lower', 'upper'))
    if (low is None) != (high is None):
        keys.fault('clip_actions_lower', 'clip_actions_lower and clip_actions_upper belong together')
    if len(scales) != count or (low and len(low) != count) or (high and len(high) != count):
        return []
    clips = [(a, b) for a, b in zip(low, high, strict=True)] if low and high else [None] * count
    wheels = _wheels(keys, count)
    return [
        Column(joint, scales[i], clip=clips[i], type='joint_velocity' if i in wheels else 'joint_position')
        for i, joint in enumerate(joints)
    ]


def _wheels(keys: Keys, count: int) -> set[int]:
    return set(keys.indices('wheel_indices', count, ()))


def _observation(keys: Keys, imported: Imported, joints: list[str]) -> dict[str, Any]:
    bound = keys.number('clip_obs', None)
    terms, width = [], 0
    for name in keys.names('observations'):
        if name not in TERMS:
            keys.fault(
                'observations', f'"{name}" is not known here, and rl_sar skips it silently; known are {", ".join(TERMS)}'
            )
            continue
        term = TERMS[name]
        use: dict[str, Any] = {'term': term}
        if term == 'last_action':
            use['value'] = 'clipped' if 'clip_actions_lower' in keys else 'raw'
        if term == 'phase':
            imported.contract['phase'] = clock(0.8, first_tick=1)
            imported.assume('phase.period_s', 0.8, 'g1_phase in rl_sdk.cpp; the YAML does not say it', put=False)
        terms.append(
            processed(use, _scale(keys, term, len(joints)), None if bound is None else [-bound, bound], ('scale', 'clip'))
        )
        width += len(joints) if term in WIDE else 2 if term == 'phase' else 3
    history = keys.indices('observations_history', 1000, ()) or [0]
    priority = keys.data.get('observations_history_priority') or 'time'
    if priority not in ('time', 'term'):
        keys.fault('observations_history_priority', f'time or term is expected, not {priority!r}')
    declared = keys.number('num_observations', None)
    if declared is not None and declared not in (width, width * len(history)):
        keys.fault('num_observations', f'says {declared:g}, but the observations make {width} numbers ({len(joints)} joints)')
    layout = 'frame_major' if priority == 'time' else 'term_major'
    return {'stack': {'lags': history, 'layout': layout, 'fill': 'zeros'}, 'terms': terms}


def _scale(keys: Keys, term: str, count: int) -> Any:
    if term == 'velocity_command':
        return keys.numbers('commands_scale', 3) or 1.0
    if term == 'joint_pos_rel':
        wheels, scale = _wheels(keys, count), keys.number('dof_pos_scale')
        return [0.0 if i in wheels else scale for i in range(count)] if wheels else scale
    return keys.number(SCALES[term]) if term in SCALES else 1.0


def _assume(imported: Imported, kp: list[float], kd: list[float]) -> None:
    full = [-1.0, 1.0]
    put_velocity(imported, dict.fromkeys(('x', 'y', 'yaw'), full), 'rl_sar passes the stick of the gamepad, -1 to 1, as it is')
    note_rounding(imported, {'stiffness': kp, 'damping': kd}, 'config.yaml')
