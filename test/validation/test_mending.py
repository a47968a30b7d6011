# SPDX-License-Identifier: Apache-2.0
"""Promises of the mends: undoing a defect is what mends it, and what changes nothing is not shown."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')
pytest.importorskip('scipy', reason='the extra `validate` is not installed')

from makers import make_contract, make_onnx  # noqa: E402
from validation_rig import lagged, trial  # noqa: E402

from sim2real_ros.validation.episodes import run  # noqa: E402
from sim2real_ros.validation.mending import Change, Supposed, calm, mends, remedies, reverse_history  # noqa: E402
from sim2real_ros.validation.workers import Workers  # noqa: E402

FLAT = {'scenarios': {'flat': {'share': 1.0}}, 'claim': {'success': 0.9}}


def test_undoing_a_defect_is_what_mends_it():
    broken = Supposed.of_trial(trial(seconds=2.0, **FLAT), Change('stiffness_factor', 3.0))
    tried = {'a third of the stiffness': Supposed.of_trial(broken, Change('stiffness_factor', 1 / 3)),
             'no payload': Supposed.of_trial(broken, Change('payload_kg', 0.0))}  # fmt: skip
    with Workers(1) as workers:
        first, second = mends(broken, workers, tried=tried, more=12)
    assert first.text == 'a third of the stiffness'
    assert first.shown
    assert first.mended == first.failures > 0
    assert second.gain < first.gain


def test_a_change_that_does_nothing_is_not_shown():
    own = trial(seconds=1.0, **FLAT)
    with Workers(1) as workers:
        (nothing,) = mends(own, workers, tried={'nothing': Supposed.of_trial(own, Change('friction'))}, more=4)
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


DEFECTS = {  # what would mend it, among how many of the first, and whether that is more than luck in 24 episodes
    'gain doubled': (Change('stiffness_factor', 2.0), 'half the stiffness', 1, True),
    '40 ms of delay': (Change('action_delay_s', 1.0, 0.04), 'no delay of the targets', 1, True),
    # a policy bears these two so well that 24 episodes cannot tell
    'one motor at half strength': (
        Change('motor_strength_factor', 0.5, part=4),
        'twice the torque of FR_thigh_joint',
        1,
        False,
    ),
    'an IMU mounted 0.1 rad off': (Change('imu_mount_rad', 1.0, 0.1, part=1), 'the IMU turned by -0.1 rad about y', 3, False),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', DEFECTS)
def test_a_seeded_defect_shrinks_the_margin_and_its_cause_is_among_the_first(name):
    defect, cause, first, certain = DEFECTS[name]
    own = calm(trial(seconds=6.0))
    broken = Supposed.of_trial(own, defect)
    sound, worse = (run(one, 'flat', range(24)) for one in (own, broken))
    assert np.mean([e.margin for e in worse]) < np.mean([e.margin for e in sound])
    with Workers() as workers:
        found = mends(broken, workers)
    assert cause in [mend.text for mend in found[:first]]
    if certain:
        assert found[0].shown


@pytest.mark.slow
def test_a_reversed_history_fails_and_its_cause_comes_first(tmp_path):
    own = trial(seconds=4.0, **FLAT)
    own = replace(own, contract=lagged(own.contract, tmp_path))
    assert all(episode.passed for episode in run(own, 'flat', range(8)))
    broken = replace(own, contract=reverse_history(own.contract))
    with Workers() as workers:
        found = mends(broken, workers, episodes=12, more=24)
    assert found[0].text == 'the history in the other order'
    assert found[0].shown
    assert found[0].failures > 0
