# SPDX-License-Identifier: Apache-2.0
"""A contract with nearly everything, run by `PolicyRunner`: each tick against numpy, batches against scalars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from makers import make_contract, make_onnx, random_state, row
from whole import INITIAL, ROWS, WIDTH, data_of_everything, write_motion

from sim2real_ros.errors import ModelFileError, SignalError
from sim2real_ros.policy import PolicyRunner

COMMAND = np.array([0.5, 0.1, -0.2])


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('whole')
    write_motion(folder)
    return folder


@pytest.fixture(scope='module')
def linear(folder):
    return make_onnx(folder / 'policy.onnx', {'obs': WIDTH}, {'mu': 4})


@pytest.fixture(scope='module')
def whole(linear):
    return make_contract(data_of_everything(), linear.path)


def test_every_tick_is_what_numpy_says(whole, linear):
    """All but the anchor, which `test_motion.py` holds against rotation matrices."""
    runner, rng = PolicyRunner(whole), np.random.default_rng(0)
    motion, states = write_motion(linear.path.parent), [random_state(rng) for _ in range(8)]
    default, filtered, target = whole.default_position, np.zeros(4), None
    goals = [None, None, *[np.arange(7.0) + k for k in range(6)]]
    for tick, state in enumerate(states):
        targets = runner.step(state, COMMAND, goals[tick])
        built = runner.observation['obs']
        goal = INITIAL if goals[tick] is None else goals[tick][[0, 1, 2, 6, 3, 4, 5]]
        now = [
            *states[max(tick - 2, 0)].base_ang_vel,
            *state.base_ang_vel,
            *2 * (state.joint_pos[[3, 1]] - default[[3, 1]] + [0.5, -0.5]),
            *filtered,
            *goal,
            tick * 0.02,
            np.sin(2 * np.pi * tick * 0.02 / 0.8),
            *state.foot_contacts,
        ]
        np.testing.assert_allclose(built[: len(now)], now, rtol=1e-6, atol=1e-6)
        for k, lag in enumerate((1, 3)):
            frame = built[len(now) + 21 * k :][:12]
            then = tick - lag
            command = [*motion['joint_pos'][min(then, ROWS - 1)], *motion['joint_vel'][min(then, ROWS - 1)]]
            if then < 0:
                assert not frame.any()
            elif then < ROWS:
                np.testing.assert_allclose(frame, [*0.1 * states[then].joint_vel, *command], rtol=1e-6, atol=1e-6)
        mu = linear(built.astype(float))
        np.testing.assert_allclose(runner.action, mu[[3, 1, 0, 2]], rtol=1e-4, atol=1e-4)
        filtered = filtered + 0.4 * (np.clip(runner.action, -1, 1) - filtered)
        target = (state.joint_pos[[0, 2]] if target is None else target) + 0.2 * filtered[2:]
        target[0] = np.clip(target[0], -1, 1)
        np.testing.assert_allclose(targets.position, [target[0], default[1], target[1], default[3]], rtol=1e-9)
        np.testing.assert_allclose(targets.velocity, [0, 0.2 * filtered[1], 0, 0.2 * filtered[0]], rtol=1e-9)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), masks=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=8))
def test_batch_equals_scalar_bit_for_bit(whole, seed, masks):
    """A batch of one, and every robot of a larger batch, with resets of its own."""
    rng, batch, single = np.random.default_rng(seed), PolicyRunner(whole, (3,)), PolicyRunner(whole, (1,))
    scalars = [PolicyRunner(whole) for _ in range(3)]
    for mask in masks:
        batch.reset(np.array(mask))
        single.reset(np.array(mask[:1]))
        state, command, goal = random_state(rng, batch=(3,)), rng.normal(size=(3, 3)), rng.normal(size=(3, 7))
        many, one = batch.step(state, command, goal), single.step(row(state, slice(0, 1)), command[:1], goal[:1])
        for k, scalar in enumerate(scalars):
            if mask[k]:
                scalar.reset()
            own = scalar.step(row(state, k), command[k], goal[k])
            assert np.array_equal(batch.observation['obs'][k], scalar.observation['obs'])
            for field in ('position', 'velocity', 'effort'):
                assert np.array_equal(getattr(many, field)[k], getattr(own, field))
                assert k or np.array_equal(getattr(one, field)[0], getattr(own, field))


def test_reset_gives_the_same_run_again(whole):
    runner, rng = PolicyRunner(whole), np.random.default_rng(0)
    states = [random_state(rng) for _ in range(7)]
    first = [runner.step(state, COMMAND).position for state in states]
    runner.reset()
    assert np.array_equal([runner.step(state, COMMAND).position for state in states], first)


def test_targets_that_a_caller_changes_do_not_reach_the_next_tick(whole):
    runners, state = [PolicyRunner(whole), PolicyRunner(whole)], random_state(np.random.default_rng(0))
    runners[0].step(state, COMMAND).position[:] = 99.0
    runners[1].step(state, COMMAND)
    assert np.array_equal(*(runner.step(state, COMMAND).position for runner in runners))


def test_state_that_lacks_a_signal_is_told_by_name(whole):
    state = random_state(np.random.default_rng(0))
    with pytest.raises(SignalError, match=r'contacts of the feet \(foot_contacts\)'):
        PolicyRunner(whole).step(replace(state, foot_contacts=None), COMMAND)


def test_motion_file_that_is_missing_is_told_when_the_policy_is_loaded(linear, tmp_path):
    (tmp_path / 'policy.onnx').write_bytes(linear.path.read_bytes())
    with pytest.raises(ModelFileError, match=r'cannot read the motion .*motion\.npz'):
        PolicyRunner(make_contract(data_of_everything(), tmp_path / 'policy.onnx'))
