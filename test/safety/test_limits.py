# SPDX-License-Identifier: Apache-2.0
"""Promises of the limits on a torque: what holds by construction, for every torque and every state."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import go2, go2_certificate

from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import Limit, TorqueLimiter

ROBOT, DT = go2(), 0.002
N = len(ROBOT.joints)
LIMITS = ROBOT.limits
SMALL = replace(  # a small battery, and motors that are hot after ten ticks at full torque
    ROBOT, safety=replace(ROBOT.safety, power_limit_w=300.0, continuous_torque=0.37 * LIMITS.effort, peak_torque_s=0.02)
)


def numbers(low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    """Return arrays of one number per joint."""
    return arrays(float, N, elements=st.floats(low, high, width=64))


TORQUE, SHARE, SPEED = numbers(-200, 200), numbers(-0.1, 1.1), numbers(-60, 60)


def limiter(robot: Robot = ROBOT, batch: tuple[int, ...] = ()) -> TorqueLimiter:
    """Return a new limiter; the certificate is sampled once."""
    return TorqueLimiter(robot, batch, certificate=go2_certificate())


def position(share: np.ndarray) -> np.ndarray:
    """Return positions as shares of the range."""
    return LIMITS.lower + share * (LIMITS.upper - LIMITS.lower)


@given(TORQUE, SHARE, SPEED, numbers(-40, 40))
def test_every_torque_is_finite_and_within_the_effort_limit(torque, share, speed, before):
    own = limiter(SMALL)
    own.torque = before
    final, _ = own.apply(torque, position(share), speed, DT)
    assert np.isfinite(final).all()
    assert (np.abs(final) <= LIMITS.effort).all()


@given(TORQUE, SHARE, SPEED, numbers(-20, 20), st.floats(0, 0.02))
def test_before_the_barrier_a_torque_changes_by_at_most_the_rate(torque, share, speed, before, dt):
    own = limiter()
    own.torque = before
    own.apply(torque, position(share), speed, dt)
    assert (np.abs(own.stages[0] - before) <= ROBOT.safety.torque_rate * dt + 1e-9).all()


@given(numbers(-1, 1), numbers(0.45, 0.55), numbers(-0.1, 0.1))
def test_a_torque_that_no_limit_forbids_passes_bit_for_bit(torque, share, speed):
    own = limiter()
    final, limited = own.apply(torque, position(share), speed, DT)
    assert final.tobytes() == torque.tobytes()
    assert not limited.any()


@given(TORQUE, SHARE, SPEED, numbers(-20, 20))
def test_limiting_twice_is_limiting_once(torque, share, speed, before):
    """Even where the barrier broke the rate."""
    own = limiter()
    own.torque = before
    once, _ = own.apply(torque, position(share), speed, DT)
    own.reset()
    own.torque = before
    twice, _ = own.apply(once, position(share), speed, DT)
    np.testing.assert_allclose(twice, once, rtol=1e-12, atol=1e-12)


@given(TORQUE, SHARE, SPEED, numbers(-20, 20))
def test_limiting_power_and_heat_twice_is_limiting_them_once(torque, share, speed, before):
    """Where neither rate nor barrier pushes a joint on: that power is then taken from the others."""
    own = limiter(SMALL)
    own.torque = before
    once, limited = own.apply(torque, position(share), speed, DT)
    own.reset()
    own.torque, own._heat.energy = before, np.zeros(N)
    twice, _ = own.apply(once, position(share), speed, DT)
    if not (limited & (Limit.BARRIER | Limit.RATE)).any():
        np.testing.assert_allclose(twice, once, rtol=1e-9, atol=1e-9)


@given(TORQUE, SHARE, SPEED, numbers(-20, 20))
def test_what_is_mirrored_is_limited_mirrored(torque, share, speed, before):
    own, other = limiter(SMALL), limiter(replace(SMALL, limits=replace(LIMITS, lower=-LIMITS.upper, upper=-LIMITS.lower)))
    own.torque, other.torque = before, -before
    final, limited = own.apply(torque, position(share), speed, DT)
    mirrored, also = other.apply(-torque, -position(share), -speed, DT)
    np.testing.assert_allclose(mirrored, -final, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(also, limited)


@given(TORQUE, SHARE, SPEED, st.permutations(range(N)))
def test_joints_in_another_order_are_limited_alike(torque, share, speed, order):
    """Per joint: nobody's limit depends on its neighbour or on its place in the list."""
    order = list(order)
    pick = {f: getattr(LIMITS, f)[order] for f in ('lower', 'upper', 'velocity', 'effort')}
    safety = ROBOT.safety
    tables = {f: getattr(safety, f)[order] for f in ('brake_acceleration', 'torque_rate', 'stall_torque', 'no_load_speed')}
    other = replace(
        ROBOT, limits=replace(LIMITS, **pick), safety=replace(safety, **tables), damping=ROBOT.damping[order],
        joints=tuple(ROBOT.joints[i] for i in order),
    )  # fmt: skip
    own = go2_certificate()
    fields = ('brake', 'inertia_low', 'inertia_high', 'weight', 'load', 'reaction')
    certificate = replace(own, **{f: getattr(own, f)[order] for f in fields})
    final, _ = limiter().apply(torque, position(share), speed, DT)
    moved, _ = TorqueLimiter(other, certificate=certificate).apply(torque[order], position(share)[order], speed[order], DT)
    np.testing.assert_array_equal(moved, final[order])


@pytest.mark.parametrize('batch', [(), (1,), (5,), (2, 3)])
@pytest.mark.parametrize('layout', ['C', 'F'])
@pytest.mark.parametrize('robot', [ROBOT, SMALL], ids=['plain', 'power and heat'])
def test_a_batch_equals_its_members_bit_for_bit(batch, layout, robot):
    """Whatever its layout in memory, and whatever the others do: every other member is worked hard, the rest idle."""
    rng, hard = np.random.default_rng(0), np.arange(np.prod(batch, dtype=int)).reshape(batch)[..., None] % 2 == 0
    many, seen, members = limiter(robot, batch), 0, {index: limiter(robot) for index in np.ndindex(batch)}
    for _ in range(50):
        torque = np.where(hard, 2 * LIMITS.effort, 1.0) * rng.choice([-1, 0.5, 1], (*batch, N))
        share, speed = rng.uniform(-0.2, 1.2, (*batch, N)), rng.normal(0, 15, (*batch, N))
        torque, q, v = (np.array(part, order=layout) for part in (torque, position(share), speed))
        final, limited = many.apply(torque, q, v, DT)
        for index, one in members.items():
            alone, reasons = one.apply(torque[index], q[index], v[index], DT)
            assert final[index].tobytes() == alone.tobytes()
            assert limited[index].tobytes() == reasons.tobytes()
        seen |= int(np.bitwise_or.reduce(limited, axis=None))
    wanted = Limit.RATE | Limit.TORQUE_SPEED | Limit.BARRIER | ((Limit.POWER | Limit.HEAT) if robot is SMALL else Limit.NONE)
    assert seen & wanted == wanted  # every stage had something to do


def test_what_one_limit_took_and_another_gave_back_counts_as_unaltered_in_a_batch_as_well():
    """Far outside, the barrier wants full torque back, which is what was asked for, but what the rate did not give."""
    q, full = np.tile(LIMITS.lower - 1.5, (2, 1)), np.stack([LIMITS.effort, -LIMITS.effort])
    final, limited = limiter(batch=(2,)).apply(full, q, np.zeros((2, N)), DT)
    np.testing.assert_array_equal(final, [LIMITS.effort, LIMITS.effort])
    assert not limited[0].any()
    assert limited[1].all()


def test_a_batch_cannot_be_coupled():
    with pytest.raises(ValueError, match='one robot'):
        TorqueLimiter(ROBOT, (2,), certificate=go2_certificate(), dynamics=lambda q, v: (np.eye(N), np.zeros(N)))


@given(TORQUE, SHARE, SPEED)
def test_every_alteration_carries_its_reason(torque, share, speed):
    final, limited = limiter(SMALL).apply(torque, position(share), speed, DT)
    assert (limited[final != torque] != 0).all()


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_torque_that_is_not_a_number_is_not_made_one(value):
    """NaN is a fault, never a clip: the filter sees it in what comes out. (It looks at infinity before.)"""
    torque = np.zeros(N)
    torque[3] = value
    final, _ = limiter().apply(torque, position(np.full(N, 0.5)), np.zeros(N), DT)
    assert not np.isfinite(final[3] + torque[3])


def test_reset_forgets_the_last_torque_of_those_in_the_mask_alone():
    own = limiter(batch=(2,))
    own.apply(np.full((2, N), 4.0), np.tile(position(np.full(N, 0.5)), (2, 1)), np.zeros((2, N)), DT)
    own.reset(np.array([True, False]))
    assert not own.torque[0].any()
    assert own.torque[1].all()
