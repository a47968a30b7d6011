# SPDX-License-Identifier: Apache-2.0
"""An ONNX file is held against its contract before it runs; every way to be wrong has its message."""

import re
import subprocess
import sys

import numpy as np
import pytest
from makers import JOINTS, OBS_WIDTH, contract_data, make_contract, make_onnx, write_policy
from onnx import TensorProto

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import ModelFileError, NetworkError
from sim2real_ros.policy.network import Network, open_session, read_metadata

WIDTHS = {'obs': OBS_WIDTH}
SIDE_BY_SIDE = {'rtol': 1e-5, 'atol': 1e-6}  # float32 sums in another order


def for_robots(tmp_path, robots, data=None, widths=None, **options):
    """Return a network for a batch of robots, and what it should compute; `options` are those of `make_onnx`."""
    made = make_onnx(tmp_path / 'policy.onnx', **options)
    return Network(make_contract(data or contract_data(), made.path), widths or WIDTHS, robots), made


def network(tmp_path, data=None, widths=None, **options):
    return for_robots(tmp_path, (), data, widths, **options)


def refusal(tmp_path, data=None, widths=None, **options):
    with pytest.raises(NetworkError) as caught:
        network(tmp_path, data, widths, **options)
    message = str(caught.value)
    assert str(tmp_path / 'policy.onnx') in message
    return message


def recurrent_contract():
    data = contract_data()
    data['inputs']['h_in'] = {'state': 'h_out', 'initial': 'zeros'}
    return data


@pytest.mark.parametrize('batch', [None, 1, 'batch'], ids=['rank 1', 'fixed', 'free'])
@pytest.mark.parametrize('robots', [(), (1,), (4,), (2, 3)], ids=str)
def test_every_shape_of_file_serves_every_batch_of_robots(tmp_path, batch, robots):
    net, linear = for_robots(tmp_path, robots, batch=batch)
    obs = np.random.default_rng(0).normal(size=(*robots, OBS_WIDTH)).astype(np.float32)
    actions = net.run({'obs': obs})['actions']
    assert actions.shape == (*robots, 4)
    np.testing.assert_allclose(actions, linear(obs), **SIDE_BY_SIDE)


@pytest.mark.parametrize('file_batch', [None, 1, 'batch'], ids=['rank 1', 'fixed', 'free'])
def test_batch_of_one_equals_scalar_bit_for_bit(tmp_path, file_batch):
    scalar, _ = for_robots(tmp_path, (), batch=file_batch)
    single, _ = for_robots(tmp_path, (1,), batch=file_batch)
    for seed in range(20):
        obs = np.random.default_rng(seed).normal(size=OBS_WIDTH).astype(np.float32)
        assert np.array_equal(single.run({'obs': obs[None]})['actions'][0], scalar.run({'obs': obs})['actions'])


def test_double_precision_file_is_fed_in_its_own_type(tmp_path):
    net, linear = network(tmp_path, dtype=TensorProto.DOUBLE)
    obs = np.random.default_rng(0).normal(size=OBS_WIDTH).astype(np.float32)
    actions = net.run({'obs': obs})['actions']
    assert actions.dtype == np.float64
    np.testing.assert_allclose(actions, linear(obs.astype(float)), rtol=1e-12)


def test_several_inputs_and_outputs_go_by_name(tmp_path):
    stack, data = contract_data()['inputs']['obs']['stack'], contract_data()
    data['inputs'] = {
        'b': {'stack': stack, 'terms': [{'term': 'joint_pos'}]},
        'a': {'stack': stack, 'terms': [{'term': 'base_ang_vel'}]},
    }
    data['outputs'] = {
        'right': data['outputs']['actions'] | {'joints': JOINTS[1:]},
        'left': data['outputs']['actions'] | {'joints': JOINTS[:1]},
    }
    net, linear = network(tmp_path, data, {'b': 4, 'a': 3}, inputs={'a': 3, 'b': 4}, outputs={'left': 1, 'right': 3})
    a, b = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    outputs = net.run({'b': b, 'a': a})
    expected = linear(np.concatenate([a, b]))
    np.testing.assert_allclose(outputs['left'], expected[:1], **SIDE_BY_SIDE)
    np.testing.assert_allclose(outputs['right'], expected[1:], **SIDE_BY_SIDE)


def test_output_that_the_contract_does_not_name_is_ignored(tmp_path):
    net, _ = network(tmp_path, outputs={'actions': 4, 'value': 1})
    assert list(net.run({'obs': np.zeros(OBS_WIDTH, np.float32)})) == ['actions']


def test_warm_up_time_is_measured(tmp_path):
    net, _ = network(tmp_path)
    assert 0 < net.warm_up_ms < 1000


# --- recurrent state -----------------------------------------------------------------------------------------------


class NaiveRecurrent:
    """h' = h + x U + c, y = x W + b + h' V, in float64."""

    def __init__(self, linear):
        self.linear, self.h = linear, np.zeros(linear.state_in.shape[1])

    def __call__(self, x):
        self.h = self.h + x @ self.linear.state_in.astype(float) + self.linear.drift
        return self.linear(x) + self.h @ self.linear.state_out.astype(float)


def test_state_is_carried_from_tick_to_tick_and_starts_at_zero_after_warm_up(tmp_path):
    net, linear = network(tmp_path, recurrent_contract(), state=5)
    naive, rng = NaiveRecurrent(linear), np.random.default_rng(0)
    for _ in range(10):
        obs = rng.normal(size=OBS_WIDTH).astype(np.float32)
        np.testing.assert_allclose(net.run({'obs': obs})['actions'], naive(obs), rtol=1e-4, atol=1e-5)


def test_reset_puts_the_state_to_zero(tmp_path):
    net, _ = network(tmp_path, recurrent_contract(), state=5)
    obs = {'obs': np.ones(OBS_WIDTH, np.float32)}
    first, second = net.run(obs)['actions'], net.run(obs)['actions']
    assert not np.array_equal(first, second)
    net.reset()
    assert np.array_equal(net.run(obs)['actions'], first)


@pytest.mark.parametrize('shape', [(4,), (2, 2)], ids=str)
def test_every_robot_has_a_state_and_a_reset_of_its_own(tmp_path, shape):
    net, linear = for_robots(tmp_path, shape, recurrent_contract(), state=5)
    naive, rng = [NaiveRecurrent(linear) for _ in range(4)], np.random.default_rng(0)
    for tick in range(8):
        if tick in (3, 5):
            mask = np.array([True, False, tick == 5, False])
            net.reset(mask.reshape(shape))
            for k in np.flatnonzero(mask):
                naive[k].h[:] = 0
        obs = rng.normal(size=(4, OBS_WIDTH)).astype(np.float32)
        actions = net.run({'obs': obs.reshape(*shape, -1)})['actions']
        np.testing.assert_allclose(actions.reshape(4, 4), [n(o) for n, o in zip(naive, obs, strict=True)], rtol=1e-4, atol=1e-5)


def test_recurrent_batch_of_one_equals_scalar_bit_for_bit(tmp_path):
    scalar, _ = for_robots(tmp_path, (), recurrent_contract(), state=5)
    single, _ = for_robots(tmp_path, (1,), recurrent_contract(), state=5)
    for seed in range(10):
        if seed == 6:
            scalar.reset(np.array(True))
            single.reset(np.array([True]))
        obs = np.random.default_rng(seed).normal(size=OBS_WIDTH).astype(np.float32)
        assert np.array_equal(single.run({'obs': obs[None]})['actions'][0], scalar.run({'obs': obs})['actions'])


def test_result_of_a_tick_is_not_changed_by_the_next(tmp_path):
    net, _ = network(tmp_path)
    first = net.run({'obs': np.ones(OBS_WIDTH, np.float32)})['actions']
    kept = first.copy()
    net.run({'obs': np.zeros(OBS_WIDTH, np.float32)})
    assert np.array_equal(first, kept)


# --- a network that does not fit its contract ----------------------------------------------------------------------


@pytest.mark.parametrize(('there', 'word'), [(24, '3 missing'), (18, '3 too many')])
def test_wrong_input_width_is_refused_with_both_widths(tmp_path, there, word):
    message = refusal(tmp_path, inputs={'obs': there})
    assert f"input obs: the network has {there} numbers, the contract's terms make {OBS_WIDTH} ({word})" in message
    assert 'contract.yaml' in message


def test_wrong_output_width_is_refused_with_both_widths(tmp_path):
    message = refusal(tmp_path, outputs={'actions': 5})
    assert 'output actions: the network has 5 numbers, the contract has joints for 4 (1 missing)' in message


def test_wrong_names_are_refused_with_the_names_of_the_file(tmp_path):
    message = refusal(tmp_path, inputs={'observation': OBS_WIDTH}, outputs={'mu': 4})
    assert 'input obs: not in the file; its inputs are observation' in message
    assert 'output actions: not in the file; its outputs are mu' in message
    assert 'input observation: the file needs it, the contract does not describe it' in message


def test_recurrent_file_without_state_in_the_contract_is_refused(tmp_path):
    assert 'input h_in: the file needs it, the contract does not describe it' in refusal(tmp_path, state=5)


def test_state_in_the_contract_that_the_file_lacks_is_refused(tmp_path):
    message = refusal(tmp_path, recurrent_contract())
    assert 'input h_in: not in the file; its inputs are obs' in message
    assert 'output h_out: not in the file; its outputs are actions' in message


def test_batch_fixed_at_more_than_one_is_refused(tmp_path):
    assert 'input obs: the batch dimension is fixed at 8' in refusal(tmp_path, batch=8)


def test_input_of_another_type_is_refused(tmp_path):
    message = refusal(tmp_path, dtype=TensorProto.INT32)
    assert 'input obs: type tensor(int32) is not supported; supported are tensor(float)' in message


def test_all_faults_come_in_one_message(tmp_path):
    message = refusal(tmp_path, inputs={'obs': 20, 'extra': 2}, outputs={'actions': 3})
    assert len(re.findall('^  - ', message, re.MULTILINE)) == 3


def test_nan_weights_are_found_before_the_first_tick(tmp_path):
    message = refusal(tmp_path, nan=True)
    assert 'computes 1 non-finite numbers in output actions from an observation of zeros' in message
    assert 'weights are damaged' in message


def test_width_that_only_a_run_can_tell_is_refused(tmp_path):
    """A file may declare a free width; then the first run tells."""
    message = refusal(tmp_path, inputs={'obs': 24}, free_width=True)
    assert "fails on zeros of the contract's shape" in message


# --- a file that cannot be read ------------------------------------------------------------------------------------


def unreadable(path):
    with pytest.raises(ModelFileError) as caught:
        open_session(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_missing_file(tmp_path):
    assert 'No such file' in unreadable(tmp_path / 'policy.onnx')


def test_folder_in_place_of_a_file(tmp_path):
    assert 'Is a directory' in unreadable(tmp_path)


def test_empty_file(tmp_path):
    (tmp_path / 'policy.onnx').touch()
    assert 'is empty' in unreadable(tmp_path / 'policy.onnx')


def test_git_lfs_pointer(tmp_path):
    path = tmp_path / 'policy.onnx'
    path.write_text('version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n')
    assert 'Git-LFS pointer' in unreadable(path)


@pytest.mark.parametrize('share', [0.02, 0.5, 0.99])
def test_truncated_file(tmp_path, share):
    path = make_onnx(tmp_path / 'policy.onnx').path
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert 'truncated or not an ONNX model' in unreadable(path)


@pytest.mark.parametrize('content', [b'name: policy\n', b'PK\x03\x04 a zip', b'<html>404</html>'])
def test_file_of_another_kind(tmp_path, content):
    path = tmp_path / 'policy.onnx'
    path.write_bytes(content)
    assert 'truncated or not an ONNX model' in unreadable(path)


def test_weights_in_a_data_file_that_was_not_copied(tmp_path):
    path = make_onnx(tmp_path / 'policy.onnx', external=True).path
    assert open_session(path)
    (tmp_path / 'policy.onnx.data').unlink()
    message = unreadable(path)
    assert 'policy.onnx.data) that is not beside it: copy both files' in message
    assert len(message) < 700


def test_contract_that_came_over_the_wire_has_no_network():
    with pytest.raises(ModelFileError, match=r'contract\.yaml names no file on this machine'):
        Network(make_contract(), WIDTHS)


def test_network_loads_through_its_contract(tmp_path):
    contract = load_contract(write_policy(tmp_path))
    assert Network(contract, WIDTHS).run({'obs': np.zeros(OBS_WIDTH, np.float32)})['actions'].shape == (4,)


def test_metadata_is_read(tmp_path):
    path = make_onnx(tmp_path / 'policy.onnx', metadata={'run': 'x é', 'n': '2'}).path
    assert read_metadata(path) == {'run': 'x é', 'n': '2'}


def test_session_runs_on_one_thread_and_writes_nothing(tmp_path):
    """A refused file must not fill the log of a node with warnings of the runtime."""
    path = make_onnx(tmp_path / 'policy.onnx').path
    code = (
        'import sys, pathlib\n'
        'from sim2real_ros.policy.network import open_session\n'
        'options = open_session(pathlib.Path(sys.argv[1])).get_session_options()\n'
        'assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)\n'
        "assert options.get_session_config_entry('session.intra_op.allow_spinning') == '0'\n"
    )
    done = subprocess.run([sys.executable, '-c', code, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, '', '')
