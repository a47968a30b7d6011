# SPDX-License-Identifier: Apache-2.0
"""Counters, flags, states of any type and start, tensors by number and by column, motions that the network plays."""

import numpy as np
import onnx
import pytest
from makers import JOINTS, contract_data, make_contract
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.errors import NetworkError
from sim2real_ros.policy.network import Network

OBS = {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': [{'term': 'joint_pos'}]}
WIDTHS = {'obs': 4}
F, I64, I32, BOOL, F16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT16
OBSERVED = np.arange(4, dtype=np.float32)


def write(path, nodes, inputs, outputs, constants=()):
    """Write a graph; inputs and outputs are (name, type, shape)."""
    values = [[helper.make_tensor_value_info(*item) for item in items] for items in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants]
    graph = helper.make_graph(nodes, 'made', *values, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    return path


def echo(path, name, kind, shape, batch=1):
    """Write a network whose actions are the observation plus one extra input."""
    nodes = [
        helper.make_node('Cast', [name], ['number'], to=F),
        helper.make_node('Add', ['obs', 'number'], ['actions']),
    ]
    return write(path, nodes, [('obs', F, [batch, 4]), (name, kind, shape)], [('actions', F, [batch, 4])])


def contract_of(path, extra=None, **changes):
    data = contract_data(inputs={'obs': OBS} | (extra or {}), **changes)
    return make_contract(data, path)


def numbers(network, ticks, obs=OBSERVED):
    """Return what the extra input was in each tick."""
    return [(network.run({'obs': obs})['actions'] - obs)[..., 0].tolist() for _ in range(ticks)]


COUNTER_KINDS = [(F, [1, 1]), (F, [1]), (F, []), (I64, [1]), (I32, [1, 1]), (TensorProto.DOUBLE, ['one', 1]), (F16, [1])]


@pytest.mark.parametrize(('kind', 'shape'), COUNTER_KINDS, ids=str)
def test_counter_of_any_type_and_shape_counts_from_its_start_after_the_warm_up(tmp_path, kind, shape):
    path = echo(tmp_path / 'policy.onnx', 'step', kind, shape)
    network = Network(contract_of(path, {'step': {'counter': 'ticks', 'start': 3}}), WIDTHS)
    assert numbers(network, 3) == [3, 4, 5]
    network.reset()
    assert numbers(network, 2) == [3, 4]


@pytest.mark.parametrize(('end', 'expected'), [('hold', [1, 2, 3, 3, 3, 3]), ('loop', [1, 2, 3, 1, 2, 3])])
def test_counter_holds_or_loops_at_its_last_number(tmp_path, end, expected):
    path = echo(tmp_path / 'policy.onnx', 'step', F, [1, 1])
    counter = {'counter': 'ticks', 'start': 1, 'last': 3, 'end': end}
    assert numbers(Network(contract_of(path, {'step': counter}), WIDTHS), 6) == expected


@pytest.mark.parametrize('kind', [BOOL, F, I64])
@pytest.mark.parametrize('shape', [[1], [1, 1], []], ids=str)
def test_flag_tells_the_first_tick_alone(tmp_path, kind, shape):
    path = echo(tmp_path / 'policy.onnx', 'is_init', kind, shape)
    network = Network(contract_of(path, {'is_init': {'first': True}}), WIDTHS)
    assert numbers(network, 3) == [1, 0, 0]
    network.reset()
    assert numbers(network, 2) == [1, 0]


@pytest.mark.parametrize(('batch', 'shape'), [('batch', ['batch', 1]), (1, [1, 1])], ids=['whole', 'lanes'])
def test_every_robot_counts_for_itself(tmp_path, batch, shape):
    path = echo(tmp_path / 'policy.onnx', 'step', I64, shape, batch)
    network = Network(contract_of(path, {'step': {'counter': 'ticks'}}), WIDTHS, (3,))
    obs = np.tile(OBSERVED, (3, 1))
    assert numbers(network, 2, obs) == [[0, 0, 0], [1, 1, 1]]
    network.reset(np.array([False, True, False]))
    assert numbers(network, 2, obs) == [[2, 0, 2], [3, 1, 3]]


def accumulate(path, kind, shape):
    """Write a network with a state: carry' = carry + 1, actions = obs + carry."""
    one = np.ones(1, helper.tensor_dtype_to_np_dtype(kind))
    nodes = [
        helper.make_node('Add', ['carry', 'one'], ['carry_out']),
        helper.make_node('Cast', ['carry'], ['seen'], to=F),
        helper.make_node('ReduceSum', ['seen'], ['sum'], keepdims=0),
        helper.make_node('Add', ['obs', 'sum'], ['actions']),
    ]
    inputs, outputs = [('obs', F, [1, 4]), ('carry', kind, shape)], [('actions', F, [1, 4]), ('carry_out', kind, shape)]
    return write(path, nodes, inputs, outputs, [('one', one)])


@pytest.mark.parametrize('kind', [F, I64, F16, TensorProto.DOUBLE])
@pytest.mark.parametrize('shape', [[2], [1, 2], [1, 1, 2]], ids=str)
def test_state_of_any_type_begins_where_the_contract_says(tmp_path, kind, shape):
    path = accumulate(tmp_path / 'policy.onnx', kind, shape)
    network = Network(contract_of(path, {'carry': {'state': 'carry_out', 'initial': [5.0, 7.0]}}), WIDTHS)
    assert numbers(network, 3) == [12, 14, 16]
    network.reset()
    assert numbers(network, 2) == [12, 14]
    assert numbers(Network(contract_of(path, {'carry': {'state': 'carry_out', 'initial': 'zeros'}}), WIDTHS), 2) == [0, 2]


def refusal(contract, widths=WIDTHS):
    with pytest.raises(NetworkError) as caught:
        Network(contract, widths)
    return str(caught.value)


def test_initial_state_of_a_wrong_length_is_refused(tmp_path):
    path = accumulate(tmp_path / 'policy.onnx', F, [1, 2])
    message = refusal(contract_of(path, {'carry': {'state': 'carry_out', 'initial': [1.0, 2.0, 3.0]}}))
    assert 'input carry: the initial state has 3 numbers, the file has 2' in message


def test_counter_that_is_a_flag_or_no_single_number_is_refused(tmp_path):
    counter = {'step': {'counter': 'ticks'}}
    message = refusal(contract_of(echo(tmp_path / 'a.onnx', 'step', BOOL, [1]), counter))
    assert 'input step: type tensor(bool) is not supported; supported are tensor(float)' in message
    message = refusal(contract_of(echo(tmp_path / 'b.onnx', 'step', F, [1, 4]), counter))
    assert 'input step: takes one number, the file has the shape [1, 4]' in message


# --- outputs -------------------------------------------------------------------------------------------------------


def wide(path, names=('38', 'other', '38')):
    """Write a network with the outputs `names`: '38' is (obs, 2 obs) side by side, 'other' the observation."""
    nodes = [
        helper.make_node('Add', ['obs', 'obs'], ['twice']),
        helper.make_node('Concat', ['obs', 'twice'], ['38'], axis=-1),
        helper.make_node('Identity', ['obs'], ['other']),
    ]
    widths = {'38': 8, 'other': 4}
    return write(path, nodes, [('obs', F, [1, 4])], [(name, F, [1, widths[name]]) for name in names])


def action(**more):
    return {'type': 'joint_position', 'scale': 1.0, 'offset': 'zeros', 'clip': None} | more


def test_actions_share_a_tensor_of_a_meaningless_name_by_columns(tmp_path):
    outputs = {
        'hips': action(joints=[JOINTS[0], JOINTS[2]], tensor='38', columns=[7, 0]),
        'knees': action(joints=[JOINTS[1], JOINTS[3]], tensor='38', columns=[1, 2]),
    }
    network = Network(contract_of(wide(tmp_path / 'policy.onnx'), outputs=outputs), WIDTHS)
    given = network.run({'obs': OBSERVED})
    assert given['hips'].tolist() == [6, 0]
    assert given['knees'].tolist() == [1, 2]


@pytest.mark.parametrize('index', [0, 2])
def test_output_of_a_name_that_occurs_twice_goes_by_its_number(tmp_path, index):
    contract = contract_of(wide(tmp_path / 'policy.onnx'), outputs={'a': action(index=index, columns=[4, 5, 6, 7])})
    assert Network(contract, WIDTHS).run({'obs': OBSERVED})['a'].tolist() == [0, 2, 4, 6]
    by_number = contract_of(contract.model_path, outputs={'a': action(index=1)})
    assert Network(by_number, WIDTHS).run({'obs': OBSERVED})['a'].tolist() == OBSERVED.tolist()


@pytest.mark.parametrize(
    ('more', 'fault'),
    [
        ({'index': 5}, 'output #5: not in the file; its outputs are 38, other, 38'),
        ({'index': 1, 'tensor': '38'}, 'output number 1 is other, the contract calls it 38'),
        ({'tensor': '38', 'columns': [0, 1, 2, 8]}, 'output 38: has 8 numbers, outputs.a asks for column 8 (the first is 0)'),
        ({'tensor': '38'}, 'output 38: the network has 8 numbers, the contract has joints for 4'),
        ({'tensor': 'mu'}, 'output mu: not in the file'),
    ],
)
def test_output_that_is_not_there_is_refused(tmp_path, more, fault):
    assert fault in refusal(contract_of(wide(tmp_path / 'policy.onnx'), outputs={'a': action(**more)}))


# --- motion --------------------------------------------------------------------------------------------------------


def player(path, bodies=3):
    """Write a network that plays a motion: joints = 10 step + joint, body k at 100 k + step."""
    nodes = [
        helper.make_node('Mul', ['step', 'ten'], ['s10']),
        helper.make_node('Add', ['s10', 'joint'], ['joint_pos']),
        helper.make_node('Add', ['bodies', 'step'], ['body_pos_w']),
        helper.make_node('Add', ['obs', 's10'], ['actions']),
    ]
    constants = [
        ('ten', np.float32([10])),
        ('joint', np.arange(4, dtype=np.float32)[None]),
        ('bodies', np.tile(100 * np.arange(bodies, dtype=np.float32)[None, :, None], (1, 1, 3))),
    ]
    outputs = [('actions', F, [1, 4]), ('joint_pos', F, [1, 4]), ('body_pos_w', F, [1, bodies, 3])]
    return write(path, nodes, [('obs', F, [1, 4]), ('step', F, [1, 1])], outputs, constants)


def playing(path, **quantities):
    motion = {'source': 'network', 'quantities': {'joint_pos': 'joint_pos'} | quantities}
    return contract_of(path, {'step': {'counter': 'ticks', 'start': 2}}, motion=motion)


def test_network_tells_the_motion_of_the_tick_and_is_asked_for_the_next(tmp_path):
    network = Network(playing(player(tmp_path / 'policy.onnx'), anchor_pos='body_pos_w[2]'), WIDTHS)
    for _ in range(2):
        asked = network.query()
        assert asked['joint_pos'].tolist() == [20, 21, 22, 23]
        assert asked['anchor_pos'].tolist() == [202] * 3
    network.run({'obs': OBSERVED})
    assert network.played['joint_pos'].tolist() == [20, 21, 22, 23]
    network.run({'obs': OBSERVED})
    assert network.played['joint_pos'].tolist() == [30, 31, 32, 33]
    assert network.query()['joint_pos'].tolist() == [40, 41, 42, 43]


def test_query_leaves_the_recurrent_state_alone(tmp_path):
    path = accumulate(tmp_path / 'policy.onnx', F, [1, 2])
    network = Network(contract_of(path, {'carry': {'state': 'carry_out', 'initial': 'zeros'}}), WIDTHS)
    network.query()
    assert numbers(network, 2) == [0, 2]


@pytest.mark.parametrize(
    ('anchor', 'fault'),
    [
        ('body_pos_w', 'has 3 bodies; say which is the anchor, motion.quantities.anchor_pos: body_pos_w[0]'),
        ('body_pos_w[3]', 'has 3 bodies, motion.quantities.anchor_pos asks for number 3 (the first is 0)'),
        ('joint_pos', 'output joint_pos: is the anchor_pos of the motion, 3 numbers, the network has 4'),
        ('torso', 'output torso: not in the file'),
    ],
)
def test_quantity_that_the_network_does_not_play_is_refused(tmp_path, anchor, fault):
    assert fault in refusal(playing(player(tmp_path / 'policy.onnx'), anchor_pos=anchor))


def test_special_inputs_of_a_batch_of_one_equal_scalar_bit_for_bit(tmp_path):
    contract = playing(player(tmp_path / 'policy.onnx'), anchor_pos='body_pos_w[1]')
    scalar, single = Network(contract, WIDTHS), Network(contract, WIDTHS, (1,))
    for tick in range(6):
        if tick == 3:
            scalar.reset(np.array(True))
            single.reset(np.array([True]))
        obs = np.random.default_rng(tick).normal(size=4).astype(np.float32)
        assert np.array_equal(scalar.run({'obs': obs})['actions'], single.run({'obs': obs[None]})['actions'][0])
        for name, values in scalar.played.items():
            assert np.array_equal(values, single.played[name][0])
