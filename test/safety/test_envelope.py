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
    assert (LINE.apply(-full, high) <= LINE.apply(-full, low)).all()
    assert (LINE.apply(torque, high) <= LINE.apply(torque, low)).all()
    assert not LINE.apply(np.zeros(N), speed).any()


@given(TORQUE, SPEED, st.floats(1, 2000))
def test_the_power_limit_holds_and_brakes_are_untouched(torque, speed, limit):
    final = Power(limit).apply(torque, speed)
    driving, before = np.maximum(final * speed, 0).sum(), np.maximum(torque * speed, 0).sum()
    assert driving <= limit * (1 + 1e-9)
    assert driving <= before + 1e-9
    assert (final * speed).sum() <= (torque * speed).sum() + 1e-9
    braking = torque * speed <= 0
    np.testing.assert_array_equal(final[braking], torque[braking])


@given(
    arrays(float, (300, 3), elements=st.floats(-30, 30), fill=st.sampled_from([0.0, 8.5, 20.0])),
    st.sampled_from([0.002, 0.02, 0.1]),
)
def test_the_mean_square_of_any_time_stays_within_the_budget(torques, dt):
    """Of every one of the 45,000 times between two samples, after a cold start; for dt up to a fifth of the peak's time."""
    peak, continuous, seconds = np.full(3, 20.0), np.full(3, 8.0), 0.5
    heat, budget = Heat(peak, continuous, seconds), (peak**2 - continuous**2) * seconds
    above = [np.zeros(3)]  # heat above the continuous torque's, since the start
    for torque in torques:
        final = heat.apply(np.clip(torque, -peak, peak))
        heat.note(final, dt)
        assert (heat.energy <= budget * (1 + 1e-12)).all()
        above.append(above[-1] + (final**2 - continuous**2) * dt)
    total = np.array(above)
    assert (total - np.minimum.accumulate(total) <= budget * (1 + 1e-9)).all()


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
