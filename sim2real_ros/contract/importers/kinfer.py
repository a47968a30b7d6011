# SPDX-License-Identifier: Apache-2.0
"""kinfer archives of K-Scale Labs: .kinfer, a tar.gz of init_fn.onnx, step_fn.onnx and metadata.json.

Inputs are told by their names. Projected gravity is in m/s^2, not a unit vector. The file has no gains and no default pose.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.network import Tensors, tensors
from sim2real_ros.contract.importers.parts import put_velocity
from sim2real_ros.contract.importers.robots import robot_of
from sim2real_ros.contract.importers.sources import Keys
from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import DocumentError, ModelFileError

NEEDS = 'a .kinfer archive: init_fn.onnx, step_fn.onnx and metadata.json in a tar.gz'
MEMBERS = ('init_fn.onnx', 'step_fn.onnx', 'metadata.json')
MAX_BYTES = {'init_fn.onnx': 200_000_000, 'step_fn.onnx': 200_000_000, 'metadata.json': 1_000_000}
GRAVITY = 9.81  # m/s^2
RANGES = {'x': [-1.0, 1.0], 'y': [-1.0, 1.0], 'yaw': [-1.0, 1.0]}
VELOCITIES = (['xvel', 'yvel', 'yawrate'], ['vx', 'vy', 'wz'], ['x', 'y', 'yaw'], ['x_vel', 'y_vel', 'yaw_rate'])
TERMS: dict[str, dict[str, Any]] = {
    'joint_angles': {'term': 'joint_pos'},
    'joint_angular_velocities': {'term': 'joint_vel'},
    'projected_gravity': {'term': 'projected_gravity', 'scale': GRAVITY},
    'accelerometer': {'term': 'base_accelerometer'},
    'gyroscope': {'term': 'base_ang_vel'},
    'command': {'term': 'velocity_command'},
    'time': {'term': 'time'},
}


def detect(source: Path) -> float:
    """Return 1 for a .kinfer file."""
    return 1.0 if source.is_file() and source.suffix == '.kinfer' else 0.0


def read(source: Path, hints: Hints) -> Imported:
    """Return the draft of a policy in a kinfer archive.

    Raises:
        ModelFileError: not such an archive, or one that would write elsewhere or is too large.
        DocumentError: its metadata and networks contradict one another, or take what this stack cannot give.
    """
    files = unpack(source, hints.workspace)
    try:
        data = json.loads(files['metadata.json'].read_text(encoding='utf-8'))
    except (ValueError, RecursionError) as error:
        raise DocumentError(f'{source}: metadata.json', [f'not valid JSON: {error}']) from None
    keys = Keys(data, f'{source}: metadata.json')
    joints = keys.names('joint_names')
    graph = tensors(files['step_fn.onnx'])
    inputs = _inputs(graph, keys, len(joints), files['init_fn.onnx'])
    outputs = [t.name for t in graph.outputs]
    keys.raise_faults()
    imported = Imported(
        {
            'name': hints.name or source.stem,
            'robot': hints.robot or robot_of(joints),
            'joints': joints,
            'inputs': inputs,
            'outputs': {outputs[0]: {'type': 'joint_position', 'scale': 1.0, 'offset': 'zeros', 'clip': None}},
            'provenance': {'trainer': 'kinfer archive (ksim, K-Scale Labs)'},
        },
        files['step_fn.onnx'],
    )
    _assume(imported, outputs[0])
    return imported


def unpack(source: Path, folder: Path) -> dict[str, Path]:
    """Write the three members into a folder, under names of our own; nothing else of the archive is written.

    Raises:
        ModelFileError: a member is missing, occurs twice, is no plain file, too large, or not one of the three.
    """
    read_model(source)  # missing, empty, a Git-LFS pointer
    files: dict[str, Path] = {}
    try:
        with tarfile.open(source, 'r:gz') as archive:
            for member in archive:
                name = member.name.removeprefix('./')
                if name in ('', '.'):
                    continue
                _check(member, name, files, source)
                content = archive.extractfile(member)
                files[name] = folder / name
                files[name].write_bytes(b'' if content is None else content.read(MAX_BYTES[name] + 1))
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise ModelFileError(f'{source} is not a kinfer archive (tar.gz), or a damaged one: {error}') from None
    missing = [name for name in MEMBERS if name not in files]
    if missing:
        raise ModelFileError(f'{source} lacks {", ".join(missing)}; a kinfer archive has {", ".join(MEMBERS)}')
    return files


def _check(member: tarfile.TarInfo, name: str, files: dict[str, Path], source: Path) -> None:
    if name not in MEMBERS:
        raise ModelFileError(f'{source} holds {member.name!r}; a kinfer archive has {", ".join(MEMBERS)} alone: refused')
    if not member.isfile():
        raise ModelFileError(f'{source}: {name} is a link or a folder, not a file: refused')
    if member.size > MAX_BYTES[name]:
        raise ModelFileError(f'{source}: {name} says it has {member.size} bytes, more than {MAX_BYTES[name]}: refused')
    if name in files:
        raise ModelFileError(f'{source} holds {name} twice: refused')


def _inputs(graph: Tensors, keys: Keys, n: int, init: Path) -> dict[str, Any]:
    """Return the inputs of the step function by their names."""
    inputs: dict[str, Any] = {}
    widths = {'joint_angles': n, 'joint_angular_velocities': n, 'projected_gravity': 3, 'accelerometer': 3, 'gyroscope': 3}
    for tensor in graph.inputs:
        if tensor.name == 'carry':
            inputs['carry'] = {'state': graph.outputs[-1].name, 'initial': _initial(init, tensor.shape, keys)}
            continue
        if tensor.name not in TERMS:
            keys.fault(f'step_fn input {tensor.name}', f'is not known; known are {", ".join(TERMS)}, carry')
            continue
        if tensor.name in widths and tensor.width != widths[tensor.name]:
            keys.fault(f'step_fn input {tensor.name}', f'has {tensor.width} numbers, {widths[tensor.name]} are expected')
        if tensor.name == 'command':
            _check_command(keys, tensor.width)
        inputs[tensor.name] = {
            'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': [dict(TERMS[tensor.name])]
        }  # fmt: skip
    action = graph.outputs[0]
    if action.width != n:
        keys.fault(f'step_fn output {action.name}', f'has {action.width} numbers for {n} joints; one position each is expected')
    return inputs


def _check_command(keys: Keys, width: int | None) -> None:
    names = [name.lower() for name in keys.names('command_names', [])]
    if width != 3 or (names and names not in VELOCITIES):
        what = ', '.join(names) or f'{width} numbers without names'
        keys.fault('command_names', f'the policy takes {what}; this stack gives a velocity command: x, y, yaw rate')


def _initial(init: Path, shape: tuple[int | None, ...], keys: Keys) -> Any:
    """Return the carry that the init function gives, as a list, or `zeros`."""
    from sim2real_ros.policy.network import open_session  # noqa: PLC0415 - onnxruntime only where a network is run

    session = open_session(init)
    if session.get_inputs() or len(session.get_outputs()) != 1:
        keys.fault('init_fn', 'takes nothing and gives one tensor, the carry; this one does not')
        return 'zeros'
    carry = np.asarray(session.run(None, {})[0], dtype=float)
    if list(carry.shape) != [d or 1 for d in shape] or not np.isfinite(carry).all():
        keys.fault('init_fn', f'gives a carry of shape {list(carry.shape)}, the step function takes {list(shape)}, finite')
        return 'zeros'
    return 'zeros' if not carry.any() else carry.ravel().tolist()


def _assume(imported: Imported, action: str) -> None:
    why = 'not in the archive; '
    imported.assume('rate_hz', 50, f'{why}the kinfer runtime steps every 20 ms')
    told = 'targets are joint angles in rad'
    imported.assume(f'outputs.{action}', told, f'{why}kinfer gives the action to the actuators as positions', put=False)
    inputs = imported.contract['inputs']
    if 'projected_gravity' in inputs:
        sense = f'{why}ksim rotates (0, 0, -9.81) m/s^2 into the body: (0, 0, -9.81) when level'
        imported.assume('inputs.projected_gravity.terms.0.scale', GRAVITY, sense, put=False)
    if 'command' in inputs:
        put_velocity(imported, RANGES, f'{why}1 m/s and 1 rad/s are what walking policies are commonly trained for')
    imported.notes.append(
        'The archive has neither gains nor a default pose: stiffness, damping and default_position are yours.'
    )
