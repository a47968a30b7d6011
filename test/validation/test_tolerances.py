# SPDX-License-Identifier: Apache-2.0
"""Promises of the margins: curves go from mild to bad on the same episodes, and searches find real failures."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('cma', reason='the extra `validate` is not installed')
pytest.importorskip('joblib', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import trial  # noqa: E402

from sim2real_ros.validation.episode import EpisodeId  # noqa: E402
from sim2real_ros.validation.episodes import run  # noqa: E402
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
