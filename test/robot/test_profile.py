# SPDX-License-Identifier: Apache-2.0
"""Promises of profiles: the same robot, milder in what the profile names and equal in everything else."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real_ros.errors import NotFoundError
from sim2real_ros.robot import load_robot
from sim2real_ros.robot.profile import milder
from sim2real_ros.robot.schema import ProfileSection


def test_first_steps_of_the_go2_lower_torque_and_command_and_take_more_time():
    robot, mild = load_robot('go2'), load_robot('go2', 'first_steps')
    assert mild.profile == 'first_steps'
    assert (mild.limits.effort < robot.limits.effort).all()
    assert 0 < mild.command_share < 1
    assert mild.pose_move.duration_s > robot.pose_move.duration_s
    assert mild.safety.blend_s > robot.safety.blend_s


def test_without_a_profile_nothing_is_milder():
    robot = load_robot('go2')
    assert (robot.profile, robot.command_share) == ('', 1.0)


def test_a_profile_that_says_nothing_changes_nothing_but_the_name():
    robot = load_robot('go2')
    mild = milder(robot, 'plain', {'plain': ProfileSection()})
    assert np.array_equal(mild.limits.effort, robot.limits.effort)
    assert mild.pose_move.duration_s == robot.pose_move.duration_s
    assert mild.safety.blend_s == robot.safety.blend_s


def test_continuous_torque_stays_below_the_lowered_effort_limit():
    robot = load_robot('go2')
    warm = replace(robot, safety=replace(robot.safety, continuous_torque=0.8 * robot.limits.effort))
    mild = milder(warm, 'half', {'half': ProfileSection(effort=0.5)})
    assert (mild.safety.continuous_torque < mild.limits.effort).all()


def test_an_unknown_profile_is_refused_with_those_that_exist():
    with pytest.raises(NotFoundError, match='no profile "bold"; its profiles are first_steps'):
        load_robot('go2', 'bold')
