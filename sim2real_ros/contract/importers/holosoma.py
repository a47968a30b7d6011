# SPDX-License-Identifier: Apache-2.0
"""ONNX metadata of holosoma: JSON values. The terms of an observation stand in ALPHABETICAL order, not as configured.

The file holds joint names, gains and command ranges. Default angles, action scale, observation list, scales and rate
come from the presets of holosoma_inference; each is an assumption.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.holosoma_presets import (
    LOCO,
    LOCO_FREE,
    ROBOTS,
    WBT,
    WBT_STATE,
    Robot,
    Task,
    frame_width,
    robot_with,
)
from sim2real_ros.contract.importers.metadata import metadata_of, network_of
from sim2real_ros.contract.importers.network import Tensors, tensors
from sim2real_ros.contract.importers.parts import put_velocity
from sim2real_ros.contract.importers.robots import robot_of
from sim2real_ros.contract.importers.sources import Keys
from sim2real_ros.contract.importers.tables import by_joint, one_or_table
from sim2real_ros.contract.importers.trackers import chain_by_name, chain_of_urdf, json_value, last_tick
from sim2real_ros.errors import DocumentError

NEEDS = 'one ONNX file with the metadata dof_names, kp, kd as JSON'
TERMS: dict[str, list[dict[str, Any]]] = {
    'actions': [{'term': 'last_action', 'value': 'clipped'}],
    'base_ang_vel': [{'term': 'base_ang_vel'}],
    'base_lin_vel': [{'term': 'base_lin_vel'}],
    'command_ang_vel': [{'term': 'velocity_command_yaw'}],
    'command_lin_vel': [{'term': 'velocity_command_lin'}],
    'cos_phase': [{'term': 'phase_cos'}],
    'dof_pos': [{'term': 'joint_pos_rel'}],
    'dof_vel': [{'term': 'joint_vel'}],
    'motion_command': [{'term': 'motion_command'}],
    'motion_ref_ori_b': [{'term': 'motion_anchor_ori_b'}],
    'motion_ref_pos_b': [{'term': 'motion_anchor_pos_b'}],
    'projected_gravity': [{'term': 'projected_gravity'}],
    'sin_phase': [{'term': 'phase_sin'}],
}
RANGES = {'x': ('lin_vel_x',), 'y': ('lin_vel_y',), 'yaw': ('ang_vel_yaw', 'ang_vel_z')}
COUNTER = 'time_step'


def detect(source: Path) -> float:
    """Return 1 for an ONNX file, or a folder with one, whose metadata has dof_names as JSON."""
    found = metadata_of(source)
    return 1.0 if found.get('dof_names', '').lstrip().startswith('[') else 0.0


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy of holosoma.

    Raises:
        DocumentError: metadata are missing, or the width of the network fits no observation list of holosoma.
    """
    network = network_of(source, hints)
    path = hints.network or (source if source.is_file() else network)
    graph = tensors(network)
    keys = Keys({name: json_value(text) for name, text in graph.metadata.items()}, str(path))
    joints = keys.names('dof_names')
    wanted = {field: key for field, key in (('stiffness', 'kp'), ('damping', 'kd')) if not hints.sets(field)}
    gains = {field: keys.numbers(key, len(joints)) for field, key in wanted.items()}
    keys.raise_faults()
    robot = robot_with(joints)
    name, action = _names(graph)
    task, history = _task(graph, name, len(joints), str(path))
    imported = Imported(
        {
            'name': hints.name or path.stem,
            'robot': hints.robot or (robot.name if robot else robot_of(joints)),
            'joints': joints,
            **{field: by_joint(joints, values) for field, values in gains.items()},
            'inputs': {name: _observation(task, robot, history)},
            'outputs': {action: {'type': 'joint_position', 'offset': 'default', 'clip': [-100.0, 100.0]}},
            'provenance': {'trainer': 'holosoma (ONNX metadata)'},
        },
        network,
    )
    _assume(imported, task, robot, history, name, action, joints)
    _put_action_scale(imported, keys, task, action, joints)
    if task in (LOCO, LOCO_FREE):
        _put_commands(imported, keys, task)
    else:
        _put_motion(imported, graph, keys, hints, robot)
    return imported


def _names(graph: Tensors) -> tuple[str, str]:
    """Return the names of the observation and of the action tensor."""
    inputs = [t.name for t in graph.inputs if t.name != COUNTER]
    outputs = [t.name for t in graph.outputs]
    return inputs[0], next((name for name in ('actions', 'action') if name in outputs), outputs[0])


def _task(graph: Tensors, name: str, n: int, source: str) -> tuple[Task, int]:
    """Return the observation list whose width fits, and how many ticks of it the network takes."""
    width = next(t.width for t in graph.inputs if t.name == name)
    tracker = COUNTER in {t.name for t in graph.inputs}
    tasks = (WBT, WBT_STATE) if tracker else (LOCO, LOCO_FREE)
    fitting = [(task, width // frame_width(task, n)) for task in tasks if width and width % frame_width(task, n) == 0]
    if not fitting:
        known = ', '.join(f'{frame_width(task, n)} ({task.known_as})' for task in tasks)
        raise DocumentError(
            source,
            [f'input {name}: {width} numbers for {n} joints; the observation lists of holosoma have {known}, or a multiple'],
        )
    return min(fitting, key=lambda one: one[1])


def _observation(task: Task, robot: Robot | None, history: int) -> dict[str, Any]:
    scales = robot.scales if robot is not None and task in (LOCO, LOCO_FREE) else {}
    terms = []
    for term in sorted(task.terms):
        for use in TERMS[term]:
            terms.append({**use, 'scale': scales[term]} if scales.get(term, 1.0) != 1.0 else dict(use))
    return {'stack': {'lags': list(range(history - 1, -1, -1)), 'layout': 'term_major', 'fill': 'zeros'}, 'terms': terms}


def _assume(
    imported: Imported, task: Task, robot: Robot | None, history: int, name: str, action: str, joints: list[str]
) -> None:
    """Record what the file does not say and the presets do."""
    order = f'{task.known_as}: {", ".join(sorted(task.terms))}'
    why = f'the width fits {task.where}; policies/base.py sorts the terms by name'
    imported.assume(f'inputs.{name}.terms', order, why, put=False)
    if robot is not None:
        imported.assume('default_position', by_joint(joints, robot.angles), f'{ROBOTS} of {robot.known_as}')
        if task in (LOCO, LOCO_FREE):
            imported.assume(f'inputs.{name}.terms.scale', robot.scales, f'obs_scales of loco_{robot.known_as}', put=False)
    if history > 1:
        told = f'{history} ticks, term-major, oldest first, zeros at the start'
        imported.assume(f'inputs.{name}.stack', told, 'the width is a multiple; policies/base.py stacks each term', put=False)
    imported.assume('rate_hz', 50, f'rl_rate, {task.where}')
    imported.assume(f'outputs.{action}.clip', [-100.0, 100.0], 'np.clip(action, -100, 100) in policies/base.py', put=False)
    imported.assume(f'outputs.{action}.offset', 'default', 'policies/base.py adds the default angles', put=False)


def _put_action_scale(imported: Imported, keys: Keys, task: Task, action: str, joints: list[str]) -> None:
    """Take action_scale of the metadata, which later versions write (JSON or comma-separated), or the preset's."""
    value = keys.data.get('action_scale')
    if isinstance(value, str):
        keys.data['action_scale'] = [part for part in value.split(',') if part.strip()]
    if value is None:
        why = f'policy_action_scale, {task.where}'
        imported.assume(f'outputs.{action}.scale', task.action_scale, why)
        return
    scales = keys.numbers('action_scale', len(joints))
    keys.raise_faults()
    imported.contract['outputs'][action]['scale'] = one_or_table(joints, scales)


def _put_commands(imported: Imported, keys: Keys, task: Task) -> None:
    given = keys.data.get('command_ranges')
    below = Keys(given, keys.source, 'command_ranges', keys.faults) if isinstance(given, dict) else None
    ranges, missing = {}, []
    for axis, names in RANGES.items():
        key = next((name for name in names if below is not None and name in below), None)
        ranges[axis] = [-1.0, 1.0] if below is None or key is None else below.numbers(key, 2)
        missing += [axis] if key is None else []
    keys.raise_faults()
    put_velocity(imported, ranges)
    for axis in missing:
        why = 'command_ranges in the metadata lacks it; the range of the shipped policies'
        imported.assume(f'commands.velocity.{axis}', ranges[axis], why, put=False)
    if task is LOCO:
        clock = {
            'period_s': 1.0, 'encoding': ['sin', 'cos'], 'offsets': [0.0, 0.5], 'timebase': 'policy_ticks',
            'stop_at_zero_command': True, 'standing_below': 0.01, 'standing_phase': 0.5,
        }  # fmt: skip
        why = (
            f'gait_period, {task.where}; policies/locomotion.py puts both feet at pi below a command of 0.01 and starts at 0 '
            'and pi in the tick of the first command'
        )
        imported.assume('phase', clock, why)


def _put_motion(imported: Imported, graph: Tensors, keys: Keys, hints: Hints, robot: Robot | None) -> None:
    """Put the counter, the reference motion and the way to the torso, which the URDF in the metadata tells."""
    outputs = [t.name for t in graph.outputs]
    reference = [name for name in ('joint_pos', 'joint_vel') if name in outputs]
    last = last_tick(imported.network, graph, COUNTER, reference) if reference else None
    counter: dict[str, Any] = {'counter': 'ticks', 'start': 0}
    if last is not None:
        counter |= {'last': last, 'end': 'hold'}
        imported.assume(
            f'inputs.{COUNTER}.last', last, 'asked of the network: its reference does not change after it', put=False
        )
    imported.contract['inputs'][COUNTER] = counter
    names = {'joint_pos': 'joint_pos', 'joint_vel': 'joint_vel', 'anchor_pos': 'ref_pos_xyz', 'anchor_quat': 'ref_quat_xyzw'}
    motion: dict[str, Any] = {
        'source': 'network', 'quaternion': 'xyzw', 'end': 'hold',
        'quantities': {quantity: name for quantity, name in names.items() if name in outputs},
    }  # fmt: skip
    imported.contract['motion'] = motion
    if hints.sets('motion.anchor'):
        return
    torso = robot.torso if robot is not None else 'torso_link'
    urdf = keys.data.get('robot_urdf')
    chain = chain_of_urdf(urdf, torso) if isinstance(urdf, str) else chain_by_name(torso, imported.contract['joints'])
    if chain is None:
        raise DocumentError(
            keys.source, [f'robot_urdf: is missing, so the joints from the base to {torso} are not known; set motion.anchor']
        )
    why = f'torso_link_name, {ROBOTS.split(",")[0]}; ' + (
        'the way from the URDF in the metadata' if urdf else 'the way by name'
    )
    imported.assume('motion.anchor', {'body': torso, 'chain': [list(step) for step in chain]}, why)
