# SPDX-License-Identifier: Apache-2.0
"""Defects that are the same in every episode: margins shrink, and what would mend it names the defect first."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip('mujoco.batch')

from validation_rig import lagged, trial  # noqa: E402

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.validation.episodes import Trial, run  # noqa: E402
from sim2real_ros.validation.mending import Change, Supposed, calm, mends, remedies, reverse_history  # noqa: E402
from sim2real_ros.validation.workers import Workers  # noqa: E402

IMU = 'the IMU turned by -0.1 rad about y'
DEFECTS = {
    'half the stiffness': Change('stiffness_factor', 2.0),
    'no delay of the targets': Change('action_delay_s', 1.0, 0.04),
    'twice the torque of FR_thigh_joint': Change('motor_strength_factor', 0.5, part=4),
    IMU: Change('imu_mount_rad', 1.0, 0.1, 1),
}


def named_first(defective: Trial, episodes: int) -> str:
    """Return the change that is shown first, and print the first three."""
    with Workers(2) as workers:
        found = mends(defective, workers, episodes=episodes)
    print(*(f'{mend.sentence} (by luck {mend.chance:.2g})' for mend in found[:3]), sep='\n')
    assert found[0].shown
    return found[0].text


def mean_margin(given: Trial, episodes: int = 16) -> float:
    """Return the mean margin of episodes on flat ground."""
    return sum(episode.margin for episode in run(given, 'flat', range(episodes))) / episodes


def test_a_change_is_made_in_every_episode_and_nowhere_else():
    base = trial()
    plain, changed = (given.draw('flat', range(4)).values for given in (base, Supposed.of_trial(base, DEFECTS[IMU])))
    for name, values in plain.items():
        assert (changed[name] == values).all() == (name != 'imu_mount_rad')
    assert changed['imu_mount_rad'][:, 1] == pytest.approx(plain['imu_mount_rad'][:, 1] + 0.1)
    assert (changed['imu_mount_rad'][:, 0] == plain['imu_mount_rad'][:, 0]).all()


def test_a_history_the_wrong_way_round_is_among_what_is_tried(tmp_path):
    contract = lagged(load_contract('go2_velocity'), tmp_path)
    back = reverse_history(reverse_history(contract))
    assert back.file.inputs == contract.file.inputs
    assert 'the history in the other order' in remedies(replace(trial(), contract=contract))
    assert 'the history in the other order' not in remedies(trial())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize('mend', DEFECTS)
def test_a_defect_shrinks_the_margin_and_is_named_first(mend):
    base = calm(trial(seconds=10.0))
    defective = Supposed.of_trial(base, DEFECTS[mend])
    assert mean_margin(defective) < mean_margin(base)
    assert named_first(defective, 48) == mend


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_reversed_history_fails_and_is_named_first(tmp_path):
    base = calm(replace(trial(seconds=4.0), contract=lagged(load_contract('go2_velocity'), tmp_path)))
    defective = replace(base, contract=reverse_history(base.contract))
    assert mean_margin(defective) < mean_margin(base)
    assert named_first(defective, 24) == 'the history in the other order'
