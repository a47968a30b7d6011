# SPDX-License-Identifier: Apache-2.0
"""Promises of widening: the same numbers for many robots in one call, or the slow way."""

import numpy as np
import onnx
import pytest
from makers import JOINTS, OBS_WIDTH, contract_data, make_contract, make_onnx
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.policy.network import Network
from sim2real_ros.policy.session import open_session
from sim2real_ros.policy.widen import widened

ROBOTS = 7


def test_a_file_for_one_robot_serves_many_in_one_call_bit_for_bit(tmp_path):
    made = make_onnx(tmp_path / 'policy.onnx')
    session = open_session(made.path)
    wide = widened(made.path, session)
    assert wide is not None
    rows = np.random.default_rng(3).normal(size=(ROBOTS, OBS_WIDTH)).astype(np.float32)
    (together,) = wide.run(None, {'obs': rows})
    alone = [session.run(None, {'obs': row[None]})[0][0] for row in rows]
    assert together.tobytes() == np.array(alone).tobytes()


def test_a_batch_of_robots_uses_it(tmp_path):
    made = make_onnx(tmp_path / 'policy.onnx')
    contract = make_contract(contract_data(), made.path)
    many, one = Network(contract, {'obs': OBS_WIDTH}, (ROBOTS,)), Network(contract, {'obs': OBS_WIDTH})
    assert (many._lanes, many._rows) == (1, ROBOTS)
    rows = np.random.default_rng(3).normal(size=(ROBOTS, OBS_WIDTH))
    actions = many.run({'obs': rows})['actions']
    for row, action in zip(rows, actions, strict=True):
        assert action.tobytes() == one.run({'obs': row})['actions'].tobytes()


def constant_shape(path, mixing):
    """Write a network whose graph holds a batch of one: a reshape to (1, width), or a mean over the batch."""
    width = len(JOINTS)
    weights = [
        numpy_helper.from_array(np.ones((OBS_WIDTH, width), np.float32), 'W'),
        numpy_helper.from_array(np.array([1, width], np.int64), 'shape'),
    ]
    last = helper.make_node('ReduceMean', ['y'], ['m'], axes=[0], keepdims=1) if mixing else None
    nodes = [helper.make_node('MatMul', ['obs', 'W'], ['y'])]
    nodes += (
        [last, helper.make_node('Sub', ['y', 'm'], ['actions'])]
        if last
        else [helper.make_node('Reshape', ['y', 'shape'], ['actions'])]
    )
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, k]) for n, k in (('obs', OBS_WIDTH), ('actions', width))]
    graph = helper.make_graph(nodes, 'policy', tensors[:1], tensors[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)


@pytest.mark.parametrize('mixing', [False, True], ids=['constant shape', 'mean over the batch'])
def test_a_graph_that_means_one_robot_is_called_once_per_robot(tmp_path, mixing):
    path = tmp_path / 'policy.onnx'
    constant_shape(path, mixing)
    assert widened(path, open_session(path)) is None
    network = Network(make_contract(contract_data(), path), {'obs': OBS_WIDTH}, (ROBOTS,))
    assert (network._lanes, network._rows) == (ROBOTS, 1)


def test_rank_one_tensors_are_left_alone(tmp_path):
    made = make_onnx(tmp_path / 'policy.onnx', batch=None)
    assert widened(made.path, open_session(made.path)) is None
