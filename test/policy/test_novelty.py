# SPDX-License-Identifier: Apache-2.0
"""The novelty monitor: silent where all is as in simulation, and one clear sentence where it is not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import JOINTS, OBS_WIDTH, contract_data, make_contract, make_onnx, random_state

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import ModelFileError
from sim2real_ros.observation import ObservationBuilder
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.components import Components
from sim2real_ros.policy.novelty import NoveltyMonitor
from sim2real_ros.policy.statistics import (
    NEEDED,
    WINDOW,
    conformal_threshold,
    fit,
    load_statistics,
    persistent,
    whitening,
)

WIDTH = OBS_WIDTH + len(JOINTS)
MADE = {'fit': 40, 'calibration': 400, 'date': '2026-12-01'}
MIXING = np.random.default_rng(7).normal(size=(WIDTH, WIDTH)) / 5
STILL = 8  # a component that never moves: the commanded yaw rate


def familiar(ticks, episodes, seed):
    """Return correlated vectors (ticks, episodes, d); one component is constant."""
    vectors = np.random.default_rng(seed).normal(size=(ticks, episodes, WIDTH)) @ MIXING
    vectors[..., STILL] = 0.5
    return vectors.astype(np.float32)


@pytest.fixture(scope='module')
def contract():
    return make_contract(contract_data(novelty='statistics.npz'))


@pytest.fixture(scope='module')
def statistics(contract):
    return fit(Components(contract).parts, familiar(100, 200, 1).reshape(-1, WIDTH), familiar(50, 400, 2), MADE)


@pytest.fixture
def monitor(statistics, contract):
    return NoveltyMonitor(statistics, contract)


def feed(monitor, vectors):
    """Return the finding of every tick of (ticks, d)."""
    return [monitor.update({'obs': v[:OBS_WIDTH]}, v[OBS_WIDTH:]) for v in vectors]


def first(findings):
    return next(i for i, finding in enumerate(findings) if finding)


# --- what it finds


def test_familiar_episodes_are_silent(monitor):
    for episode in range(20):
        monitor.reset()
        assert not any(feed(monitor, familiar(50, 20, 3)[:, episode]))
        assert 0 < monitor.level < 1.5


def test_unit_error_is_found_within_ten_ticks(monitor):
    vectors = familiar(20, 1, 4)[:, 0]
    vectors[:, :3] *= 57.3  # degrees for radians
    findings = feed(monitor, vectors)
    assert first(findings) < WINDOW
    assert findings[-1].kind == 'range'
    assert findings[-1].component.startswith('base_ang_vel')


@pytest.mark.parametrize(
    ('index', 'value', 'start', 'unit'),
    [
        (2, -123.0 * 0.25, 'base_ang_vel[2] is -123 rad/s', 0.25),
        (13 + 2, 400.0 * 0.05, 'joint_vel of b_hip_joint is 400 rad/s', 0.05),
        (8, 1.0, 'velocity_command[2] is 4', 0.25),
        (-1, -9.0, 'actions of b_knee_joint is -9', 1.0),
    ],
)
def test_sentence_names_the_number_its_value_and_the_range_in_the_terms_own_unit(monitor, index, value, start, unit):
    vectors = familiar(20, 1, 4)[:, 0]
    vectors[:, index] = value
    seen = familiar(100, 200, 1)[..., index] / unit
    message = feed(monitor, vectors)[-1].message
    assert message == f'{start}, in simulation it lay between {seen.min():.4g} and {seen.max():.4g}'


def test_numbers_in_range_that_do_not_go_together_are_found(contract):
    """Two components that are always equal in simulation, and opposite now."""

    def twins(ticks, episodes, seed):
        vectors = familiar(ticks, episodes, seed)
        vectors[..., 1] = vectors[..., 0]
        return vectors

    statistics = fit(Components(contract).parts, twins(100, 200, 1).reshape(-1, WIDTH), twins(50, 400, 2), MADE)
    vectors = twins(20, 1, 5)[:, 0]
    vectors[:, :2] = 0.9 * statistics.maximum[0], 0.9 * statistics.minimum[0]
    finding = feed(NoveltyMonitor(statistics, contract), vectors)[-1]
    assert finding.kind == 'combination'
    assert finding.component in ('base_ang_vel[0]', 'base_ang_vel[1]')
    assert 'in simulation it would be about' in finding.message


def test_component_that_never_moved_divides_nothing_by_zero_and_is_missed_when_it_moves(monitor, statistics):
    assert np.isfinite(statistics.whitening).all()
    vectors = familiar(20, 1, 4)[:, 0]
    assert not any(feed(monitor, vectors))
    vectors[:, STILL] = 0.7
    assert feed(monitor, vectors)[-1].component == f'velocity_command[{STILL - 6}]'


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings('error')
def test_numbers_that_are_not_finite_are_found_and_leave_nothing_behind(monitor, value):
    vectors = familiar(40, 1, 4)[:, 0]
    vectors[:NEEDED, 3] = value
    findings = feed(monitor, vectors)
    assert first(findings) == NEEDED - 1
    assert findings[NEEDED - 1].kind == 'not_finite'
    assert findings[NEEDED - 1].message == 'projected_gravity[0] is not finite'
    assert not any(findings[WINDOW:])


# --- when


@pytest.mark.parametrize('spoiled', [NEEDED - 1, NEEDED])
def test_an_alarm_takes_five_of_the_last_ten_ticks(monitor, spoiled):
    vectors = familiar(40, 1, 4)[:, 0]
    ticks = 10 + 2 * np.arange(spoiled)  # every second one
    vectors[ticks, 0] = 50.0
    findings = feed(monitor, vectors)
    assert any(findings) == (spoiled == NEEDED)
    if spoiled == NEEDED:
        alarm = [i for i, finding in enumerate(findings) if finding]
        assert alarm == [18, 19]  # until the first of the five is ten ticks old


def test_sentence_is_about_a_tick_that_was_out_of_range_even_when_the_newest_is_not(monitor):
    vectors = familiar(40, 1, 4)[:, 0]
    vectors[10:15, 0] = 50.0
    findings = feed(monitor, vectors)
    assert findings[16].component == 'base_ang_vel[0]'
    assert findings[16].message.startswith('base_ang_vel[0] is 200 rad/s')


def test_reset_forgets(monitor):
    vectors = familiar(20, 1, 4)[:, 0]
    vectors[:, 0] = 50.0
    feed(monitor, vectors[: NEEDED - 1])
    monitor.reset()
    assert monitor.level == 0
    assert not any(feed(monitor, vectors[: NEEDED - 1]))
    assert feed(monitor, vectors[:1])[0]


# --- thresholds


def test_conformal_threshold_by_hand():
    """n = 9, alpha = 0.2: the ceil(10 * 0.8) = 8th smallest."""
    assert conformal_threshold(np.array([5, 1, 9, 3, 7, 2, 8, 4, 6]), 0.2) == 8
    assert conformal_threshold(np.arange(1, 200), 0.005) == 199  # ceil(200 * 0.995) = 199
    assert conformal_threshold(np.arange(1, 401), 0.005) == 399  # ceil(398.995)


@pytest.mark.parametrize(('n', 'alpha'), [(198, 0.005), (398, 0.0025), (8, 0.1)])
def test_too_few_episodes_for_the_rate_of_false_alarms_are_refused(n, alpha):
    with pytest.raises(ValueError, match=f'{n} calibration episodes are too few for {alpha:g}: {n + 1} are needed'):
        conformal_threshold(np.arange(n), alpha)
    conformal_threshold(np.arange(n + 1), alpha)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(0, 20))
def test_persistent_score_exceeds_a_threshold_exactly_when_five_of_ten_ticks_do(scores, threshold):
    persisting = persistent(np.array(scores, dtype=float))
    for tick in range(len(scores)):
        beyond = sum(score > threshold for score in scores[max(0, tick - WINDOW + 1) : tick + 1])
        assert (persisting[tick] > threshold) == (beyond >= NEEDED)


def test_whitening_gives_unit_covariance_but_for_the_shrinkage():
    samples = familiar(100, 200, 1).reshape(-1, WIDTH).astype(float)
    samples = np.delete(samples, STILL, axis=1)
    standard = (samples - samples.mean(axis=0)) / samples.std(axis=0)
    root = whitening(standard)
    shrunk = 0.95 * np.corrcoef(standard.T) + 0.05 * np.eye(WIDTH - 1)
    np.testing.assert_allclose(root @ shrunk @ root.T, np.eye(WIDTH - 1), atol=1e-8)


def test_scores_do_not_depend_on_the_units(contract):
    parts, units = Components(contract).parts, np.logspace(-1, 2, WIDTH)
    plain = fit(parts, familiar(100, 200, 1).reshape(-1, WIDTH), familiar(50, 400, 2), MADE)
    other = fit(parts, units * familiar(100, 200, 1).reshape(-1, WIDTH), units * familiar(50, 400, 2), MADE)
    vectors = familiar(20, 1, 3)
    vectors[..., STILL] = 0.5
    for here, there in zip(plain.scores(vectors), other.scores(units * vectors), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-3)


# --- the file


def written(tmp_path, statistics, **changes):
    """Return a contract in a folder with the statistics."""
    statistics.save(tmp_path / 'statistics.npz')
    linear = make_onnx(tmp_path / 'policy.onnx')
    return make_contract(contract_data(novelty='statistics.npz', **changes), linear.path)


def test_file_gives_back_what_was_written(tmp_path, statistics):
    back = load_statistics(written(tmp_path, statistics))
    assert back.parts == statistics.parts
    assert back.made == MADE
    vectors = familiar(20, 5, 6)
    for there, here in zip(back.scores(vectors), statistics.scores(vectors), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4)
    np.testing.assert_allclose(back.thresholds, statistics.thresholds, rtol=1e-6)


def test_no_file_is_named_or_the_contract_came_over_the_wire(tmp_path, statistics, contract):
    assert NoveltyMonitor.of(contract) is None
    linear = make_onnx(tmp_path / 'policy.onnx')
    assert NoveltyMonitor.of(make_contract(model_path=linear.path)) is None
    assert NoveltyMonitor.of(written(tmp_path, statistics)) is not None


def test_statistics_of_other_terms_are_refused_with_the_difference(tmp_path, statistics):
    inputs = contract_data()['inputs']
    terms = inputs['obs']['terms']
    terms[3], terms[4] = terms[4], terms[3]
    contract = written(tmp_path, statistics, inputs=inputs)
    with pytest.raises(ModelFileError, match='belong to another policy') as caught:
        load_statistics(contract)
    assert 'part 3 is obs.joint_pos_rel (4) in the file and obs.joint_vel (4) in the contract' in str(caught.value)
    assert 'sim2real novelty' in str(caught.value)


def test_statistics_with_a_term_too_few_are_refused(tmp_path, statistics):
    inputs = contract_data()['inputs']
    inputs['obs']['terms'] = inputs['obs']['terms'][:-1]
    with pytest.raises(ModelFileError, match=r'part 5 is obs\.last_action \(4\) in the file and actions \(4\) in the contract'):
        load_statistics(written(tmp_path, statistics, inputs=inputs))


@pytest.mark.parametrize('content', [b'', b'text', b'PK\x03\x04broken', None], ids=['empty', 'text', 'zip', 'missing'])
def test_damaged_or_missing_file_is_refused(tmp_path, statistics, content):
    contract = written(tmp_path, statistics)
    path = tmp_path / 'statistics.npz'
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r'cannot read the statistics .*statistics\.npz.*set novelty: null'):
        load_statistics(contract)


@pytest.mark.parametrize(
    'change',
    [{'mean': np.full(WIDTH, np.nan)}, {'minimum': np.zeros(3)}, {'spread': np.zeros(WIDTH)}, {'version': 99}, {'made': '{}'}],
)
def test_senseless_file_is_refused(tmp_path, statistics, change):
    contract = written(tmp_path, statistics)
    path = tmp_path / 'statistics.npz'
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **(arrays | change))
    with pytest.raises(ModelFileError, match=f'cannot read the statistics .*{next(iter(change))}'):
        load_statistics(contract)


# --- which numbers


@pytest.mark.parametrize('layout', ['term_major', 'frame_major'])
@pytest.mark.parametrize('lags', [[0], [0, 1, 2], [2, 1, 0], [3, 0]], ids=str)
def test_newest_frame_is_taken_out_of_any_history(layout, lags):
    plain, stacked = contract_data(), contract_data()
    stacked['inputs']['obs']['stack'] = {'lags': lags, 'layout': layout, 'fill': 'zeros'}
    plain, stacked = make_contract(plain), make_contract(stacked)
    builders = [ObservationBuilder(plain), ObservationBuilder(stacked)]
    components, rng, action = Components(stacked), np.random.default_rng(0), np.arange(4.0)
    from sim2real_ros.observation import Moment

    for _ in range(4):
        moment = Moment(random_state(rng), plain.default_position, np.ones(3), action, action, np.zeros(0))
        now, past = (builder.build(moment) for builder in builders)
        assert np.array_equal(components.join(past, action), np.concatenate([now['obs'], action]))
    assert components.parts == Components(plain).parts


def test_batch_and_single_robot_have_the_same_scores(statistics):
    vectors = familiar(3, 4, 8)
    reach, distance = statistics.scores(vectors)
    assert reach.shape == distance.shape == (3, 4)
    one = statistics.scores(vectors[1, 2])
    np.testing.assert_allclose([reach[1, 2], distance[1, 2]], one, rtol=1e-6)


# --- the shipped policy


def test_shipped_policy_is_watched_and_finds_degrees_at_rest():
    contract = load_contract('go2_velocity')
    runner, monitor = PolicyRunner(contract), NoveltyMonitor.of(contract)
    state = random_state(np.random.default_rng(0), 12)
    state = replace(
        state, joint_pos=contract.default_position, joint_vel=np.zeros(12), base_quat_xyzw=np.array([0.0, 0, 0, 1]),
        base_ang_vel=np.zeros(3),
    )  # fmt: skip
    for _ in range(50):
        runner.step(state, np.zeros(3))
        assert monitor.update(runner.observation, runner.action) is None
    for _ in range(WINDOW):
        runner.step(replace(state, joint_pos=np.rad2deg(state.joint_pos)), np.zeros(3))
        finding = monitor.update(runner.observation, runner.action)
    assert finding is not None
    assert finding.kind == 'range'
