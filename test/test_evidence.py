# SPDX-License-Identifier: Apache-2.0
"""The measuring programs: what they make of known values, and a short walk of two robots."""

import numpy as np
import pytest

from bench import evidence
from bench.baseline import Lateness
from bench.margins import Jerk, Level
from sim2real_ros.contract import load_contract
from sim2real_ros.errors import OutputError
from sim2real_ros.robot import load_robot
from sim2real_ros.safety.certificate import certify


def test_a_value_lasts_when_it_is_held_for_the_whole_window():
    level, here = Level(1, 'rad', 1.0, window=3), np.array([True])
    for value in (0.9, 0.2, 0.5, 0.6, 0.7, 0.1):
        level.see(np.array([value]), here)
    assert (level.highest[0], level.lasting[0]) == (0.9, 0.5)


def test_a_robot_that_is_left_out_changes_nothing():
    level = Level(2, 'rad', 1.0)
    level.see(np.array([3.0, 3.0]), np.array([False, True]))
    assert level.highest.tolist() == [0.0, 3.0]


def test_the_jerk_that_lasts_is_exceeded_by_a_fifth_of_the_ticks():
    jerk, here = Jerk(1, 2.0, 50), np.array([True])
    for k in range(60):
        jerk.see_wanted(np.array([[4.0 if k == 30 else 0.0]]), here)
    assert (jerk.highest[0], jerk.lasting[0]) == (8.0, 0.0)  # one target out of line: three jerks, one of them of 8
    for k in range(60):
        jerk.see_wanted(np.array([[float(k % 2)]]), here)
    assert jerk.lasting[0] == 2.0


def test_quantiles_of_lateness_are_right_to_a_bin():
    lateness = Lateness()
    for k in range(1000):
        lateness.see(float(k), 1e-3 * (k + 1) / 100)
    figures = lateness.figures()
    assert figures['p50_ms'] == pytest.approx(5.0, rel=0.05)
    assert (figures['max_ms'], figures['misses']) == (pytest.approx(10.0), 800)


def test_figures_go_between_the_marks_and_nowhere_else(tmp_path):
    document = tmp_path / 'a.md'
    document.write_text('# A\n<!-- x -->\nold\n<!-- /x -->\nrest\n')
    evidence.put(document, 'x', 'new')
    evidence.put(document, 'x', 'newer')
    assert document.read_text() == '# A\n<!-- x -->\n\nnewer\n\n<!-- /x -->\nrest\n'
    with pytest.raises(OutputError, match='<!-- y -->'):
        evidence.put(document, 'y', 'new')


def test_randomised_robots_stand_up_and_walk_without_an_alarm():
    pytest.importorskip('mujoco.batch', reason='MuJoCo 4')
    from bench.walk import Walk

    robot = load_robot('go2')
    episodes = Walk(robot, load_contract('go2_velocity'), 2, 7, certify(robot)).run(2.0, lambda: None)
    for episode in episodes:
        assert (episode.alarms, episode.fell) == ([], False)
        assert episode.walked_s == pytest.approx(2.0, abs=0.11)
        assert 0 < episode.levels['angular_rate'][1] < episode.levels['angular_rate'][0]
