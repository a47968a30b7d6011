# SPDX-License-Identifier: Apache-2.0
"""Promises of the barriers: bounds that can hold together, and torques that obey them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip('mujoco')

from adversary import Condition, fixed_robot
from barriers import PER_JOINT_MARGIN, certificate, dynamics, told
from safety_rig import go2, go2_certificate

from sim2real_ros.safety.barrier import MOST_LOAD, AccelerationBounds, CoupledBarrier, PerJointBarrier
from sim2real_ros.safety.limits import TorqueLimiter

ROBOT = go2()
MIDDLE = 0.5 * (ROBOT.limits.lower + ROBOT.limits.upper)
NUMBER, DELAY = st.floats(-3, 3), st.sampled_from([0.0, 0.003, 0.015])


def room(q: float, v: float, delay: float) -> np.ndarray:
    """Return the bounds with every joint that far from its middle and that fast."""
    robot = replace(ROBOT, safety=replace(ROBOT.safety, command_delay_s=delay))
    bounds = AccelerationBounds(robot, go2_certificate().brake, np.full(12, 60.0))
    return bounds(MIDDLE + q, np.full(12, 10.0 * v))


@given(NUMBER, NUMBER, NUMBER, DELAY)
def test_a_bound_falls_with_the_speed_towards_its_limit(q, v, w, delay):
    slow, fast = room(q, min(v, w), delay), room(q, max(v, w), delay)
    assert (fast[0] <= slow[0] + 1e-9).all()
    assert (fast[1] >= slow[1] - 1e-9).all()


@given(NUMBER, NUMBER, NUMBER, DELAY)
def test_a_bound_falls_with_the_nearness_of_its_limit(q, p, v, delay):
    low, high = room(min(q, p), v, delay), room(max(q, p), v, delay)
    assert (high[0] <= low[0] + 1e-9).all()
    assert (high[1] >= low[1] - 1e-9).all()


@given(NUMBER, NUMBER, DELAY)
def test_no_speed_above_the_limit_is_asked_for(q, v, delay):
    assert (room(q, v, delay)[0] + 10.0 * v <= ROBOT.limits.velocity + 1e-9).all()


HUMANOID = told(fixed_robot('humanoid29'), Condition(500, delay=0.005), PER_JOINT_MARGIN)
HEAVY = PerJointBarrier(HUMANOID, certificate('humanoid29'))._most_load[0] > 0  # joints that find out what loads them
STILL = np.zeros(len(HUMANOID.joints))


def loaded(side: int, seconds: float, beyond: float, batch: tuple[int, ...] = ()) -> tuple[PerJointBarrier, list[np.ndarray]]:
    """Return a barrier whose joints rested beyond their upper (1) or lower (-1) soft limits, and its torques inward."""
    barrier = PerJointBarrier(HUMANOID, certificate('humanoid29'), batch)
    end = HUMANOID.limits.upper - barrier.margin if side > 0 else HUMANOID.limits.lower + barrier.margin
    q, still = (np.broadcast_to(x, (*batch, len(STILL))).copy() for x in (end + side * beyond, STILL))
    return barrier, [-side * barrier.apply(still, q, still) for _ in range(round(seconds * HUMANOID.sensors.rate_hz))]


@given(st.sampled_from([1, -1]), st.floats(0.01, 0.1), st.floats(0.1, 2.0))
def test_a_load_is_taken_up_the_longer_the_more_and_never_beyond_twice_the_weight(side, beyond, seconds):
    _, torques = loaded(side, seconds, beyond)
    gained = torques[-1] - torques[0]
    assert (gained[HEAVY] > 0).all()
    assert (gained[~HEAVY] == 0).all()
    assert (gained <= MOST_LOAD * certificate('humanoid29').weight + 1e-9).all()


@given(st.sampled_from([1, -1]), st.floats(0.0, 0.1), st.floats(0.1, 0.5))
def test_a_load_is_forgotten_where_there_is_room(side, beyond, seconds):
    """A quarter of a second after the joints came back nothing is left of it, bit for bit."""
    barrier, _ = loaded(side, seconds, beyond)
    wanted, middle = 0.01 * HUMANOID.limits.effort, 0.5 * (HUMANOID.limits.lower + HUMANOID.limits.upper)
    torques = [barrier.apply(wanted, middle, STILL) for _ in range(125)]
    assert torques[-1].tobytes() == wanted.tobytes()


def test_robots_of_a_batch_forget_one_by_one():
    barrier, before = loaded(1, 0.5, 0.05, (2,))
    barrier.reset(np.array([True, False]))
    q = np.tile(HUMANOID.limits.upper - barrier.margin + 0.05, (2, 1))
    after = -barrier.apply(np.zeros(q.shape), q, np.zeros(q.shape))
    np.testing.assert_array_equal(after[0], before[0][0])
    assert (after[1] >= before[-1][1]).all()


def test_a_robot_whose_joints_weigh_much_the_same_in_every_pose_needs_no_load():
    assert not PerJointBarrier(ROBOT, go2_certificate())._loaded


ARM = told(fixed_robot('arm7'), Condition(500))
LIMITS, N = ARM.limits, len(ARM.joints)
BARRIER = CoupledBarrier(ARM, certificate('arm7'), dynamics('arm7'))


def shares(low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    """Return arrays of one share per joint of the arm."""
    return arrays(float, N, elements=st.floats(low, high), fill=st.nothing())


@st.composite
def states(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """As they are at work, or up to a tenth of the range outside and one and a half times too fast."""
    beyond, fast = draw(st.sampled_from([(-0.2, 0.2), (-0.2, 0.5), (0.1, 1.5)]))
    q = LIMITS.lower + draw(shares(-beyond, 1 + beyond)) * (LIMITS.upper - LIMITS.lower)
    return q, draw(shares(-fast, fast)) * LIMITS.velocity


def bounds(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the most acceleration of each joint; their middle twice where they contradict each other."""
    room, gamma = BARRIER._bounds(q, v), BARRIER._bounds.gamma
    most, least = gamma * room[0], -gamma * room[1]
    middle = 0.5 * (most + least)
    return np.minimum(least, middle), np.maximum(most, middle)


@given(states(), shares(0, 1))
def test_the_coupled_barrier_leaves_alone_what_violates_nothing(state, share):
    least, most = bounds(*state)
    mass, bias = dynamics('arm7')(*state)
    torque = mass @ (least + (0.01 + 0.98 * share) * (most - least)) + bias
    if (most - least > 1e-3).all():
        assert BARRIER.apply(torque, *state).tobytes() == torque.tobytes()


@given(states(), arrays(float, N, elements=st.sampled_from([-1.0, -0.3, -0.1, 0.1, 0.3, 1.0]), fill=st.nothing()))
def test_accelerations_obey_their_bounds_or_all_joints_brake_with_one_common_factor(state, share):
    """The second where the first takes more torque than there is: then no joint's acceleration turns around."""
    torque = BARRIER.apply(share * LIMITS.effort, *state)
    least, most = bounds(*state)
    mass, bias = dynamics('arm7')(*state)
    acceleration = np.linalg.solve(mass, torque - bias)
    slack = 1e-6 * (1 + np.abs(acceleration).max())
    if not ((acceleration >= least - slack) & (acceleration <= most + slack)).all():
        assert (np.abs(torque) <= LIMITS.effort + 1e-9).all()
        assert (np.abs(torque) >= LIMITS.effort - 1e-9).any()  # all that the motors have
        wanted = np.where(least > 0, 1, np.where(most < 0, -1, 0))  # where both bounds have one sign
        assert (acceleration * wanted >= -slack).all()


@pytest.mark.parametrize('effort', [3.0, 10.0, 30.0])
def test_what_the_motors_cannot_do_is_done_in_part_by_all_alike(effort):
    """One joint twice as heavy, no gravity: both brake with the same share of what is wanted."""
    weak = replace(ARM, limits=replace(LIMITS, effort=np.full(N, effort)))
    mass = np.diag(np.arange(1.0, N + 1))
    barrier = CoupledBarrier(weak, certificate('arm7'), lambda q, v: (mass, np.zeros(N)))
    q, v = LIMITS.upper.copy(), LIMITS.velocity.copy()
    wanted = bounds(q, v)[1]
    share = np.linalg.solve(mass, barrier.apply(np.zeros(N), q, v)) / wanted
    np.testing.assert_allclose(share, share[0])
    assert 0 < share[0] < 1


@given(st.integers(0, 2**32 - 1))
def test_no_torque_of_the_coupled_limits_is_beyond_the_effort_limit(seed):
    robot, rng = fixed_robot('humanoid29'), np.random.default_rng(seed)
    limiter = TorqueLimiter(robot, certificate=certificate('humanoid29'), dynamics=dynamics('humanoid29'))
    q = rng.uniform(robot.limits.lower - 0.2, robot.limits.upper + 0.2)
    torque, _ = limiter.apply(
        rng.normal(0, 1, 29) * robot.limits.effort, q, rng.normal(0, 1, 29) * robot.limits.velocity, 0.002
    )
    assert np.isfinite(torque).all()
    assert (np.abs(torque) <= robot.limits.effort).all()
