# SPDX-License-Identifier: Apache-2.0
"""Broken networks: ONNX files that lie about their shapes, do not fit, never end, or take all the memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, ACTIONS = 47, 12  # of the shipped policy
HUGE = 1_000_000_000


def info(name: str, shape: Sequence[int | str] | None, dtype: int = TensorProto.FLOAT) -> Any:
    """Describe an input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[Any], constants: dict[str, np.ndarray] | None = None, inputs: Any = None, outputs: Any = None, **more: Any
) -> onnx.ModelProto:
    """Return a model of 47 numbers in and 12 out, which nobody has checked."""
    graph = helper.make_graph(
        list(nodes),
        'broken',
        [info('obs', [1, WIDTH])] if inputs is None else inputs,
        [info('actions', [1, ACTIONS])] if outputs is None else outputs,
        [numpy_helper.from_array(values, name) for name, values in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=more.pop('opsets', [helper.make_opsetid('', 17)]))
    made.ir_version = more.pop('ir', 8)
    return made


def weights(value: float = 0.01, dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """Return the weights of `dense`."""
    return {'W': np.full((WIDTH, ACTIONS), value, dtype)}


def dense(out: str = 'actions') -> Any:
    """Return the node that makes actions of observations."""
    return helper.make_node('MatMul', ['obs', 'W'], [out])


def _chain(*nodes: tuple[str, list[str], list[str]], **constants: Any) -> onnx.ModelProto:
    """Return the dense layer `y` and what follows it."""
    return model([dense('y'), *(helper.make_node(*node) for node in nodes)], weights() | constants)


def _loop(body_nodes: Sequence[Any], body_constants: dict[str, np.ndarray], shape: Any, start: np.ndarray) -> onnx.ModelProto:
    """Return a model with a Loop that never ends around `v` -> `v_out`."""
    body = helper.make_graph(
        [helper.make_node('Identity', ['cond'], ['cond_out']), *body_nodes],
        'body',
        [info('i', [], TensorProto.INT64), info('cond', [], TensorProto.BOOL), info('v', shape)],
        [info('cond_out', [], TensorProto.BOOL), info('v_out', shape)],
        [numpy_helper.from_array(values, name) for name, values in body_constants.items()],
    )
    nodes = [
        dense('y'),
        helper.make_node('Loop', ['', 'true', 'start'], ['v_end'], body=body),
        helper.make_node('ReduceSum', ['v_end'], ['sum'], keepdims=0),
        helper.make_node('Add', ['y', 'sum'], ['actions']),
    ]
    return model(nodes, weights() | {'true': np.array(True), 'start': start})


def _endless() -> onnx.ModelProto:
    return _loop([helper.make_node('Identity', ['v'], ['v_out'])], {}, [1], np.zeros(1, np.float32))


def _growing() -> onnx.ModelProto:
    double = helper.make_node('Concat', ['v', 'v'], ['v_out'], axis=0)
    return _loop([double], {}, ['n'], np.zeros(1024, np.float32))


def _hungry(count: int) -> onnx.ModelProto:
    """Return a model that asks for 4 `count` bytes at every tick."""
    return model(
        [
            dense('y'),
            helper.make_node('Shape', ['obs'], ['s']),
            helper.make_node('ReduceProd', ['s'], ['p'], keepdims=1),
            helper.make_node('Mul', ['p', 'many'], ['n']),
            helper.make_node('ConstantOfShape', ['n'], ['zeros']),
            helper.make_node('ReduceSum', ['zeros'], ['sum'], keepdims=0),
            helper.make_node('Add', ['y', 'sum'], ['actions']),
        ],
        weights() | {'many': np.array([count // WIDTH], np.int64)},
        [info('obs', ['batch', WIDTH])],
    )


def _lying_weight(dims: Sequence[int], size: int) -> onnx.ModelProto:
    """Return a model whose weight says one shape and has another number of bytes."""
    made = model([dense()], weights())
    tensor = made.graph.initializer[0]
    del tensor.dims[:]
    tensor.dims.extend(dims)
    tensor.raw_data = bytes(size)
    return made


def _untyped_weight(kind: int) -> onnx.ModelProto:
    made = model([dense()], weights())
    made.graph.initializer[0].data_type = kind
    return made


def _cycle() -> onnx.ModelProto:
    add = helper.make_node('Add', ['y', 'b'], ['a'])
    back = helper.make_node('Add', ['a', 'y'], ['b'])
    return model([dense('y'), add, back, helper.make_node('Identity', ['a'], ['actions'])], weights())


def _nested(depth: int) -> bytes:
    """Return a file of Ifs inside each other, written byte by byte: deeper than protobuf itself would write."""
    graph = b''
    for _ in range(depth):
        branch = _field(1, b'then_branch') + _field(6, graph)
        graph = _field(1, _field(4, b'If') + _field(5, branch))
    return _field(7, graph)


def _field(number: int, content: bytes) -> bytes:
    """Return a message's field of bytes, as protobuf writes it."""
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + content


def _gather() -> onnx.ModelProto:
    """Return a model that computes from zeros, and looks beyond a table for anything else."""
    return model(
        [
            dense('y'),
            helper.make_node('Abs', ['obs'], ['a']),
            helper.make_node('ReduceMax', ['a'], ['m'], axes=[1], keepdims=0),
            helper.make_node('Mul', ['m', 'large'], ['ml']),
            helper.make_node('Ceil', ['ml'], ['mc']),
            helper.make_node('Cast', ['mc'], ['index'], to=TensorProto.INT64),
            helper.make_node('Gather', ['table', 'index'], ['g']),
            helper.make_node('Add', ['y', 'g'], ['actions']),
        ],
        weights() | {'large': np.array(1e6, np.float32), 'table': np.zeros((1, ACTIONS), np.float32)},
    )


FLOAT64, INT64, STRING, BOOL, HALF = (
    TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL, TensorProto.FLOAT16
)  # fmt: skip

NETWORKS: dict[str, Callable[[], onnx.ModelProto | bytes]] = {
    'an input of a billion': lambda: model([dense()], weights(), [info('obs', [1, HUGE])]),
    'a batch of a billion': lambda: model(
        [dense()], weights(), [info('obs', [HUGE, WIDTH])], [info('actions', [HUGE, ACTIONS])]
    ),
    'a shape beyond 64 bits': lambda: model([dense()], weights(), [info('obs', [2**62, 2**62])]),
    'a weight of 1e18 numbers': lambda: _lying_weight([HUGE, HUGE], 64),
    'a weight that lacks a byte': lambda: _lying_weight([WIDTH, ACTIONS], 4 * WIDTH * ACTIONS - 1),
    'a weight without numbers': lambda: _lying_weight([WIDTH, ACTIONS], 0),
    'a weight of negative shape': lambda: _lying_weight([-WIDTH, ACTIONS], 64),
    'a weight of no size': lambda: _lying_weight([0, ACTIONS], 0),
    'a weight of an unknown type': lambda: _untyped_weight(77),
    'a weight of strings': lambda: _untyped_weight(STRING),
    'a weight of halves': lambda: _untyped_weight(HALF),
    'an input of doubles': lambda: model([dense()], weights(), [info('obs', [1, WIDTH], FLOAT64)]),
    'an input of strings': lambda: model(
        [helper.make_node('Identity', ['W'], ['actions'])],
        {'W': np.zeros((1, ACTIONS), np.float32)},
        [info('obs', [1, WIDTH], STRING)],
    ),
    'an output of bools': lambda: model(
        [helper.make_node('Cast', ['y'], ['actions'], to=BOOL), dense('y')][::-1],
        weights(),
        None,
        [info('actions', [1, 12], BOOL)],
    ),
    'an output of integers': lambda: model([dense()], weights(), None, [info('actions', [1, ACTIONS], INT64)]),
    'an input of no size': lambda: model([dense()], weights(), [info('obs', [1, 0])]),
    'a batch of no size': lambda: model([dense()], weights(), [info('obs', [0, WIDTH])], [info('actions', [0, ACTIONS])]),
    'an input without a shape': lambda: model([dense()], weights(), [info('obs', None)], [info('actions', [1, 11])]),
    'four axes': lambda: model(
        [helper.make_node('MatMul', ['obs', 'W'], ['actions'])],
        weights(),
        [info('obs', [1, 2, 3, WIDTH])],
        [info('actions', None)],
    ),
    'another width': lambda: model([dense()], {'W': np.zeros((48, ACTIONS), np.float32)}, [info('obs', [1, 48])]),
    'fewer actions': lambda: model([dense()], {'W': np.zeros((WIDTH, 11), np.float32)}, None, [info('actions', [1, 11])]),
    'another input name': lambda: model(
        [helper.make_node('MatMul', ['o', 'W'], ['actions'])], weights(), [info('o', [1, WIDTH])]
    ),
    'a second input': lambda: model([dense()], weights(), [info('obs', [1, WIDTH]), info('image', [1, 3, 64, 64])]),
    'no input': lambda: model([helper.make_node('Identity', ['a'], ['actions'])], {'a': np.zeros((1, 12), np.float32)}, []),
    'no output': lambda: model([dense()], weights(), None, []),
    'no nodes': lambda: model([]),
    'no graph': onnx.ModelProto,
    'a cycle': _cycle,
    'an unknown operator': lambda: _chain(('Teleport', ['y'], ['actions'])),
    'an unknown domain': lambda: model(
        [dense('y'), helper.make_node('Relu', ['y'], ['actions'], domain='com.nobody')],
        weights(),
        opsets=[helper.make_opsetid('', 17), helper.make_opsetid('com.nobody', 1)],
    ),  # fmt: skip
    'a Python operator': lambda: model(
        [dense('y'), helper.make_node('PyOp', ['y'], ['actions'], domain='ai.onnx.contrib')],
        weights(),
        opsets=[helper.make_opsetid('', 17), helper.make_opsetid('ai.onnx.contrib', 1)],
    ),  # fmt: skip
    'an operator set of the future': lambda: model([dense()], weights(), opsets=[helper.make_opsetid('', 9999)]),
    'a format of the future': lambda: model([dense()], weights(), ir=9999),
    'a tensor that nobody makes': lambda: _chain(('Add', ['y', 'ghost'], ['actions'])),
    'two makers of one tensor': lambda: model([dense(), dense()], weights()),
    'shapes that do not fit': lambda: _chain(('Add', ['y', 'b'], ['actions']), b=np.zeros((1, 5), np.float32)),
    'a reshape to nowhere': lambda: _chain(('Reshape', ['y', 's'], ['actions']), s=np.array([7, 7], np.int64)),
    'a division by zero': lambda: _chain(('Sub', ['y', 'y'], ['z']), ('Div', ['z', 'z'], ['actions'])),
    'weights of NaN': lambda: model([dense()], weights(float('nan'))),
    'weights of infinity': lambda: model([dense()], weights(float('inf'))),
    'an overflow on all but zeros': lambda: model([dense()], weights(3e38)),
    'a NaN on all but zeros': lambda: _chain(
        ('Mul', ['y', 'k'], ['k2']), ('Exp', ['k2'], ['e']), ('Sub', ['e', 'e'], ['actions']), k=np.array(1e6, np.float32)
    ),
    'an error on all but zeros': _gather,
    'Ifs inside each other': lambda: _nested(5000),
    'all the memory': lambda: _hungry(20 * HUGE),
    'all the memory, doubling': _growing,
    'a loop that never ends': _endless,
}


def save(made: onnx.ModelProto | bytes, path: Path) -> None:
    """Write a model as it is."""
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())


def outside(path: Path, location: str, offset: int | None = None, length: int | None = None) -> None:
    """Write a model whose weight lies in another file."""
    made = model([dense()], weights())
    tensor = made.graph.initializer[0]
    tensor.ClearField('raw_data')
    tensor.data_location = TensorProto.EXTERNAL
    entries = {'location': location, 'offset': offset, 'length': length}
    for key, value in entries.items():
        if value is not None:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    save(made, path)
