# SPDX-License-Identifier: Apache-2.0
"""Promises of the comparison: aligned by what the policy did, not by clocks; what must not be compared is refused or said."""

import re
from dataclasses import replace

import numpy as np
import pytest
from recordings import ACTIVE_S, CONTRACT, REST_S, ROBOT, Recording, Swing

from sim2real_ros.comparison.comparison import compare_runs
from sim2real_ros.comparison.page import sentence
from sim2real_ros.errors import RecordingError
from sim2real_ros.recording.reading import load_run


@pytest.fixture(scope='module')
def read(tmp_path_factory):
    """Return a function that writes a recording and reads it back."""
    folder = tmp_path_factory.mktemp('runs')
    return lambda recording: load_run(recording.write(folder / f'{len(list(folder.iterdir()))}'))


@pytest.fixture(scope='module')
def plain(read):
    return read(Recording())


def told(comparison, level):
    return ' / '.join(finding.text for finding in comparison.findings if finding.level == level)


def test_a_run_compared_with_itself_differs_by_nothing(plain):
    comparison = compare_runs(plain, plain)
    assert comparison.identical
    assert set(comparison.quantities) == {'position', 'velocity', 'torque', 'base'}
    for quantity in comparison.quantities.values():
        assert not quantity.measures.rmse.any()
        assert quantity.measures.lag_of_all_s == 0
    assert comparison.alignment.time[-1] == pytest.approx(REST_S - ACTIVE_S, abs=0.03)
    assert sentence(comparison) == ('good', 'The runs are identical: every difference is zero.')
    assert {finding.level for finding in comparison.findings} == {'good'}


def test_a_run_without_odometry_compared_with_itself_differs_by_nothing(read):
    silent = read(Recording(without=('odom',)))
    comparison = compare_runs(silent, silent)
    assert np.isnan(comparison.quantities['base'].measures.largest[:2]).all()
    assert comparison.identical
    assert sentence(comparison)[0] == 'good'


def test_what_a_run_no_longer_tells_is_left_out_and_told(plain):
    """The torques end a second after the beginning: holding the last one to the end would make up a difference."""
    kept = plain.torques.time <= compare_runs(plain, plain).alignment.begin[0] + 1.0
    torques = replace(plain.torques, **{n: getattr(plain.torques, n)[kept] for n in ('time', 'torque', 'age')})
    comparison = compare_runs(plain, replace(plain, torques=torques))
    measures = comparison.quantities['torque'].measures
    assert measures.rmse.max() < 0.02, 'of two samples that were held'
    assert measures.correlation_of_all > 0.999
    assert np.isnan(comparison.quantities['torque'].b[-1]).all()
    assert comparison.quantities['position'].measures.rmse.shape == (12,)
    (text,) = [f.text for f in comparison.findings if f.level == 'warn']
    assert re.fullmatch(r'torque is compared for 1\.0\d of 2\.[45]\d s: B does not tell the rest', text)


@pytest.mark.parametrize('delay', [0.010, -0.010, 0.0033])
def test_a_body_that_answers_later_is_found_to_a_tenth_of_a_millisecond(read, plain, delay):
    comparison = compare_runs(plain, read(Recording(body=Swing(delay=delay))))
    for name in ('position', 'velocity', 'torque'):
        measures = comparison.quantities[name].measures
        np.testing.assert_allclose(measures.lag_s, delay, atol=1e-3)
        assert measures.lag_of_all_s == pytest.approx(delay, abs=1e-4)
        assert measures.correlation_of_all > 0.999
    if abs(delay) > 0.005:
        later, earlier = ('B', 'A') if delay > 0 else ('A', 'B')
        assert f'{later} is 10.0 ms later than {earlier}' in told(comparison, 'warn')


def test_the_clocks_and_rates_of_the_runs_do_not_matter(read, plain):
    """One recorded at 200 Hz in simulated time, one at 250 Hz in the system's."""
    other = read(Recording(clock=1_700_000_123.4, rate_hz=250.0))
    comparison = compare_runs(plain, other)
    assert comparison.alignment.begin == pytest.approx((11.0, 1_700_000_124.4))
    position = comparison.quantities['position'].measures
    assert position.lag_of_all_s == pytest.approx(0, abs=1e-4)
    assert position.rmse.max() < 2e-3  # of a straight line between samples


def test_a_clock_that_waits_for_a_command_is_aligned_by_it_and_one_that_runs_by_its_first_tick(read):
    a, b = (read(Recording(command=(0.0, 0.0, 0.0), later=(begin, (0.5, 0.0, 0.0)))) for begin in (1.5, 1.74))
    assert a.contract.file.phase.stop_at_zero_command
    waiting = compare_runs(a, b).alignment
    assert (waiting.by, waiting.begin) == ('the first tick with a command', pytest.approx((11.5, 11.74)))
    assert waiting.agreeing == 1.0
    phase = CONTRACT.file.phase.model_copy(update={'stop_at_zero_command': False})
    runs = replace(CONTRACT, file=CONTRACT.file.model_copy(update={'phase': phase}))
    running = compare_runs(replace(a, contract=runs), replace(b, contract=runs)).alignment
    assert (running.by, running.begin) == ("the policy's first tick", pytest.approx((11.0, 11.0)))


def test_without_policy_ticks_the_mode_aligns_and_without_modes_the_first_command(read, plain):
    silent = read(Recording(clock=3.0, without=('policy/trace',)))
    comparison = compare_runs(plain, silent)
    assert comparison.alignment.by == 'the mode active'
    assert comparison.alignment.begin == pytest.approx((11.0, 4.0))
    foreign = read(Recording(labelled=False, without=('policy/trace', 'safety/mode')))
    assert compare_runs(plain, foreign).alignment.by == 'the first command'


def test_time_in_which_commands_differ_is_left_out_and_told(read, plain):
    other = read(Recording(later=(3.0, (0.0, 0.0, 1.0)), body=Swing()))
    comparison = compare_runs(plain, other)
    assert comparison.alignment.agreeing == pytest.approx(2.0 / 2.5, abs=0.02)
    assert 'the commands differ for' in told(comparison, 'warn')
    assert comparison.identical


def test_runs_of_wholly_different_commands_are_compared_under_protest(read, plain):
    comparison = compare_runs(plain, read(Recording(command=(1.0, 0.0, 0.0))))
    assert '0.5  0  0 in A and 1  0  0 in B' in told(comparison, 'bad')
    assert sentence(comparison)[0] == 'bad'


def test_another_policy_is_told_with_the_fields_that_differ(read, plain):
    contract = replace(CONTRACT, file=CONTRACT.file.model_copy(update={'rate_hz': 25.0}), id='other')
    other = replace(plain, contract=contract)
    assert 'they differ in rate_hz' in told(compare_runs(plain, other), 'bad')


def test_runs_of_different_robots_are_refused(plain):
    with pytest.raises(RecordingError, match='different robots.* is of go2.* of other'):
        compare_runs(plain, replace(plain, robot='other'))
    renamed = replace(plain, robot='', joints=('x_joint', *ROBOT.joints[1:]))
    with pytest.raises(RecordingError, match=f'only .* has {ROBOT.joints[0]}; only .* has x_joint'):
        compare_runs(plain, renamed)


def test_joints_are_matched_by_name(plain):
    order = np.random.default_rng(1).permutation(12)
    states = replace(plain.states, position=plain.states.position[:, order], velocity=plain.states.velocity[:, order])
    torques = replace(plain.torques, torque=plain.torques.torque[:, order])
    other = replace(plain, joints=tuple(ROBOT.joints[i] for i in order), states=states, torques=torques)
    assert compare_runs(plain, other).identical


def test_what_one_recording_lacks_is_left_out_and_named(read, plain):
    other = read(Recording(without=('odom', 'effort_controller/commands', 'policy/contract')))
    comparison = compare_runs(plain, other)
    assert set(comparison.quantities) == {'position', 'velocity', 'base'}
    assert np.isnan(comparison.quantities['base'].measures.rmse[:2]).all(), 'the yaw rate comes from the IMU'
    for text in ('the torques cannot be compared', 'the velocity of the base cannot be compared', 'the policy is not known'):
        assert text in told(comparison, 'warn')


def test_what_only_one_run_tells_is_named_and_the_runs_are_not_identical(plain):
    """However much of it is missing: all of a quantity, of one joint, every second sample, or a whole part."""
    states = plain.states
    one, some = states.position.copy(), states.position.copy()
    one[:, 3], some[len(some) // 2 :: 2] = np.nan, np.inf
    cases = {
        'the joint velocities cannot be compared: ': {'states': replace(states, velocity=np.full_like(one, np.nan))},
        f'the joint positions cannot be compared ({plain.joints[3]}): ': {'states': replace(states, position=one)},
        'B does not tell the rest': {'states': replace(states, position=some)},
        "does not hold the policy's targets, the policy's trace, the modes, ": {'ticks': None, 'targets': None, 'modes': ()},
    }
    for said, parts in cases.items():
        comparison = compare_runs(plain, replace(plain, **parts))
        assert said in told(comparison, 'warn')
        assert not comparison.identical
        assert sentence(comparison)[0] == 'warn'
        assert all(np.isfinite(q.measures.largest[np.isfinite(q.measures.rmse)]).all() for q in comparison.quantities.values())


def test_runs_without_a_common_joint_position_are_refused(plain):
    position = plain.states.position.copy()
    position[plain.states.time > 10.9] = np.nan
    with pytest.raises(RecordingError, match='the joint positions cannot be compared: .* no moment after'):
        compare_runs(plain, replace(plain, states=replace(plain.states, position=position)))


def test_runs_that_hardly_overlap_are_refused(read, plain):
    short = replace(plain, states=replace(plain.states, time=plain.states.time[:250], position=plain.states.position[:250]))
    with pytest.raises(RecordingError, match='only .* s of .* overlap'):
        compare_runs(plain, short)
