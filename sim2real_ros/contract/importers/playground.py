# SPDX-License-Identifier: Apache-2.0
"""Policies of MuJoCo Playground: an ONNX file that says nothing, and a preset that says the rest (brax normaliser inside)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.metadata import network_of
from sim2real_ros.contract.importers.network import Tensors, tensors
from sim2real_ros.contract.importers.parts import put_velocity
from sim2real_ros.contract.importers.playground_presets import PRESETS, Preset
from sim2real_ros.contract.importers.tables import by_joint
from sim2real_ros.errors import DocumentError, FormatError, Sim2RealError

NEEDS = 'one ONNX file obs -> continuous_actions, and --preset when the widths fit no task or another one is meant'
INPUT, OUTPUT = 'obs', 'continuous_actions'


def detect(source: Path) -> float:
    """Return 0.6 for an ONNX file without metadata whose tensors have the names of Playground."""
    found = [source] if source.is_file() else sorted(source.glob('*.onnx'))
    if len(found) != 1 or found[0].suffix != '.onnx':
        return 0.0
    try:
        graph = tensors(found[0])
    except Sim2RealError:
        return 0.0
    return 0.6 if [t.name for t in graph.inputs] == [INPUT] and OUTPUT in [t.name for t in graph.outputs] else 0.0


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy by a preset.

    Raises:
        FormatError: no preset, or one that does not exist.
        DocumentError: the widths of the network are not those of the preset.
    """
    network = network_of(source, hints)
    path = hints.network or (source if source.is_file() else network)
    graph = tensors(network)
    observation, action = graph.observation(), graph.action()
    name = hints.preset or _fitting(graph, path)
    if name not in PRESETS:
        raise FormatError(f'--preset {name}: there is no such preset; known are {", ".join(PRESETS)}')
    preset = PRESETS[name]
    _check_widths(preset, name, graph, path)
    joints = list(preset.joints)
    imported = Imported(
        {
            'name': hints.name or path.stem,
            'robot': hints.robot or preset.robot,
            'joints': joints,
            'inputs': {observation.name: {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}}},
            'outputs': {action.name: {'type': 'joint_position', 'offset': 'default', 'clip': None}},
            'provenance': {'trainer': f'MuJoCo Playground, preset {name}'},
        },
        network,
    )
    _assume(imported, preset, f'preset {name}', observation.name, action.name)
    return imported


def _fitting(graph: Tensors, path: Path) -> str:
    """Return the only preset whose widths are those of the network."""
    widths = (graph.observation().width, graph.action().width)
    fitting = [name for name, preset in PRESETS.items() if widths == (preset.width, len(preset.joints))]
    if len(fitting) != 1:
        known = ', '.join(f'{name} ({preset.width} -> {len(preset.joints)})' for name, preset in PRESETS.items())
        raise FormatError(f'{path} has {widths[0]} -> {widths[1]} numbers; give --preset, one of {known}')
    return fitting[0]


def _check_widths(preset: Preset, name: str, graph: Tensors, path: Path) -> None:
    wanted = {graph.observation(): preset.width, graph.action(): len(preset.joints)}
    faults = [f'{t.name}: {t.width} numbers, the preset {name} has {width}' for t, width in wanted.items() if t.width != width]
    if faults:
        raise DocumentError(str(path), faults)


def _terms(preset: Preset) -> list[dict[str, Any]]:
    command: list[dict[str, Any]] = [{'term': 'velocity_command'}]
    own: dict[str, Any] = {'scale': [0.0 if joint in preset.blind else 1.0 for joint in preset.joints]} if preset.blind else {}
    body: list[dict[str, Any]] = [
        {'term': 'joint_pos_rel', **own},
        {'term': 'joint_vel', **own},
        {'term': 'last_action', 'value': 'raw'},
    ]
    clock: list[dict[str, Any]] = [{'term': 'phase'}] if preset.gait_hz else []
    sensed: list[dict[str, Any]] = [{'term': 'base_lin_vel'}, {'term': 'base_ang_vel'}, {'term': 'projected_gravity'}]
    return [*sensed, *body, *command] if preset.command_last else [*sensed, *command, *body, *clock]


def _assume(imported: Imported, preset: Preset, why: str, observation: str, action: str) -> None:
    """Set every field of the preset: the file states none of them."""
    joints = preset.joints
    imported.assume('joints', list(joints), f'{why}, after {preset.where}', put=False)
    imported.assume('rate_hz', 50, f'ctrl_dt 0.02, {why}')
    imported.assume('default_position', by_joint(joints, preset.pose), f'keyframe of {why}')
    imported.assume('stiffness', by_joint(joints, preset.stiffness), f'kp of the actuators, {why}')
    imported.assume('damping', by_joint(joints, preset.damping), f'kv of the actuators and damping of the joints, {why}')
    imported.assume(f'inputs.{observation}.terms', _terms(preset), f'get_obs of {why}')
    imported.assume(f'outputs.{action}.scale', preset.action_scale, f'action_scale of {why}')
    ranges = {axis: [-reach, reach] for axis, reach in (('x', preset.x), ('y', preset.y), ('yaw', preset.yaw))}
    put_velocity(imported, ranges, f'command range of the training, {why}')
    if preset.gait_hz:
        clock: dict[str, Any] = {
            'period_s': 1 / preset.gait_hz, 'encoding': ['cos', 'sin'], 'offsets': [0.0, 0.5], 'timebase': 'policy_ticks',
            'stop_at_zero_command': preset.stands,
        }  # fmt: skip
        if preset.stands:
            clock |= {'standing_below': 0.01, 'standing_phase': 0.5}
        stands = '; upstream the clock runs on under a standing robot, here it starts anew' if preset.stands else ''
        imported.assume('phase', clock, f'{preset.gait_source}{stands}')
    imported.notes.append(
        'base_lin_vel comes from a simulated velocimeter at the IMU upstream: a robot needs an estimate of it on odom.'
    )
