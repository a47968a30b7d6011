# SPDX-License-Identifier: Apache-2.0
"""Promises of `TorqueLimiter`: what leaves it, for any finite input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import go2

from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import RETURN_RATE, Limit, TorqueLimiter

N = 12
ROBOT = go2()
EFFORT = ROBOT.limits.effort
MIDDLE = (ROBOT.limits.lower + ROBOT.limits.upper) / 2
SOFT_UPPER = ROBOT.limits.upper - ROBOT.safety.position_margin
SOFT_LOWER = ROBOT.limits.lower + ROBOT.safety.position_margin
ANYTIME = 1e3  # s: so long that the rate limit lets everything pass


def numbers(low: float, high: float):
    return arrays(float, N, elements=st.floats(low, high, allow_nan=False))


ANY = arrays(float, N, elements=st.floats(allow_nan=False, allow_infinity=False))
SHARE = numbers(0.0, 1.0)
TORQUE = numbers(-100.0, 100.0)
SPEED = numbers(-40.0, 40.0)
OVER = numbers(-1.0, 1.0)  # rad beyond the ends of the range and inside of it
DT = st.floats(0.0, 0.02)


def position(share: np.ndarray, over: np.ndarray) -> np.ndarray:
    """Return a position up to 1 rad outside of the range."""
    return ROBOT.limits.lower + share * (ROBOT.limits.upper - ROBOT.limits.lower) + over


def limiter(last: np.ndarray, robot: Robot = ROBOT) -> TorqueLimiter:
    """Return a limiter that has just sent a torque."""
    made = TorqueLimiter(robot)
    made.torque = np.clip(last, -robot.limits.effort, robot.limits.effort)
    return made


def permuted(robot: Robot, order: np.ndarray) -> Robot:
    """Return a robot with its joints in another order."""

    def parts(holder, names):
        return replace(holder, **{name: getattr(holder, name)[order] for name in names})

    return replace(
        robot,
        joints=tuple(robot.joints[i] for i in order),
        damping=robot.damping[order],
        limits=parts(robot.limits, ('lower', 'upper', 'velocity', 'effort')),
        safety=parts(robot.safety, ('brake_acceleration', 'torque_rate', 'stall_torque', 'no_load_speed')),
    )


# --- any finite input


@pytest.mark.filterwarnings('ignore::RuntimeWarning')  # 1e308 squared is infinite on the way, never at the end
@given(torque=ANY, last=ANY, q=ANY, v=ANY, dt=st.floats(0, 1e6))
def test_torque_is_finite_and_within_effort_for_any_finite_input(torque, last, q, v, dt):
    final, _ = limiter(last).apply(torque, q, v, dt)
    assert np.isfinite(final).all()
    assert (np.abs(final) <= EFFORT).all()


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_the_last_torque_is_remembered_as_it_was_sent(torque, last, share, over, v, dt):
    filter_ = limiter(last)
    final, _ = filter_.apply(torque, position(share, over), v, dt)
    assert filter_.torque.tobytes() == final.tobytes()


@given(torque=numbers(-10, 10), change=numbers(-4, 4), v=numbers(-1, 1))
def test_unchanged_bit_for_bit_where_no_bound_is_active(torque, change, v):
    """In the middle of the range, slow, with less than half of the effort and of the rate."""
    final, limited = limiter(torque + change).apply(torque, MIDDLE, v, 0.002)
    assert final.tobytes() == torque.tobytes()
    assert not limited.any()


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_a_joint_is_altered_exactly_where_its_mask_says_so(torque, last, share, over, v, dt):
    """A mask may be set by two limits that cancel; without a mask nothing is altered."""
    final, limited = limiter(last).apply(torque, position(share, over), v, dt)
    assert limited.dtype == np.uint8
    assert (limited[final != torque] != Limit.NONE).all()
    assert (final[limited == Limit.NONE] == torque[limited == Limit.NONE]).all()


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_idempotent(torque, last, share, over, v, dt):
    filter_, q = limiter(last), position(share, over)
    once, _ = filter_.apply(torque, q, v, dt)
    twice, _ = filter_.apply(once, q, v, dt)
    assert (once == twice).all()


# --- rate


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_change_per_step_is_within_the_rate_where_nothing_brakes(torque, last, share, over, v, dt):
    """The rate acts first, so its bound is exact for every joint that neither envelope nor barrier has altered.

    The effort limit cannot break it: the last torque was within effort, so cutting to it only shortens the step.
    """
    filter_ = limiter(last)
    before, change = filter_.torque.copy(), ROBOT.safety.torque_rate * dt
    final, limited = filter_.apply(torque, position(share, over), v, dt)
    free = (limited & (Limit.ENVELOPE | Limit.BARRIER)) == 0
    assert (final[free] <= (before + change)[free]).all()
    assert (final[free] >= (before - change)[free]).all()


@given(torque=TORQUE, last=TORQUE, v=SPEED, dt=DT)
def test_envelope_may_exceed_the_rate_only_towards_zero(torque, last, v, dt):
    """The motor's line cuts at once; what it leaves lies between zero and what the rate allows."""
    filter_ = limiter(last)
    change = ROBOT.safety.torque_rate * dt
    rated = np.minimum(np.maximum(torque, filter_.torque - change), filter_.torque + change)
    final, limited = filter_.apply(torque, MIDDLE, v, dt)
    only = (limited & Limit.ENVELOPE != 0) & (limited & Limit.BARRIER == 0)
    assert (np.abs(final[only]) <= np.abs(rated[only])).all()
    assert (final[only] * rated[only] >= 0).all()


def test_full_torque_is_reached_in_ten_milliseconds_at_the_stated_rate():
    filter_ = TorqueLimiter(ROBOT)
    wanted = 0.9 * EFFORT
    sent = [filter_.apply(wanted, MIDDLE, np.zeros(N), 0.002)[0] for _ in range(5)]
    change = ROBOT.safety.torque_rate * 0.002
    assert np.allclose(sent[0], change)
    assert np.allclose(sent[3], 4 * change)
    assert (sent[4] == wanted).all()


# --- envelope


@given(share=numbers(0.0, 1.5), sign=st.sampled_from([-1.0, 1.0]))
def test_accelerating_torque_stays_under_the_motor_line(share, sign):
    safety = ROBOT.safety
    v = sign * share * safety.no_load_speed
    final, _ = limiter(sign * EFFORT).apply(sign * 2 * EFFORT, MIDDLE, v, ANYTIME)
    line = np.maximum(safety.stall_torque * (1 - share), 0)
    assert (sign * final <= line + 1e-9).all()


@given(share=numbers(0.0, 0.9), sign=st.sampled_from([-1.0, 1.0]))
def test_braking_torque_is_not_cut_by_the_motor_line(share, sign):
    v = sign * share * ROBOT.safety.no_load_speed
    final, limited = limiter(-sign * EFFORT).apply(-sign * EFFORT, MIDDLE, v, ANYTIME)
    assert not (limited & Limit.ENVELOPE).any()
    assert (final == -sign * EFFORT).all()


@given(torque=TORQUE, share=numbers(1.0, 1.9), sign=st.sampled_from([-1.0, 1.0]))
def test_beyond_the_no_load_speed_the_motor_line_takes_torque_away_but_never_brakes(torque, share, sign):
    """On a motor whose no-load speed is half of the joint's velocity limit, so that no barrier acts."""
    quick = replace(ROBOT, safety=replace(ROBOT.safety, no_load_speed=0.5 * ROBOT.limits.velocity))
    wanted = 0.1 * torque
    q = MIDDLE - sign * 0.5 * (MIDDLE - ROBOT.limits.lower)
    final, limited = limiter(wanted, quick).apply(wanted, q, sign * share * quick.safety.no_load_speed, ANYTIME)
    free = (limited & Limit.BARRIER) == 0
    braking = sign * wanted <= 0
    assert (final[free & braking] == wanted[free & braking]).all()
    assert (final[free & ~braking] == 0).all()


# --- barrier


@given(torque=TORQUE, share=SHARE, over=OVER, low=SPEED, more=numbers(0, 40))
def test_torque_never_grows_with_speed_towards_a_limit(torque, share, over, low, more):
    """The bound falls with speed: the same wish, position and last torque give at most as much at a higher speed."""
    q = position(share, over)
    slow, _ = limiter(np.zeros(N)).apply(torque, q, low, ANYTIME)
    fast, _ = limiter(np.zeros(N)).apply(torque, q, low + more, ANYTIME)
    assert (fast <= slow).all()


@given(torque=TORQUE, share=SHARE, over=OVER, nearer=numbers(0, 2), v=SPEED)
def test_torque_never_grows_with_nearness_of_a_limit(torque, share, over, nearer, v):
    """The bound rises with distance: nearer to the upper limit (farther from the lower) gives at most as much."""
    q = position(share, over)
    far, _ = limiter(np.zeros(N)).apply(torque, q, v, ANYTIME)
    near, _ = limiter(np.zeros(N)).apply(torque, q + nearer, v, ANYTIME)
    assert (near <= far).all()


@given(torque=TORQUE, more=numbers(0, 100), last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_torque_never_falls_when_more_is_wanted(torque, more, last, share, over, v, dt):
    q = position(share, over)
    less, _ = limiter(last).apply(torque, q, v, dt)
    greater, _ = limiter(last).apply(torque + more, q, v, dt)
    assert (greater >= less).all()


@given(torque=TORQUE, last=TORQUE, beyond=numbers(0.0, 1.0), v=numbers(0.0, 40.0), dt=DT)
def test_no_torque_towards_a_limit_at_or_beyond_its_margin(torque, last, beyond, v, dt):
    """Whatever is wanted and was sent before: the barrier comes after the rate."""
    up, _ = limiter(last).apply(torque, SOFT_UPPER + beyond, v, dt)
    down, _ = limiter(last).apply(torque, SOFT_LOWER - beyond, -v, dt)
    assert (up <= 0).all()
    assert (down >= 0).all()


@given(beyond=numbers(0.0, 0.2), last=numbers(0, 40))
def test_a_joint_at_rest_beyond_the_margin_is_driven_back(beyond, last):
    back = np.minimum(ROBOT.damping * RETURN_RATE * beyond, EFFORT)
    up, limited = limiter(last).apply(EFFORT, SOFT_UPPER + beyond, np.zeros(N), 0.002)
    assert np.allclose(up, -back, atol=1e-9)
    assert (limited & Limit.BARRIER).all()


@given(share=SHARE, v=SPEED)
def test_torque_towards_a_limit_is_never_more_than_damping_to_the_braking_speed(share, v):
    """The cap of the barrier, kd (min(v_max, sqrt(2 a d)) - v), holds for both limits at once inside the range."""
    q = SOFT_LOWER + share * (SOFT_UPPER - SOFT_LOWER)
    a, kd, fastest = ROBOT.safety.brake_acceleration, ROBOT.damping, ROBOT.limits.velocity

    def cap(distance, speed):
        return kd * (np.minimum(fastest, np.sqrt(2 * a * np.maximum(distance, 0))) - speed)

    up, _ = limiter(EFFORT).apply(EFFORT, q, v, ANYTIME)
    down, _ = limiter(-EFFORT).apply(-EFFORT, q, v, ANYTIME)
    # where even the full effort cannot brake as hard, the effort limit has the last word
    assert (up <= np.maximum(cap(SOFT_UPPER - q, v), -EFFORT) + 1e-6).all()
    assert (-down <= np.maximum(cap(q - SOFT_LOWER, -v), -EFFORT) + 1e-6).all()


def test_a_joint_faster_than_its_limit_is_braked_anywhere():
    fast = 1.1 * ROBOT.limits.velocity
    up, _ = limiter(np.zeros(N)).apply(EFFORT, MIDDLE, fast, ANYTIME)
    down, _ = limiter(np.zeros(N)).apply(-EFFORT, MIDDLE, -fast, ANYTIME)
    assert (up < 0).all()
    assert (down > 0).all()


# --- symmetry, order, batch


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT)
def test_mirror_symmetric(torque, last, share, over, v, dt):
    """F(-tau, -q, -v) with mirrored limits is -F(tau, q, v), exactly.

    Up to 1 rad outside of the range; from about 5 rad outside both barriers can contradict each other, and the
    lower one wins.
    """
    q = position(share, over)
    mirrored = replace(ROBOT, limits=replace(ROBOT.limits, lower=-ROBOT.limits.upper, upper=-ROBOT.limits.lower))
    straight, mask = limiter(last).apply(torque, q, v, dt)
    mirror, mirror_mask = limiter(-last, mirrored).apply(-torque, -q, -v, dt)
    assert (mirror == -straight).all()
    assert (mirror_mask == mask).all()


@given(torque=TORQUE, last=TORQUE, share=SHARE, over=OVER, v=SPEED, dt=DT, order=st.permutations(range(N)).map(np.array))
def test_joint_permutation_equivariant(torque, last, share, over, v, dt, order):
    q = position(share, over)
    straight, mask = limiter(last).apply(torque, q, v, dt)
    other, other_mask = limiter(last[order], permuted(ROBOT, order)).apply(torque[order], q[order], v[order], dt)
    assert other.tobytes() == straight[order].tobytes()
    assert (other_mask == mask[order]).all()


@given(
    torque=arrays(float, (4, N), elements=st.floats(-100, 100)),
    share=arrays(float, (4, N), elements=st.floats(0, 1)),
    v=arrays(float, (4, N), elements=st.floats(-40, 40)),
)
def test_batch_of_one_equals_scalar_bit_for_bit_over_a_sequence(torque, share, v):
    one, batch = TorqueLimiter(ROBOT), TorqueLimiter(ROBOT, (1,))
    for k in range(4):
        q = position(share[k], 0.1)
        a, mask_a = one.apply(torque[k], q, v[k], 0.002)
        b, mask_b = batch.apply(torque[None, k], q[None], v[None, k], 0.002)
        assert b.shape == (1, N)
        assert a.tobytes() == b[0].tobytes()
        assert (mask_a == mask_b[0]).all()


@given(
    torque=arrays(float, (2, 3, N), elements=st.floats(-100, 100)),
    share=arrays(float, (2, 3, N), elements=st.floats(0, 1)),
    v=arrays(float, (2, 3, N), elements=st.floats(-40, 40)),
)
def test_robots_of_a_batch_do_not_see_each_other(torque, share, v):
    q = position(share, 0.1)
    together, _ = TorqueLimiter(ROBOT, (2, 3)).apply(torque, q, v, 0.002)
    for i in np.ndindex(2, 3):
        alone, _ = TorqueLimiter(ROBOT).apply(torque[i], q[i], v[i], 0.002)
        assert alone.tobytes() == together[i].tobytes()


def test_reset_forgets_the_torque_of_the_masked_robots_only():
    filter_ = TorqueLimiter(ROBOT, (3,))
    sent, _ = filter_.apply(np.full((3, N), 4.0), np.tile(MIDDLE, (3, 1)), np.zeros((3, N)), 0.002)
    filter_.reset(np.array([False, True, False]))
    assert (filter_.torque[1] == 0).all()
    assert (filter_.torque[[0, 2]] == sent[[0, 2]]).all()


def test_reset_leaves_a_torque_that_was_handed_out_alone():
    """What was sent is in someone else's hands (a message, a trace); forgetting it must not rewrite it."""
    filter_ = TorqueLimiter(ROBOT)
    sent, _ = filter_.apply(np.full(N, 4.0), MIDDLE, np.zeros(N), 0.002)
    filter_.reset()
    assert (sent == 4.0).all()
    assert (filter_.torque == 0).all()
