# SPDX-License-Identifier: Apache-2.0
"""Promises of motors and battery: they take from what drives, never from a brake, and no budget is ever exceeded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import go2

from sim2real_ros.safety.envelope import Heat, Power, TorqueSpeed

ROBOT = go2()
N = len(ROBOT.joints)
TORQUE = arrays(float, N, elements=st.floats(-100, 100))
SPEED = arrays(float, N, elements=st.floats(-60, 60))
LINE = TorqueSpeed(ROBOT)


@given(TORQUE, SPEED)
def test_the_line_never_takes_from_a_brake(torque, speed):
    torque = np.clip(torque, -ROBOT.safety.stall_torque, ROBOT.safety.stall_torque)
    final, braking = LINE.apply(torque, speed), torque * speed <= 0
    np.testing.assert_array_equal(final[braking], torque[braking])


@given(TORQUE, SPEED, SPEED)
def test_the_line_falls_with_the_speed_and_lets_zero_pass(torque, speed, other):
    full, low, high = np.full(N, 1e3), np.minimum(speed, other), np.maximum(speed, other)
    assert (LINE.apply(full, high) <= LINE.apply(full, low)).all()
    assert not LINE.apply(np.zeros(N), speed).any()


@given(TORQUE, SPEED, st.floats(1, 2000))
def test_the_power_limit_holds_and_brakes_are_untouched(torque, speed, limit):
    final = Power(limit).apply(torque, speed)
    driving, before = np.maximum(final * speed, 0).sum(), np.maximum(torque * speed, 0).sum()
    assert driving <= limit * (1 + 1e-9)
    assert driving <= before + 1e-9
    braking = torque * speed <= 0
    np.testing.assert_array_equal(final[braking], torque[braking])


@given(arrays(float, (300, 3), elements=st.floats(-30, 30)))
def test_the_mean_square_of_any_time_stays_within_the_budget(torques):
    """After a cold start; in steps of 20 ms."""
    peak, continuous, seconds, dt = np.full(3, 20.0), np.full(3, 8.0), 0.5, 0.02
    heat, sent = Heat(peak, continuous, seconds), []
    for torque in torques:
        final = heat.apply(np.clip(torque, -peak, peak))
        heat.note(final, dt)
        sent.append(final)
    squares, budget = np.array(sent) ** 2, (peak**2 - continuous**2) * seconds
    for window in (10, 50, 300):
        mean = np.array([squares[k : k + window].mean(axis=0) for k in range(0, 300 - window + 1, 10)])
        one_step = (peak**2 - continuous**2) * dt  # what the last step may bring on top
        assert (mean <= continuous**2 + (budget + one_step) / (window * dt) + 1e-9).all()


def test_a_hot_motor_falls_to_its_continuous_torque_and_cools():
    peak, continuous = np.full(2, 20.0), np.full(2, 8.0)
    heat = Heat(peak, continuous, 0.5)
    for _ in range(500):
        heat.note(heat.apply(peak), 0.01)
    np.testing.assert_allclose(heat.apply(peak), continuous, rtol=0.05)
    for _ in range(2000):
        heat.note(np.zeros(2), 0.01)
    np.testing.assert_array_equal(heat.apply(peak), peak)


@given(arrays(float, 3, elements=st.floats(5, 90)), arrays(float, 3, elements=st.floats(0.2, 0.9)), TORQUE)
def test_a_hot_motor_costs_a_cold_one_nothing(peak, share, torque):
    """Neither another joint nor another robot of the batch."""
    heat = Heat(peak, share * peak, 0.5, (2,))
    heat.energy[0] = heat.energy[1, 0] = 1e6
    final = heat.apply(np.stack([torque[:3]] * 2))
    assert (np.abs(final[0]) <= share * peak).all()
    np.testing.assert_array_equal(final[1, 1:], torque[1:3])
