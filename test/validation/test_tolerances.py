# SPDX-License-Identifier: Apache-2.0
"""Promises of the margins: curves go from mild to bad on the same episodes, searches find real failures, mends point."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('cma', reason='the extra `validate` is not installed')
pytest.importorskip('joblib', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from makers import make_contract, make_onnx  # noqa: E402
from validation_rig import lagged, trial  # noqa: E402

from sim2real_ros.validation.episode import EpisodeId  # noqa: E402
from sim2real_ros.validation.episodes import run  # noqa: E402
from sim2real_ros.validation.mending import Change, Supposed, calm, mends, remedies, reverse_history  # noqa: E402
from sim2real_ros.validation.tolerances import Curve, Sweep, sweeps, tolerances  # noqa: E402
from sim2real_ros.validation.workers import Workers  # noqa: E402
from sim2real_ros.validation.worst import Found, effective, search  # noqa: E402

FLAT = {'scenarios': {'flat': {'share': 1.0}}, 'claim': {'success': 0.9}}
PAYLOAD = Sweep('payload_kg', 'kg', (0.0, 30.0, 60.0, 90.0), ('payload_kg',))


def curve(sweep: Sweep, jobs: int = 1, **changes) -> Curve:
    with Workers(jobs) as workers:
        return tolerances(trial(seconds=1.5, **FLAT, **changes), workers, tried=[sweep], episodes=8)[0]


def test_a_curve_says_how_much_payload_is_borne_and_leaves_out_what_is_hopeless():
    found = curve(PAYLOAD)
    assert [point.value for point in found.points] in ([0.0, 30.0], [0.0, 30.0, 60.0])
    assert found.points[0].success == 1.0
    assert found.points[-1].success < 0.5
    assert found.tolerance == 0.0
    assert not found.open_end
    assert found.sentence == 'payload_kg: up to 0 kg'


def test_a_curve_is_the_same_with_two_workers():
    assert curve(PAYLOAD, jobs=2) == curve(PAYLOAD)


def test_a_parameter_that_never_fails_is_open_ended_and_one_that_always_fails_has_no_tolerance():
    strength = Sweep('motor_strength_factor', '', (1.0, 0.95), ('motor_strength_factor',))
    assert curve(strength).sentence == 'motor_strength_factor: down to 0.95, the worst that was tried'
    none = curve(strength, ranges={'payload_kg': [90.0, 90.0]})
    assert none.tolerance is None
    assert none.sentence == 'motor_strength_factor: not even 1'


def test_a_value_is_tried_on_the_episodes_of_the_study():
    own = trial(seconds=1.5, **FLAT)
    swept = own.level.ranges.model_copy(update={'payload_kg': [2.0, 2.0]})
    other = replace(own, level=own.level.model_copy(update={'ranges': swept}))
    before, after = run(own, 'flat', [3])[0].draw, run(other, 'flat', [3])[0].draw
    assert {name for name in before if before[name] != after[name]} == {'payload_kg'}


def test_every_sweep_names_ranges_that_there_are_and_goes_one_way():
    own = trial()
    for sweep in sweeps(own.robot):
        assert all(hasattr(own.level.ranges, name) for name in sweep.ranges)
        assert list(sweep.values) in (sorted(sweep.values), sorted(sweep.values, reverse=True))
    assert {'action_delay_s', 'command_delay_s'} <= {sweep.name for sweep in sweeps(own.robot)}


@pytest.fixture(scope='module')
def fragile():
    """A study in which some robots carry too much."""
    return trial(seconds=1.5, ranges={'payload_kg': [0.0, 60.0]}, **FLAT)


def test_the_search_finds_a_failure_that_comes_out_again_from_its_coordinates(fragile):
    with Workers(1) as workers:
        found = search(fragile, workers, walks=1, population=8, generations=2)
        again = search(fragile, workers, walks=1, population=8, generations=2)
    assert found
    assert found == again
    one, wanted = found[0], EpisodeId.parse(found[0].episode.id)
    assert not one.episode.passed
    assert run(fragile, wanted.scenario, [wanted.index], z=np.array([one.z])) == [one.episode]
    assert Found.read(one.document()) == one
    assert 0 <= one.distance < 0.5  # pulled towards the middle


def test_only_coordinates_that_change_something_count_for_how_plausible_a_failure_is(fragile):
    assert np.count_nonzero(effective(fragile, 'flat')) == 19  # no slope, no directions
    nothing = trial(ranges={}, **FLAT)
    assert not effective(nothing, 'flat').any()
    with Workers(1) as workers:
        assert search(nothing, workers, walks=1, population=4, generations=1) == []


def test_undoing_a_defect_is_what_mends_it():
    broken = Supposed.of_trial(trial(seconds=2.0, **FLAT), Change('stiffness_factor', 3.0))
    tried = {'a third of the stiffness': Supposed.of_trial(broken, Change('stiffness_factor', 1 / 3)),
             'no payload': Supposed.of_trial(broken, Change('payload_kg', 0.0))}  # fmt: skip
    with Workers(1) as workers:
        first, second = mends(broken, workers, tried=tried, episodes=12)
    assert first.text == 'a third of the stiffness'
    assert first.shown
    assert first.mended == first.failures > 0
    assert second.gain < first.gain


def test_a_change_that_does_nothing_is_not_shown():
    own = trial(seconds=1.0, **FLAT)
    with Workers(1) as workers:
        (nothing,) = mends(own, workers, tried={'nothing': Supposed.of_trial(own, Change('friction'))}, episodes=4)
    assert nothing.gain == 0.0
    assert not nothing.shown


def test_a_change_touches_one_joint_and_leaves_the_rest_of_the_draws_alone():
    own = trial()
    plain = own.draw('flat', [0, 1]).values
    weak = Supposed.of_trial(own, Change('motor_strength_factor', 0.5, part=4)).draw('flat', [0, 1]).values
    np.testing.assert_allclose(weak['motor_strength_factor'][:, 4], 0.5 * plain['motor_strength_factor'][:, 4])
    assert {name for name in plain if not np.array_equal(plain[name], weak[name])} == {'motor_strength_factor'}


def test_calm_worlds_are_flat_and_nobody_pushes():
    still = calm(trial())
    assert list(still.level.scenarios) == ['flat']
    assert not np.any(still.draw('flat', range(4)).values['push_speed_m_s'])
    sloped = calm(trial(scenarios={'hill': {'share': 1.0, 'ground': 'slope', 'slope_rad': [0.1, 0.1]}}))
    assert list(sloped.level.scenarios) == ['hill']


def test_histories_are_reversed_where_there_are_any(tmp_path):
    assert reverse_history(trial().contract) is None
    assert 'the history in the other order' not in remedies(trial())
    make_onnx(tmp_path / 'policy.onnx')
    data = {'obs': {'stack': {'lags': [2, 1, 0], 'layout': 'term_major', 'fill': 'first'}, 'terms': [{'term': 'joint_vel'}]}}
    flipped = reverse_history(make_contract(None, tmp_path / 'policy.onnx', inputs=data))
    assert flipped.file.inputs['obs'].stack.lags == [0, 1, 2]


DEFECTS = {
    'gain doubled': (Change('stiffness_factor', 2.0), 'half the stiffness', 1),
    '40 ms of delay': (Change('action_delay_s', 1.0, 0.04), 'no delay of the targets', 1),
    'one motor at half strength': (Change('motor_strength_factor', 0.5, part=4), 'twice the torque of FR_thigh_joint', 1),
    # a policy bears this so well that its cause is not more than luck in so few episodes
    'an IMU mounted 0.1 rad off': (Change('imu_mount_rad', 1.0, 0.1, part=1), 'the IMU turned by -0.1 rad about y', 3),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', DEFECTS)
def test_a_seeded_defect_shrinks_the_margin_and_its_cause_is_among_the_first(name):
    defect, cause, first = DEFECTS[name]
    own = calm(trial(seconds=6.0))
    broken = Supposed.of_trial(own, defect)
    sound, worse = (run(one, 'flat', range(24)) for one in (own, broken))
    assert np.mean([e.margin for e in worse]) < np.mean([e.margin for e in sound])
    with Workers() as workers:
        found = mends(broken, workers)
    assert cause in [mend.text for mend in found[:first]]
    if first == 1:
        assert found[0].shown


@pytest.mark.slow
def test_a_reversed_history_fails_and_its_cause_comes_first(tmp_path):
    own = trial(seconds=4.0, **FLAT)
    own = replace(own, contract=lagged(own.contract, tmp_path))
    assert all(episode.passed for episode in run(own, 'flat', range(8)))
    broken = replace(own, contract=reverse_history(own.contract))
    with Workers() as workers:
        found = mends(broken, workers, episodes=12)
    assert found[0].text == 'the history in the other order'
    assert found[0].shown
    assert found[0].failures > 0
