# SPDX-License-Identifier: Apache-2.0
"""Promises of `PoseMove`: it starts without a step in torque, is smooth, and ends at the goal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import go2

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.safety.pose import FULL_WAY, SHORTEST, PoseMove
from sim2real_ros.signals import LEVEL_XYZW, Gains, RobotState

ROBOT = go2()
N = len(ROBOT.joints)
GAINS = Gains(ROBOT.pose_move.stiffness, ROBOT.pose_move.damping)
LOWER, UPPER = ROBOT.limits.lower, ROBOT.limits.upper
SHARE = arrays(float, N, elements=st.floats(0, 1))


def state(q: np.ndarray, v: np.ndarray | None = None, stamp: float = 3.0) -> RobotState:
    """Return a level state."""
    return RobotState(stamp, q, np.zeros(N) if v is None else v, LEVEL_XYZW)


def move(q: np.ndarray, goal: np.ndarray | None = None, torque: np.ndarray | None = None) -> PoseMove:
    """Return a move from rest at stamp 3."""
    return PoseMove(ROBOT, state(q), np.zeros(N) if torque is None else torque, ROBOT.pose('stand') if goal is None else goal)


def duration(planned: PoseMove) -> float:
    """Return after which time a move is over, to 1 ms."""
    return next(k / 1000 for k in range(10_000) if planned.done(3.0 + k / 1000))


@given(
    share=SHARE,
    v=arrays(float, N, elements=st.floats(-10, 10)),
    torque=arrays(float, N, elements=st.floats(-35, 35)),
)
def test_the_torque_at_the_start_is_the_torque_that_acted_before(share, v, torque):
    """Exactly, for every joint whose equivalent target lies inside its range; the others start at the range's end."""
    q = LOWER + share * (UPPER - LOWER)
    begin = state(q, v)
    targets = PoseMove(ROBOT, begin, torque, ROBOT.pose('stand')).targets(begin.stamp)
    equivalent = q + (torque + GAINS.damping * v) / GAINS.stiffness
    inside = (equivalent >= LOWER) & (equivalent <= UPPER)
    after = pd_torque(targets, GAINS, q, v)
    assert np.allclose(after[inside], torque[inside], atol=1e-9)
    assert ((targets.position >= LOWER) & (targets.position <= UPPER)).all()
    assert (np.abs(after[~inside] - torque[~inside]) > 0).all()


@given(share=SHARE, goal=SHARE)
def test_it_ends_at_rest_at_the_goal_and_stays_there(share, goal):
    goal = LOWER + goal * (UPPER - LOWER)
    planned = move(LOWER + share * (UPPER - LOWER), goal)
    for later in (ROBOT.pose_move.duration_s, 100.0):
        targets = planned.targets(3.0 + later)
        assert np.allclose(targets.position, goal, atol=1e-12)
        assert (targets.velocity == 0).all()
        assert (targets.effort == 0).all()


@given(share=SHARE)
def test_it_starts_and_ends_at_rest_and_never_turns_back(share):
    q = LOWER + share * (UPPER - LOWER)
    planned, goal = move(q), ROBOT.pose('stand')
    targets = [planned.targets(3.0 + s) for s in np.linspace(0, ROBOT.pose_move.duration_s, 200)]
    assert (targets[0].velocity == 0).all()
    way = np.abs(np.array([t.position for t in targets]) - goal)
    assert (np.diff(way, axis=0) <= 1e-12).all()


def test_velocity_is_the_derivative_of_position():
    planned, h = move(ROBOT.pose('lying')), 1e-5
    for s in np.linspace(0.1, 2.4, 24):
        before, now, after = (planned.targets(3.0 + s + d) for d in (-h, 0, h))
        assert np.allclose((after.position - before.position) / (2 * h), now.velocity, atol=1e-6)


def test_before_its_start_it_stays_at_the_start():
    planned = move(ROBOT.pose('lying'))
    assert (planned.targets(0.0).position == planned.targets(3.0).position).all()


def test_a_far_way_takes_the_whole_duration_and_a_short_one_less():
    goal, far, near, half = (ROBOT.pose('stand').copy() for _ in range(4))
    far[1] += 2 * FULL_WAY
    near[1] += 0.01
    half[1] += 0.5 * FULL_WAY
    assert duration(move(far, goal)) == pytest.approx(ROBOT.pose_move.duration_s, abs=0.002)
    assert duration(move(half, goal)) == pytest.approx(0.5 * ROBOT.pose_move.duration_s, abs=0.002)
    assert duration(move(near, goal)) == pytest.approx(SHORTEST * ROBOT.pose_move.duration_s, abs=0.002)


def test_it_is_done_at_its_end_and_not_before():
    planned = move(ROBOT.pose('lying'))
    assert not planned.done(3.0)
    assert not planned.done(3.0 + ROBOT.pose_move.duration_s - 1e-3)
    assert planned.done(3.0 + ROBOT.pose_move.duration_s + 1e-9)


def test_the_way_stays_inside_the_joint_ranges():
    planned = move(ROBOT.pose('lying'), torque=35.0 * np.ones(N))
    for s in np.linspace(0, 3, 100):
        position = planned.targets(3.0 + s).position
        assert ((position >= LOWER) & (position <= UPPER)).all()
