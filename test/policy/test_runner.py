# SPDX-License-Identifier: Apache-2.0
"""One policy tick: observation -> network -> action -> targets, with everything remembered that the next tick needs."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from makers import OBS_WIDTH, contract_data, make_contract, make_onnx, random_state, row

from sim2real_ros.errors import DocumentError, NetworkError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.signals import RobotState

COMMAND = np.array([0.5, 0.1, -0.2])
PHASE = {
    'period_s': 0.8,
    'encoding': ['sin', 'cos'],
    'offsets': [0.0, 0.5],
    'timebase': 'policy_ticks',
    'stop_at_zero_command': True,
}


def rich_contract():
    """History, phase, clipped last action, recurrent state: everything that a runner must remember."""
    data = contract_data(phase=PHASE)
    data['inputs']['obs']['stack'] = {'lags': [2, 0], 'layout': 'term_major', 'fill': 'zeros'}
    data['inputs']['obs']['terms'] += [{'term': 'phase'}, {'term': 'last_action', 'value': 'clipped'}]
    data['inputs']['h_in'] = {'state': 'h_out', 'initial': 'zeros'}
    data['outputs']['actions']['clip'] = [-1.0, 1.0]
    return data


RICH_WIDTH = 2 * (OBS_WIDTH + 4 + 4)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('runner')


@pytest.fixture(scope='module')
def rich(folder):
    made = make_onnx(folder / 'rich.onnx', {'obs': RICH_WIDTH}, state=3)
    return make_contract(rich_contract(), made.path)


@pytest.fixture(scope='module')
def linear(folder):
    return make_onnx(folder / 'plain.onnx')


@pytest.fixture(scope='module')
def plain(linear):
    return make_contract(contract_data(), linear.path)


def test_step_is_observation_network_action_targets(plain, linear):
    runner, rng = PolicyRunner(plain), np.random.default_rng(0)
    last = np.zeros(4)
    for tick in range(5):
        state = random_state(rng, stamp=0.02 * tick)
        targets = runner.step(state, COMMAND)
        obs = runner.observation['obs']
        np.testing.assert_array_equal(obs[6:9], (COMMAND * [2, 2, 0.25]).astype(np.float32))
        np.testing.assert_array_equal(obs[17:], last.astype(np.float32))
        np.testing.assert_allclose(runner.action, linear(obs), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(targets.position, plain.default_position + 0.25 * runner.action)
        assert targets.stamp == state.stamp
        last = runner.action


def test_last_action_is_raw_or_clipped_as_the_contract_says(rich):
    runner, rng = PolicyRunner(rich), np.random.default_rng(0)
    for _ in range(3):
        runner.step(random_state(rng), COMMAND)
    previous = runner.action.copy()
    assert np.abs(previous).max() > 1
    runner.step(random_state(rng), COMMAND)
    slots = {slot.name: slot for slot in runner.builder.slots['obs']}
    obs = runner.observation['obs']  # term-major, lags [2, 0]: the newest of a term is its second half
    raw_slot, clipped_slot = (slot for slot in runner.builder.slots['obs'] if slot.name == 'last_action')
    raw = obs[2 * raw_slot.start + 4 : 2 * raw_slot.stop]
    clipped = obs[2 * clipped_slot.start + 4 : 2 * clipped_slot.stop]
    np.testing.assert_array_equal(raw, previous.astype(np.float32))
    np.testing.assert_array_equal(clipped, np.clip(previous, -1, 1).astype(np.float32))
    assert 'phase' in slots


def test_targets_come_from_the_clipped_action(rich):
    runner = PolicyRunner(rich)
    targets = runner.step(random_state(np.random.default_rng(0)), COMMAND)
    expected = rich.default_position + 0.25 * np.clip(runner.action, -1, 1)
    np.testing.assert_array_equal(targets.position, expected)


def play(runner, states, command=COMMAND):
    return [runner.step(state, command).position for state in states]


def test_reset_gives_the_same_run_again(rich):
    runner, rng = PolicyRunner(rich), np.random.default_rng(0)
    states = [random_state(rng) for _ in range(6)]
    first = play(runner, states)
    assert not np.array_equal(play(runner, states), first)
    runner.reset()
    assert np.array_equal(play(runner, states), first)


def test_new_runner_and_reset_runner_are_the_same(rich):
    used, rng = PolicyRunner(rich), np.random.default_rng(0)
    play(used, [random_state(rng) for _ in range(4)])
    used.reset()
    states = [random_state(rng) for _ in range(4)]
    assert np.array_equal(play(used, states), play(PolicyRunner(rich), states))


def test_mask_resets_the_masked_robots_only(rich):
    batch, rng = PolicyRunner(rich, (3,)), np.random.default_rng(0)
    scalars = [PolicyRunner(rich) for _ in range(3)]
    for tick in range(9):
        if tick in (3, 4, 6):
            mask = np.array([tick == 3, tick != 3, False])
            batch.reset(mask)
            for k in np.flatnonzero(mask):
                scalars[k].reset()
        state = random_state(rng, batch=(3,))
        commands = COMMAND * np.array([[1], [0], [tick % 2]])
        targets = batch.step(state, commands)
        for k, scalar in enumerate(scalars):
            assert np.array_equal(targets.position[k], scalar.step(row(state, k), commands[k]).position)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), which=st.sampled_from(['plain', 'rich']), resets=st.sets(st.integers(0, 7)))
def test_batch_of_one_equals_scalar_bit_for_bit(plain, rich, seed, which, resets):
    contract, rng = {'plain': plain, 'rich': rich}[which], np.random.default_rng(seed)
    scalar, single = PolicyRunner(contract), PolicyRunner(contract, (1,))
    for tick in range(8):
        if tick in resets:
            scalar.reset()
            single.reset(np.array([True]))
        state, command = random_state(rng, batch=(1,)), rng.normal(size=(1, 3))
        one, many = scalar.step(row(state, 0), command[0]), single.step(state, command)
        for field in ('position', 'velocity', 'effort'):
            assert np.array_equal(getattr(many, field)[0], getattr(one, field))
        assert np.array_equal(single.action[0], scalar.action)
        assert np.array_equal(single.observation['obs'][0], scalar.observation['obs'])


def test_targets_of_a_tick_are_not_changed_by_the_next(plain):
    runner, rng = PolicyRunner(plain), np.random.default_rng(0)
    targets = runner.step(random_state(rng), COMMAND)
    kept = targets.position.copy()
    runner.step(random_state(rng), COMMAND)
    assert np.array_equal(targets.position, kept)


# --- command -------------------------------------------------------------------------------------------------------


def test_command_is_clamped_to_the_range_of_the_contract(plain):
    runner = PolicyRunner(plain)
    assert runner.clamp_command(np.array([9.0, -9.0, 0.3])).tolist() == [1.5, -0.5, 0.3]
    runner.step(random_state(np.random.default_rng(0)), np.array([9.0, -9.0, 0.3]))
    np.testing.assert_array_equal(runner.observation['obs'][6:9], np.float32([3.0, -1.0, 0.075]))


def test_command_inside_the_dead_band_is_zero(linear):
    data = contract_data()
    data['commands']['velocity']['deadband'] = 0.2
    runner = PolicyRunner(make_contract(data, linear.path))
    commands = np.array([[0.1, 0.1, 0.1], [0.2, 0.0, 0.0], [0.3, 0.0, 0.0]])
    assert runner.clamp_command(commands).tolist() == [[0, 0, 0], [0.2, 0, 0], [0.3, 0, 0]]


def test_command_that_is_not_a_number_does_not_become_a_speed(plain):
    with pytest.raises(NetworkError, match='velocity_command'):
        PolicyRunner(plain).step(random_state(np.random.default_rng(0)), np.array([np.nan, 0.0, 0.0]))


# --- what must not be used -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('field', 'term', 'bad'),
    [
        ('joint_pos', 'joint_pos_rel', np.nan),
        ('joint_vel', 'joint_vel', np.nan),
        ('base_ang_vel', 'base_ang_vel', np.nan),  # it has a clip, which must not hide a NaN
        ('base_quat_xyzw', 'projected_gravity', np.nan),
        ('joint_pos', 'joint_pos_rel', np.inf),
        ('joint_vel', 'joint_vel', -np.inf),
    ],
)
def test_observation_that_is_not_finite_is_refused_by_term(plain, field, term, bad):
    state = random_state(np.random.default_rng(0))
    getattr(state, field)[1] = bad
    with np.errstate(invalid='ignore'), pytest.raises(NetworkError, match=f'not finite: {term}$'):
        PolicyRunner(plain).step(state, COMMAND)


def test_reset_after_a_refused_observation_heals_the_history(rich):
    runner, rng = PolicyRunner(rich), np.random.default_rng(0)
    states = [random_state(rng) for _ in range(4)]
    expected = play(PolicyRunner(rich), states)
    broken = random_state(rng)
    broken.joint_pos[0] = np.nan
    with pytest.raises(NetworkError, match='not finite'):
        runner.step(broken, COMMAND)
    runner.reset()
    assert np.array_equal(play(runner, states), expected)


def test_action_that_is_not_finite_is_refused_and_not_remembered(tmp_path):
    """Weights of 1e38 are finite at zeros and overflow at the first real observation."""
    import onnx
    from onnx import numpy_helper

    made = make_onnx(tmp_path / 'policy.onnx')
    model = onnx.load(made.path)
    for tensor in model.graph.initializer:
        if tensor.name == '_W':
            tensor.CopyFrom(numpy_helper.from_array(np.full_like(made.weight, 1e38), '_W'))
    onnx.save(model, made.path)
    runner = PolicyRunner(make_contract(contract_data(), made.path))
    state = random_state(np.random.default_rng(0))
    state.joint_pos[:] = 1e3
    with pytest.raises(NetworkError, match='network of testbot_velocity computed a non-finite action'):
        runner.step(state, COMMAND)
    assert runner.action.tolist() == [0.0] * 4


def test_term_that_does_not_exist_is_a_fault_of_the_contract(linear):
    data = contract_data()
    data['inputs']['obs']['terms'][0] = {'term': 'gyro'}
    with pytest.raises(DocumentError, match=r'inputs\.obs\.terms\.0\.term: observation term "gyro" does not exist'):
        PolicyRunner(make_contract(data, linear.path))


def test_fixed_base_robot_runs_without_imu_and_command(folder):
    data = contract_data(commands={})
    data['inputs']['obs']['terms'] = [{'term': 'joint_pos'}, {'term': 'joint_vel'}]
    made = make_onnx(folder / 'arm.onnx', {'obs': 8})
    runner = PolicyRunner(make_contract(data, made.path))
    assert runner.builder.needs == []
    state = RobotState(1.0, np.ones(4), np.zeros(4), np.array([0.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(runner.step(state, COMMAND).position.shape, (4,))
