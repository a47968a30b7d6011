# SPDX-License-Identifier: Apache-2.0
"""Promises of the barriers: bounds that can hold together, and torques that obey them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('mujoco')

from adversary import Condition, fixed_robot
from barriers import certificate, coupled, dynamics, told
from safety_rig import go2, go2_certificate

from sim2real_ros.safety.barrier import AccelerationBounds, CoupledBarrier

ROBOT = go2()
BOUNDS = AccelerationBounds(ROBOT, go2_certificate().brake, np.full(12, 60.0))
MIDDLE = 0.5 * (ROBOT.limits.lower + ROBOT.limits.upper)
NUMBER = st.floats(-3, 3)


def room(q: float, v: float) -> np.ndarray:
    """Return the bounds with every joint that far from its middle and that fast."""
    return BOUNDS(MIDDLE + q, np.full(12, 10.0 * v)).copy()


@given(NUMBER, NUMBER, NUMBER)
def test_a_bound_falls_with_the_speed_towards_its_limit(q, v, w):
    slow, fast = room(q, min(v, w)), room(q, max(v, w))
    assert (fast[0] <= slow[0] + 1e-9).all()
    assert (fast[1] >= slow[1] - 1e-9).all()


@given(NUMBER, NUMBER, NUMBER)
def test_a_bound_falls_with_the_nearness_of_its_limit(q, p, v):
    low, high = room(min(q, p), v), room(max(q, p), v)
    assert (high[0] <= low[0] + 1e-9).all()
    assert (high[1] >= low[1] - 1e-9).all()


@given(NUMBER, NUMBER)
def test_no_speed_above_the_limit_is_asked_for(q, v):
    assert (room(q, v)[0] + 10.0 * v <= ROBOT.limits.velocity + 1e-9).all()


ARM = told(fixed_robot('arm7'), Condition(500))
LOOSE = CoupledBarrier(ARM, certificate('arm7'), dynamics('arm7'))


def test_the_coupled_barrier_leaves_alone_what_violates_nothing():
    q, v = ARM.pose('stand'), np.zeros(7)
    _, bias = dynamics('arm7')(q, v)
    assert LOOSE.apply(bias, q, v).tobytes() == bias.tobytes()


def test_accelerations_obey_their_bounds_where_the_motors_suffice():
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        q = rng.uniform(ARM.limits.lower + 0.2, ARM.limits.upper - 0.2)
        v = rng.uniform(-0.3, 0.3, 7) * ARM.limits.velocity
        wanted = rng.uniform(-1, 1, 7) * ARM.limits.effort
        torque = LOOSE.apply(wanted, q, v)
        if (np.abs(torque) >= ARM.limits.effort - 1e-9).any() or torque.tobytes() == wanted.tobytes():
            continue
        mass, bias = dynamics('arm7')(q, v)
        acceleration = np.linalg.solve(mass, torque - bias)
        gamma, own = LOOSE._bounds.gamma, LOOSE._bounds(q, v)
        held += 1
        assert (acceleration <= gamma * own[0] + 1e-6).all()
        assert (acceleration >= -gamma * own[1] - 1e-6).all()
    assert held > 20


def test_no_torque_of_the_coupled_barrier_is_beyond_the_effort_limit():
    apply, rng = coupled(fixed_robot('humanoid29'), Condition(500)), np.random.default_rng(0)
    limits = fixed_robot('humanoid29').limits
    for _ in range(100):
        q = rng.uniform(limits.lower - 0.2, limits.upper + 0.2)
        torque, _ = apply(rng.normal(0, 1, 29) * limits.effort, q, rng.normal(0, 1, 29) * limits.velocity, 0.002)
        assert (np.abs(torque) <= limits.effort).all()
