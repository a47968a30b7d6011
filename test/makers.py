# SPDX-License-Identifier: Apache-2.0
"""Makers of real files for the tests: ONNX networks, contracts, golden vectors. Nothing here mocks anything."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.signals import RobotState

REPOSITORY = Path(__file__).resolve().parents[1]
JOINTS = ['a_hip_joint', 'a_knee_joint', 'b_hip_joint', 'b_knee_joint']
OBS_WIDTH = 21  # of the contract below: 3 + 3 + 3 + 4 + 4 + 4

CONTRACT: dict[str, Any] = {
    'schema': 1,
    'name': 'testbot_velocity',
    'robot': 'testbot',
    'model': {'file': 'policy.onnx'},
    'rate_hz': 50,
    'joints': JOINTS,
    'default_position': {'.*_hip_joint': 0.1, '.*_knee_joint': -1.5},
    'stiffness': {'.*': 25.0},
    'damping': {'.*': 0.6},
    'inputs': {
        'obs': {
            'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'},
            'terms': [
                {'term': 'base_ang_vel', 'scale': 0.25, 'clip': [-100, 100], 'process': ['clip', 'scale']},
                {'term': 'projected_gravity'},
                {'term': 'velocity_command', 'scale': [2.0, 2.0, 0.25]},
                {'term': 'joint_pos_rel'},
                {'term': 'joint_vel', 'scale': 0.05},
                {'term': 'last_action', 'value': 'raw'},
            ],
        }
    },
    'outputs': {'actions': {'type': 'joint_position', 'scale': 0.25, 'offset': 'default', 'clip': None}},
    'commands': {'velocity': {'x': [-1.0, 1.5], 'y': [-0.5, 0.5], 'yaw': [-1.5, 1.5], 'timeout_s': 0.5}},
    'phase': None,
    'latency': {'trained_ms': [0, 20]},
    'golden': None,
    'provenance': {'trainer': 'none, made for a test'},
}


def contract_data(**changes: Any) -> dict[str, Any]:
    """Return a complete valid contract as parsed YAML, its top-level keys replaced by `changes`; free to mutate."""
    return copy.deepcopy(CONTRACT) | changes


def make_contract(data: Mapping[str, Any] | None = None, model_path: Path | None = None, **changes: Any) -> Contract:
    """Return a checked contract without touching a file."""
    document = contract_data(**changes) if data is None else dict(data)
    if model_path is not None:
        document['model'] = {'file': model_path.name}
    file = validate(ContractFile, document, 'contract.yaml')
    return resolve(file, 'contract.yaml', None if model_path is None else model_path.parent)


@dataclass(frozen=True)
class Linear:
    """What an ONNX file made by `make_onnx` computes, in numpy.

    Without state: `y = x W + b`, x being the inputs side by side. With state: `h' = h + x U + c`, `y = x W + b + h' V`;
    the drift c makes ticks of zeros count, so that a warm-up which leaves its state behind shows.
    """

    path: Path
    weight: np.ndarray
    bias: np.ndarray
    state_in: np.ndarray  # U
    state_out: np.ndarray  # V
    drift: np.ndarray  # c

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the outputs side by side, (..., m)."""
        return x @ self.weight + self.bias


def make_onnx(
    path: Path,
    inputs: Mapping[str, int] | None = None,
    outputs: Mapping[str, int] | None = None,
    *,
    batch: int | str | None = 1,
    state: int = 0,
    nan: bool = False,
    dtype: int = TensorProto.FLOAT,
    metadata: Mapping[str, str] | None = None,
    external: bool = False,
    free_width: bool = False,
    seed: int = 0,
) -> Linear:
    """Write a linear policy as an ONNX file.

    Args:
        path: the file.
        inputs: width by name; `obs` of the test contract when None.
        outputs: width by name; `actions` of the test contract when None.
        batch: a number (fixed batch dimension), a string (free batch dimension), or None (rank-1 tensors).
        state: width of a recurrent state `h_in` -> `h_out` of shape (1, 1, width); 0 for none.
        nan: put a NaN into the weights.
        dtype: of every tensor.
        metadata: goes into the file.
        external: put the weights into a file of their own, `<name>.data`.
        free_width: leave the width of the inputs open in the file.
        seed: of the weights.
    """
    inputs = {'obs': OBS_WIDTH} if inputs is None else inputs
    outputs = {'actions': len(JOINTS)} if outputs is None else outputs
    rng = np.random.default_rng(seed)
    total_in, total_out = sum(inputs.values()), sum(outputs.values())
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    arrays = {
        'W': rng.normal(0, 0.3, (total_in, total_out)),
        'b': rng.normal(0, 0.3, total_out),
        'U': rng.normal(0, 0.3, (total_in, state)),
        'V': rng.normal(0, 0.3, (state, total_out)),
        'c': rng.normal(0, 0.3, state),
    }
    arrays = {name: values.astype(kind) for name, values in arrays.items()}
    if nan:
        arrays['W'][0, 0] = np.nan
    lead = [] if batch is None else [batch]
    values_in = [
        helper.make_tensor_value_info(name, dtype, [*lead, f'{name}_width' if free_width else width])
        for name, width in inputs.items()
    ]
    values_out = [helper.make_tensor_value_info(name, dtype, [*lead, width]) for name, width in outputs.items()]
    nodes = [
        helper.make_node('Concat', list(inputs), ['x'], axis=-1),
        helper.make_node('MatMul', ['x', '_W'], ['xW']),
        helper.make_node('Add', ['xW', '_b'], ['y0']),
    ]
    constants = [numpy_helper.from_array(arrays[name], f'_{name}') for name in ('W', 'b')]
    last = 'y0'
    if state:
        values_in.append(helper.make_tensor_value_info('h_in', dtype, [1, 1, state]))
        values_out.append(helper.make_tensor_value_info('h_out', dtype, [1, 1, state]))
        nodes += [
            helper.make_node('MatMul', ['x', '_U'], ['xU']),
            helper.make_node('Add', ['xU', '_c'], ['xUc']),
            helper.make_node('Add', ['h_in', 'xUc'], ['h_out']),
            helper.make_node('MatMul', ['h_out', '_V'], ['hV']),
            helper.make_node('Squeeze', ['hV', 'first'], ['hV2']),
            helper.make_node('Add', ['y0', 'hV2'], ['y1']),
        ]
        constants += [numpy_helper.from_array(arrays[name], f'_{name}') for name in ('U', 'V', 'c')]
        constants.append(numpy_helper.from_array(np.array([0], dtype=np.int64), 'first'))
        last = 'y1'
    constants.append(numpy_helper.from_array(np.array(list(outputs.values()), dtype=np.int64), 'split'))
    nodes.append(helper.make_node('Split', [last, 'split'], list(outputs), axis=-1))
    model = helper.make_model(
        helper.make_graph(nodes, 'policy', values_in, values_out, constants), opset_imports=[helper.make_opsetid('', 17)]
    )
    model.ir_version = 8
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    if external:
        onnx.save(model, path, save_as_external_data=True, location=f'{path.name}.data', size_threshold=100)
    else:
        onnx.save(model, path)
    return Linear(path, arrays['W'], arrays['b'], arrays['U'], arrays['V'], arrays['c'])


def write_yaml(path: Path, data: Any) -> Path:
    """Write data as YAML and return the path."""
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding='utf-8')
    return path


def write_policy(folder: Path, data: Mapping[str, Any] | None = None, **onnx_options: Any) -> Path:
    """Write `policy.onnx` and `policy.yaml` into a folder, return the path of the YAML."""
    folder.mkdir(parents=True, exist_ok=True)
    make_onnx(folder / 'policy.onnx', **onnx_options)
    return write_yaml(folder / 'policy.yaml', contract_data() if data is None else data)


def random_state(
    rng: np.random.Generator, joints: int = len(JOINTS), batch: Sequence[int] = (), stamp: float = 0.0
) -> RobotState:
    """Return a robot state of arbitrary but plausible numbers."""
    quat = rng.normal(size=(*batch, 4))
    return RobotState(
        stamp=stamp,
        joint_pos=rng.uniform(-2, 2, (*batch, joints)),
        joint_vel=rng.uniform(-20, 20, (*batch, joints)),
        base_quat_xyzw=quat / np.linalg.norm(quat, axis=-1, keepdims=True),
        base_ang_vel=rng.normal(size=(*batch, 3)),
        base_lin_vel=rng.normal(size=(*batch, 3)),
        base_pos=rng.normal(size=(*batch, 3)),
        base_lin_acc=rng.normal(size=(*batch, 3)),
        foot_contacts=rng.integers(0, 2, (*batch, 2)).astype(float),
    )


def row(state: RobotState, index: Any) -> RobotState:
    """Return one robot (or a sub-batch) of a batch of states."""
    arrays = {field.name: getattr(state, field.name) for field in fields(state)}
    return replace(state, **{name: values[index] for name, values in arrays.items() if isinstance(values, np.ndarray)})
