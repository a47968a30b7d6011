# SPDX-License-Identifier: Apache-2.0
"""Golden vectors are computed again at load; a network that answers otherwise is refused."""

import numpy as np
import pytest
from makers import OBS_WIDTH, contract_data, make_contract, make_onnx, write_policy

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import ModelFileError, NetworkError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.golden import TOLERANCE, check_golden

WIDTHS = {'obs': OBS_WIDTH}


def vectors(linear, count=8):
    obs = np.random.default_rng(5).normal(size=(count, OBS_WIDTH)).astype(np.float32)
    return {'in__obs': obs, 'out__actions': linear(obs)}


@pytest.fixture
def linear(tmp_path):
    return make_onnx(tmp_path / 'policy.onnx')


@pytest.fixture
def contract(linear):
    return make_contract(contract_data(golden='golden.npz'), linear.path)


def check(tmp_path, contract, arrays):
    np.savez(tmp_path / 'golden.npz', **arrays)
    return check_golden(contract, WIDTHS)


def test_right_network_passes_with_a_small_difference(tmp_path, contract, linear):
    assert 0 <= check(tmp_path, contract, vectors(linear)) < 1e-5


def test_other_weights_are_refused_with_the_difference(tmp_path, contract, linear):
    np.savez(tmp_path / 'golden.npz', **vectors(linear))
    make_onnx(tmp_path / 'policy.onnx', seed=9)
    with pytest.raises(
        NetworkError, match=r'policy\.onnx differs from its golden vectors golden\.npz by \d.*allowed is 0\.001'
    ):
        check_golden(contract, WIDTHS)


@pytest.mark.parametrize('row', [0, 7])
def test_one_number_off_in_any_row_is_refused(tmp_path, contract, linear, row):
    arrays = vectors(linear)
    arrays['out__actions'][row, 2] += 2 * TOLERANCE
    with pytest.raises(NetworkError, match='not the network that was validated'):
        check(tmp_path, contract, arrays)


@pytest.mark.parametrize('name', ['in__obs', 'out__actions'])
@pytest.mark.parametrize('row', [0, 7])
def test_nan_in_the_vectors_or_from_the_network_is_refused(tmp_path, contract, linear, name, row):
    arrays = vectors(linear)
    arrays[name][row, 1] = np.nan
    with pytest.raises(NetworkError, match='golden'):
        check(tmp_path, contract, arrays)


def test_contract_without_golden_vectors_is_not_checked(tmp_path, linear):
    assert check_golden(make_contract(model_path=linear.path), WIDTHS) is None


def test_contract_that_came_over_the_wire_is_not_checked():
    assert check_golden(make_contract(contract_data(golden='golden.npz')), WIDTHS) is None


def refused(contract):
    with pytest.raises(ModelFileError, match=r'cannot read the golden vectors .*golden\.npz.*set golden: null'):
        check_golden(contract, WIDTHS)


def test_missing_file_is_refused(contract):
    refused(contract)


@pytest.mark.parametrize('content', [b'', b'text', b'PK\x03\x04broken'], ids=['empty', 'text', 'zip'])
def test_damaged_file_is_refused(tmp_path, contract, content):
    (tmp_path / 'golden.npz').write_bytes(content)
    refused(contract)


@pytest.mark.parametrize('share', [0.3, 0.7, 0.99])
def test_truncated_file_is_refused(tmp_path, contract, linear, share):
    path = tmp_path / 'golden.npz'
    np.savez_compressed(path, **vectors(linear))
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    refused(contract)


def test_pickled_objects_are_refused_and_not_run(tmp_path, contract, linear):
    arrays = vectors(linear)
    arrays['in__obs'] = np.array([{'a': 1}], dtype=object)
    np.savez(tmp_path / 'golden.npz', **arrays)
    refused(contract)


@pytest.mark.parametrize('name', ['in__obs', 'out__actions'])
def test_missing_array_is_refused_by_name(tmp_path, contract, linear, name):
    arrays = vectors(linear)
    del arrays[name]
    np.savez(tmp_path / 'golden.npz', **arrays)
    with pytest.raises(ModelFileError, match=name):
        check_golden(contract, WIDTHS)


@pytest.mark.parametrize(
    'change',
    [
        {'in__obs': np.zeros((8, 3), np.float32)},
        {'out__actions': np.zeros((8, 3), np.float32)},
        {'out__actions': np.zeros((8, 1), np.float32)},
        {'out__actions': np.zeros((7, 4), np.float32)},
        {'in__obs': np.zeros((0, OBS_WIDTH), np.float32), 'out__actions': np.zeros((0, 4), np.float32)},
    ],
    ids=['inputs too narrow', 'outputs too narrow', 'outputs of width one', 'fewer outputs', 'no rows'],
)
def test_vectors_of_another_shape_prove_nothing_and_are_refused(tmp_path, contract, linear, change):
    np.savez(tmp_path / 'golden.npz', **vectors(linear) | change)
    with pytest.raises(ModelFileError, match=r'golden\.npz'):
        check_golden(contract, WIDTHS)


def test_vectors_of_a_recurrent_network_are_one_sequence(tmp_path):
    linear = make_onnx(tmp_path / 'policy.onnx', state=3)
    data = contract_data(golden='golden.npz')
    data['inputs']['h_in'] = {'state': 'h_out', 'initial': 'zeros'}
    contract = make_contract(data, linear.path)
    arrays = vectors(linear)
    hidden = np.cumsum(arrays['in__obs'] @ linear.state_in + linear.drift, axis=0)
    arrays['out__actions'] = arrays['out__actions'] + hidden @ linear.state_out
    assert check(tmp_path, contract, arrays) < 1e-4
    for name in arrays:
        arrays[name] = arrays[name][::-1]
    with pytest.raises(NetworkError, match='golden'):
        check(tmp_path, contract, arrays)


def test_vectors_with_a_batch_axis_of_one_are_accepted(tmp_path, contract, linear):
    """The trainers' own recorders keep the axis: (k, 1, width)."""
    assert check(tmp_path, contract, {name: values[:, None] for name, values in vectors(linear).items()}) < 1e-5


def test_runner_refuses_a_policy_whose_golden_vectors_differ(tmp_path):
    path = write_policy(tmp_path, contract_data(golden='golden.npz'))
    np.savez(tmp_path / 'golden.npz', **vectors(make_onnx(tmp_path / 'other.onnx', seed=3)))
    with pytest.raises(NetworkError, match='golden'):
        PolicyRunner(load_contract(path))


def test_vectors_may_go_by_the_tensor_that_several_actions_read(tmp_path):
    linear = make_onnx(tmp_path / 'policy.onnx', outputs={'mu': 4})
    data = contract_data(golden='golden.npz')
    action = data['outputs'].pop('actions') | {'tensor': 'mu'}
    data['outputs'] = {
        'left': action | {'joints': ['a_knee_joint', 'a_hip_joint'], 'columns': [1, 0]},
        'right': action | {'joints': ['b_hip_joint', 'b_knee_joint'], 'columns': [2, 3]},
    }
    arrays = vectors(linear)
    arrays['out__mu'] = arrays.pop('out__actions')
    assert check(tmp_path, make_contract(data, linear.path), arrays) < 1e-5
    arrays['out__mu'][0, 3] += 1
    with pytest.raises(NetworkError, match='golden'):
        check(tmp_path, make_contract(data, linear.path), arrays)
    with pytest.raises(ModelFileError, match='cannot read the golden vectors'):
        check(tmp_path, make_contract(data, linear.path), arrays | {'out__mu': arrays['out__mu'][:, :3]})
