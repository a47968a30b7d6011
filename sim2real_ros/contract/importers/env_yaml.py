# SPDX-License-Identifier: Apache-2.0
"""`env.yaml` of Isaac Lab (params/env.yaml of a run) beside a network: the whole configuration, with Python tags.

Joints stand there as expressions, so their order is the file's only where the initial pose names each of a serial arm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers import isaac_lab
from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.env_terms import observation
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.network import tensors
from sim2real_ros.contract.importers.parts import rate
from sim2real_ros.contract.importers.robots import robot_of
from sim2real_ros.contract.importers.sources import Keys, find_network, peek, to_number, yaml_files
from sim2real_ros.contract.importers.tables import by_joint
from sim2real_ros.errors import DocumentError

NEEDS = 'env.yaml of Isaac Lab (params/ of a run) and the exported network (.onnx or .pt)'
SIDES = re.compile(r'(left|right|(^|_)[lr](_|$)|(^|_)(fl|fr|rl|rr|lf|rf|lh|rh)(_|$))', re.IGNORECASE)
PLAIN = re.compile(r'\w+')


def detect(source: Path) -> float:
    """Return 0.9 for a folder or YAML with the keys of an environment."""
    return 0.9 if _environment(source) is not None else 0.0


def _environment(source: Path) -> Path | None:
    for path in yaml_files(source, 2):
        data = peek(path)
        if {'scene', 'observations', 'actions', 'decimation', 'sim'} <= set(data):
            return path
    return None


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy from the configuration of its environment.

    Raises:
        DocumentError: something is missing, not known or not told; all faults are listed.
    """
    path = _environment(source)
    if path is None:
        raise DocumentError(str(source), [f'holds no environment of Isaac Lab; {NEEDS} is expected'])
    keys = Keys(load_inert(path), str(path))
    folder = path.parent
    near = [folder, folder / 'exported', folder.parent, folder.parent / 'exported']
    network = find_network(None, near, hints, str(path))
    graph = tensors(network)
    robot = keys.below('scene').below('robot')
    pose = robot.below('init_state').data.get('joint_pos') or {}
    width = graph.action().width or 0
    joints, told = _joints(keys, pose if isinstance(pose, dict) else {}, width, hints)
    actions = _actions(keys, joints)
    imported = Imported(
        {
            'name': hints.name or folder.resolve().name,
            'robot': hints.robot or robot_of(joints),
            'joints': joints,
            **_tables(keys, robot, joints, actions, hints),
            'inputs': {},
            'outputs': isaac_lab.place_actions(graph.action().name, actions, len(joints)),
            'provenance': {'trainer': 'Isaac Lab, env.yaml'},
        },
        network,
    )
    if told:
        imported.assume('joints', joints, told, put=False)
    rate(imported, keys.below('sim').number('dt') * keys.number('decimation'))
    order = quaternion_order(keys)
    name = graph.observation().name
    part = observation(keys, name, joints, imported, order, hints)
    imported.contract['inputs'] = {name: part, **graph.state_inputs()}
    keys.raise_faults()
    _assume(imported, name)
    return imported


def quaternion_order(keys: Keys) -> tuple[str | None, str]:
    """Return the order of quaternions, told by those of the file that do not turn, and the sentence that says so."""
    scene = keys.data.get('scene')
    turns = [
        [to_number(part) for part in entry['init_state']['rot']]
        for entry in (scene if isinstance(scene, dict) else {}).values()
        if isinstance(entry, dict)
        and isinstance(entry.get('init_state'), dict)
        and isinstance(entry['init_state'].get('rot'), list)
    ]
    first = sum(turn == [1.0, 0.0, 0.0, 0.0] for turn in turns)
    last = sum(turn == [0.0, 0.0, 0.0, 1.0] for turn in turns)
    if bool(first) == bool(last):
        return None, ''
    order = 'wxyz' if first else 'xyzw'
    return order, f'init_state.rot of the file is the unit quaternion {"1, 0, 0, 0" if first else "0, 0, 0, 1"}'


def _joints(keys: Keys, pose: Mapping[str, Any], width: int, hints: Hints) -> tuple[list[str], str]:
    """Return the joints in policy order: what the user says, or the names of a serial arm; and why."""
    if hints.joints is not None:
        if len(hints.joints) != width:
            keys.fault('scene.robot', f'--joints has {len(hints.joints)} names, the network drives {width}')
        return list(hints.joints), ''
    names = [str(name) for name in pose]
    plain = all(PLAIN.fullmatch(name) for name in names)
    if names and plain and len(names) == width and not any(SIDES.search(name) for name in names):
        return names, 'the order of init_state.joint_pos; that of the simulator is the same for a serial arm'
    why = 'expressions' if not plain else f'{len(names)} names for {width} actions' if len(names) != width else 'branches'
    keys.fault(
        'scene.robot.init_state.joint_pos',
        f'does not tell the order of the joints ({why}); PhysX numbers them breadth first. Give --joints with {width} names in '
        'policy order (robot.joint_names of the simulator)',
    )
    return [f'joint_{i}' for i in range(width)], ''


def _actions(keys: Keys, joints: list[str]) -> dict[str, dict[str, Any]]:
    """Return the actions by name, in the order of the file, which is that of the network's output."""
    listed = keys.below('actions')
    entries = {}
    for name, data in listed.data.items():
        if data is None:
            continue
        action = Keys(data, keys.source, f'actions.{name}', keys.faults)
        own = matching(action, joints)
        kind = isaac_lab.class_name(action.data.get('class_type', ''))
        offset = None if action.data.get('use_default_offset', False) else action.data.get('offset', 0.0)
        if own:
            entries[name] = isaac_lab.action_entry(action, kind, own, offset, None)
    return {name: entry for name, entry in entries.items() if entry}


def matching(keys: Keys, joints: Sequence[str], field: str = 'joint_names') -> list[str]:
    """Return the joints that expressions select, in the order of the simulator, or of the list with preserve_order."""
    patterns = keys.names(field)
    try:
        groups = [[joint for joint in joints if re.fullmatch(pattern, joint)] for pattern in patterns]
    except re.error as error:
        keys.fault(field, f'is no expression: {error}')
        return []
    for pattern, group in zip(patterns, groups, strict=True):
        if not group:
            keys.fault(field, f'{pattern} matches none of {", ".join(joints)}')
    chosen = [joint for group in groups for joint in group]
    return list(dict.fromkeys(chosen)) if keys.data.get('preserve_order') else [j for j in joints if j in chosen]


def _tables(
    keys: Keys, robot: Keys, joints: list[str], actions: Mapping[str, dict[str, Any]], hints: Hints
) -> dict[str, dict[str, float]]:
    pose = isaac_lab.per_joint(robot.below('init_state').data.get('joint_pos', 0.0), joints, 0.0)
    if pose is None:
        robot.fault('init_state.joint_pos', 'a number by joint is expected')
    gains: dict[str, dict[str, float]] = {'stiffness': {}, 'damping': {}}
    actuators = robot.below('actuators')
    for name in actuators.data:
        actuator = actuators.below(name)
        own = matching(actuator, joints, 'joint_names_expr')
        for field, table in gains.items():
            values = isaac_lab.per_joint(actuator.data.get(field), own, math.nan)
            if values is None:
                actuator.fault(field, 'a number, or a table by joint, is expected')
            else:
                table.update(by_joint(own, values))
    told = False  # a gain that is not stated is no gain of 0
    for field, table in gains.items():
        lacking = [joint for joint in joints if not math.isfinite(table.get(joint, math.nan))]
        if lacking and not hints.sets(field):
            robot.fault(
                'actuators', f'state no {field} for {", ".join(lacking)} (null means that of the USD file); --set {field}=...'
            )
            told = True
        table.update(dict.fromkeys(lacking, 0.0))
    stiff = {joint for entry in actions.values() if entry['type'] == 'joint_position' for joint in entry['joints']}
    if not told:
        isaac_lab.check_gains(robot, joints, [gains['stiffness'][joint] for joint in joints], hints, stiff)
    tables = {field: {joint: table[joint] for joint in joints} for field, table in gains.items()}
    return {'default_position': by_joint(joints, pose or [0.0] * len(joints)), **tables}


def _assume(imported: Imported, name: str) -> None:
    """Record what this file never says."""
    part = imported.contract['inputs'][name]
    for i, use in enumerate(part['terms']):
        if use['term'] == 'last_action':
            why = 'last_action of Isaac Lab is the raw output'
            imported.assume(f'inputs.{name}.terms.{i}.value', 'raw', why, put=False)
    if part['stack']['lags'] != [0] or any('lags' in use for use in part['terms']):
        told = "term-major, oldest first, filled with the first tick: Isaac Lab's circular buffer"
        imported.assume(f'inputs.{name}.stack', told, 'not in the file', put=False)
