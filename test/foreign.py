# SPDX-License-Identifier: Apache-2.0
"""Makers of other trainers' files for the tests of the importers, and where the real ones lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from makers import REPOSITORY
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.contract.importers.draft import Hints

THIRD_PARTY = REPOSITORY.parent / 'shared' / 'third_party'


def third_party(name: str) -> Path:
    """Return the folder of a real policy; skips the test where it is absent."""
    folder = THIRD_PARTY / name
    if not folder.is_dir():
        pytest.skip(f'there is no {folder}')
    return folder


def hints(tmp_path: Path, **given: Any) -> Hints:
    """Return hints with a workspace below `tmp_path`."""
    workspace = tmp_path / 'workspace'
    workspace.mkdir(exist_ok=True)
    return Hints(workspace, **given)


def write_network(
    path: Path,
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int]],
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write an ONNX file of these tensors that gives 0.01 times the sum of its inputs, everywhere."""
    nodes = [helper.make_node('ReduceSum', [name], [f'sum_{name}'], keepdims=0) for name in inputs]
    nodes.append(helper.make_node('Sum', [f'sum_{name}' for name in inputs], ['total']))
    constants = []
    for name, shape in outputs.items():
        constants.append(numpy_helper.from_array(np.full(shape, 0.01, np.float32), f'one_{name}'))
        nodes.append(helper.make_node('Mul', [f'one_{name}', 'total'], [name]))
    return _save(path, nodes, inputs, outputs, constants, metadata)


def write_tracker(
    path: Path,
    width: int,
    tables: Mapping[str, np.ndarray],
    n: int,
    metadata: Mapping[str, str] | None = None,
    counter: str = 'time_step',
) -> Path:
    """Write a tracker: actions are 0; each table (ticks, ...) is read at the time step, which is clipped above."""
    ticks = len(next(iter(tables.values())))
    constants = [
        numpy_helper.from_array(np.array(float(ticks - 1), np.float32), 'most'),
        numpy_helper.from_array(np.array([-1]), 'flat'),
        numpy_helper.from_array(np.zeros((width, n), np.float32), 'weights'),
        *(numpy_helper.from_array(table.astype(np.float32), f'table_{name}') for name, table in tables.items()),
    ]
    nodes = [
        helper.make_node('MatMul', ['obs', 'weights'], ['actions']),
        helper.make_node('Clip', [counter, '', 'most'], ['clipped']),
        helper.make_node('Cast', ['clipped'], ['whole'], to=TensorProto.INT64),
        helper.make_node('Reshape', ['whole', 'flat'], ['index']),
        *(helper.make_node('Gather', [f'table_{name}', 'index'], [name]) for name in tables),
    ]
    outputs = {'actions': (1, n), **{name: (1, *table.shape[1:]) for name, table in tables.items()}}
    return _save(path, nodes, {'obs': (1, width), counter: (1, 1)}, outputs, constants, metadata)


def _save(
    path: Path,
    nodes: list[Any],
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int]],
    constants: list[Any],
    metadata: Mapping[str, str] | None,
) -> Path:
    graph = helper.make_graph(
        nodes,
        'policy',
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


def terms_of(contract: Mapping[str, Any], tensor: str) -> list[str]:
    """Return the names of the terms of an input of a draft."""
    return [use['term'] for use in contract['inputs'][tensor]['terms']]


def assumed(imported: Any) -> dict[str, str]:
    """Return the assumptions of a draft: source sentence by field."""
    return {one.field: one.source for one in imported.assumptions}
