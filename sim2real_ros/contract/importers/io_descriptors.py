# SPDX-License-Identifier: Apache-2.0
"""`IO_descriptors.yaml` of Isaac Lab 2.2 and later: lists in policy order, joints by name, no gains of explicit actuators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers import isaac_lab, isaac_terms
from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import put_velocity, rate
from sim2real_ros.contract.importers.robots import robot_of
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, yaml_files
from sim2real_ros.contract.importers.tables import by_joint
from sim2real_ros.errors import DocumentError, NotFoundError

NEEDS = 'IO_descriptors.yaml of Isaac Lab and the exported network, in one folder or below it'
GROUPS = ('policy', 'actor')
RANGES = {'x': [-1.0, 1.0], 'y': [-1.0, 1.0], 'yaw': [-1.0, 1.0]}
UPRIGHT = [0.5, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]  # a goal in front of the base, until the first one arrives; wxyz


def detect(source: Path) -> float:
    """Return 1 for a folder or YAML with the keys of a descriptor."""
    return 1.0 if _descriptor(source) is not None else 0.0


def _descriptor(source: Path) -> Path | None:
    for path in yaml_files(source, 3):
        data = peek(path)
        if isinstance(data.get('articulations'), dict) and isinstance(data.get('actions'), list) and 'observations' in data:
            return path
    return None


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy from its descriptors.

    Raises:
        DocumentError: something is missing, not known or not told; all faults are listed.
    """
    path = _descriptor(source)
    if path is None:
        raise DocumentError(str(source), [f'holds no descriptor of Isaac Lab; {NEEDS} is expected'])
    keys = Keys(load_inert(path), str(path))
    folder = source if source.is_dir() else source.parent
    near = [path.parent, folder, folder / 'exported', path.parent.parent, path.parent.parent / 'exported']
    network = find_network(None, near, hints, str(path))
    graph = tensors(network)
    entries = _actions(keys)
    joints = [joint for entry in entries.values() for joint in entry.get('joints', [])]
    tables = _tables(keys, joints)
    _finish_offsets(entries, tables.get('default_position', {}))
    position = {j for e in entries.values() if e.get('type') == 'joint_position' for j in e['joints']}
    gains = [tables['stiffness'].get(joint, 0.0) for joint in joints] if tables else []
    isaac_lab.check_gains(keys, joints if gains else [], gains, hints, position)
    imported = Imported(
        {
            'name': hints.name or folder.resolve().name,
            'robot': hints.robot or robot_of(joints),
            'joints': joints,
            **tables,
            'inputs': {},
            'outputs': isaac_lab.place_actions(graph.action().name, entries, len(joints)),
            'provenance': {'trainer': 'Isaac Lab, IO_descriptors.yaml'},
        },
        network,
    )
    rate(imported, keys.below('scene').number('dt'))
    name = graph.observation().name
    imported.contract['inputs'] = {name: _observation(keys, name, joints, imported, hints), **graph.state_inputs()}
    keys.raise_faults()
    _assume(imported, name)
    return imported


def _actions(keys: Keys) -> dict[str, dict[str, Any]]:
    """Return the actions by name, in the order of the list, which is that of the network's output."""
    entries: dict[str, dict[str, Any]] = {}
    listed = keys.data.get('actions')
    for i, data in enumerate(listed if isinstance(listed, list) else []):
        action = Keys(data, keys.source, f'actions.{i}', keys.faults)
        joints = action.names('joint_names')
        kind = isaac_lab.class_name(action.data.get('full_path', ''))
        entry = isaac_lab.action_entry(action, kind, joints, action.data.get('offset', 0.0), None)
        name = str(action.data.get('name', f'action_{i}'))
        entries[name if name not in entries else f'{name}_{i}'] = entry
    if not entries:
        keys.fault('actions', 'a list of actions is expected')
    return {name: entry for name, entry in entries.items() if entry}


def _finish_offsets(entries: dict[str, dict[str, Any]], pose: dict[str, float]) -> None:
    """Write `default` for an offset that is the default position."""
    for entry in entries.values():
        offset = entry['offset'] if isinstance(entry['offset'], dict) else dict.fromkeys(entry['joints'], 0.0)
        same = all(abs(value - pose.get(joint, float('inf'))) < 1e-6 for joint, value in offset.items())
        if same and entry['type'] == 'joint_position' and 'relative_to' not in entry:
            entry['offset'] = 'default'


def _tables(keys: Keys, joints: list[str]) -> dict[str, dict[str, float]]:
    """Return default position and gains by joint, of the articulation that has the joints."""
    robots = keys.below('articulations')
    for name in robots.data:
        robot = robots.below(name)
        own = robot.names('joint_names', [])
        if not joints or not set(joints) <= set(own):
            continue
        fields = {'default_position': 'pos', 'stiffness': 'stiffness', 'damping': 'damping'}
        tables = {field: by_joint(own, robot.numbers(f'default_joint_{key}', len(own))) for field, key in fields.items()}
        return {field: {joint: table[joint] for joint in joints} for field, table in tables.items()}
    keys.fault('articulations', f'none has the joints that the actions drive: {", ".join(joints)}')
    return {}


def _observation(keys: Keys, tensor: str, joints: list[str], imported: Imported, hints: Hints) -> dict[str, Any]:
    groups = keys.below('observations')
    name = next((group for group in GROUPS if group in groups), next(iter(groups.data), 'policy'))
    listed = groups.data.get(name)
    if isinstance(listed, dict):
        listed = list(listed.values())
    terms: list[dict[str, Any]] = []
    lengths: list[int] = []
    for i, data in enumerate(listed if isinstance(listed, list) else []):
        term = Keys(data, keys.source, f'observations.{name}.{i}', keys.faults)
        overloads = Keys(term.data.get('overloads') or {}, keys.source, f'observations.{name}.{i}.overloads', keys.faults)
        length = isaac_lab.history_length(overloads)
        if length > 1 and overloads.data.get('flatten_history_dim') is False:
            overloads.fault('flatten_history_dim', 'a history that is not flattened is no vector; export it flattened')
        if isaac_lab.mapping(term.data.get('extras')).get('modifiers'):
            term.fault('extras.modifiers', 'a modified observation is not known here; add it as a term of your own')
        for use in _uses(term, f'inputs.{tensor}.terms.{len(terms)}.term', joints, imported, hints):
            _put_overloads(use, overloads, term)
            terms.append(use)
            lengths.append(length)
    if not terms:
        keys.fault(f'observations.{name}', 'a list of observations is expected')
        return {}
    return {'stack': isaac_terms.put_histories(terms, lengths), 'terms': terms}


def _put_overloads(use: dict[str, Any], overloads: Keys, term: Keys) -> None:
    """Put clip and scale of the task into a term."""
    clip = isaac_lab.pairs(overloads.data.get('clip'), ['all'])
    if clip is None:
        overloads.fault('clip', f'null or [low, high] is expected, not {overloads.data.get("clip")!r}')
    scale = overloads.data.get('scale')
    if scale is not None:
        values = overloads.numbers('scale', _width(term) or 1)
        scale = values[0] if values and len(set(values)) == 1 else values
    isaac_terms.put_clip_scale(use, (clip or {}).get('all'), scale)


def _uses(term: Keys, place: str, joints: list[str], imported: Imported, hints: Hints) -> list[dict[str, Any]]:
    """Return our terms for one entry of the list."""
    name = isaac_lab.class_name(term.data.get('full_path') or term.data.get('name'))
    if name == 'generated_commands':
        return _command(term, imported, hints)
    if name in isaac_lab.QUATERNIONS:
        return _quaternion(term, name, place, hints)
    try:
        uses = isaac_terms.by_function(name)
    except NotFoundError as error:
        term.fault('name', str(error))
        return []
    own = term.data.get('joint_names')
    if isinstance(own, list) and uses[0]['term'] in isaac_terms.JOINT_TERMS and own != joints:
        strangers = [str(joint) for joint in own if joint not in joints]
        if strangers:
            term.fault('joint_names', f'{", ".join(strangers)} are seen but not driven; a contract has driven joints alone')
        uses[0]['joints'] = list(own)
    return uses


def _command(term: Keys, imported: Imported, hints: Hints) -> list[dict[str, Any]]:
    """Return the term of a command: three numbers are a velocity, seven a pose."""
    shape = _width(term)
    if shape == 3:
        put_velocity(imported, RANGES, 'the descriptor has no ranges; 1 m/s and 1 rad/s are those of the velocity tasks')
        return [{'term': 'velocity_command'}]
    if shape == 7:
        told = 'the axes of the descriptor'
        isaac_lab.put_pose_command(imported, term, list(UPRIGHT), _axes(term), told, hints)
        imported.assume('commands.pose.initial', UPRIGHT, 'not in the descriptor; a goal 0.5 m before the base', put=False)
        return [{'term': 'pose_command'}]
    term.fault('shape', f'a command of {shape} numbers is not known here; velocities have 3, poses 7')
    return []


def _quaternion(term: Keys, name: str, place: str, hints: Hints) -> list[dict[str, Any]]:
    """Return the term of a base quaternion, in the order that its axes or the user tell."""
    order = _axes(term)
    if order is not None:
        return [{'term': f'base_quat_{order}'}]
    return isaac_lab.told_quaternion(term, name, place, hints)


def _width(term: Keys) -> int:
    """Return the last number of the shape; 0 where there is none."""
    shape = term.data.get('shape')
    last = shape[-1] if isinstance(shape, list) and shape else 0
    return last if isinstance(last, int) and not isinstance(last, bool) and 0 < last <= 1_000_000 else 0


def _axes(term: Keys) -> str | None:
    """Return the order of a quaternion that the axes of an entry tell; None when they do not."""
    axes = isaac_lab.mapping(term.data.get('extras')).get('axes') or []
    order = ''.join(str(axis).lower() for axis in axes)[-4:] if isinstance(axes, list) else ''
    return order if order in ('wxyz', 'xyzw') else None


def _assume(imported: Imported, name: str) -> None:
    """Record what a descriptor never says."""
    why = 'not in the descriptor; '
    part = imported.contract['inputs'][name]
    for i, use in enumerate(part['terms']):
        if use['term'] == 'last_action':
            imported.assume(f'inputs.{name}.terms.{i}.value', 'raw', f'{why}last_action is the raw output', put=False)
    if part['stack']['lags'] != [0] or any('lags' in use for use in part['terms']):
        told = "term-major, oldest first, filled with the first tick: Isaac Lab's circular buffer"
        imported.assume(f'inputs.{name}.stack', told, f'{why}a history of the whole group would not show either', put=False)
