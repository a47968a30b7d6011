# SPDX-License-Identifier: Apache-2.0
"""The gait clock counts policy ticks and rests at a zero command where the contract says so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import make_contract

from sim2real_ros.observation.clock import GaitClock

WALK, STAND = np.array([0.5, 0.0, 0.0]), np.zeros(3)


def clock(batch=(), **changes):
    phase = {
        'period_s': 0.8,
        'encoding': ['sin', 'cos'],
        'offsets': [0.0, 0.5],
        'timebase': 'policy_ticks',
        'stop_at_zero_command': False,
    }
    return GaitClock(make_contract(phase=phase | changes), batch)


def test_first_tick_has_phase_zero():
    np.testing.assert_allclose(clock().tick(WALK), [0, 0, 1, -1], atol=1e-15)


def test_phase_follows_ticks_functions_outside_offsets_inside():
    running = clock(offsets=[0.0, 0.25, 0.5], encoding=['cos', 'sin'])
    for tick in range(100):
        angle = 2 * np.pi * (tick * 0.02 / 0.8 + np.array([0.0, 0.25, 0.5]))
        np.testing.assert_allclose(running.tick(WALK), [*np.cos(angle), *np.sin(angle)], atol=1e-12)


def test_clock_repeats_after_its_period():
    running = clock()
    first = running.tick(WALK)
    for _ in range(39):
        running.tick(WALK)
    np.testing.assert_allclose(running.tick(WALK), first, atol=1e-12)


def test_clock_runs_on_at_zero_command_unless_the_contract_stops_it():
    running = clock()
    running.tick(STAND)
    assert running.tick(STAND)[0] > 0.1


def test_stopped_clock_reads_zero_and_starts_at_phase_zero():
    stopping = clock(stop_at_zero_command=True)
    for _ in range(7):
        stopping.tick(WALK)
    assert stopping.tick(STAND).tolist() == [0, 0, 0, 0]
    assert stopping.tick(STAND).tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(stopping.tick(WALK), [0, 0, 1, -1], atol=1e-15)


def test_reset_puts_the_clock_back():
    running = clock()
    first = running.tick(WALK)
    running.tick(WALK)
    running.reset()
    assert np.array_equal(running.tick(WALK), first)


def test_contract_without_clock_has_an_empty_phase():
    assert GaitClock(make_contract()).tick(WALK).shape == (0,)
    assert GaitClock(make_contract(), (2, 3)).tick(np.zeros((2, 3, 3))).shape == (2, 3, 0)


@given(
    stop=st.booleans(),
    standing=st.sampled_from([{}, {'standing_phase': 0.5, 'standing_below': 0.01}]),
    first=st.sampled_from([0, 1]),
    period=st.floats(0.1, 3.0),
    ticks=st.lists(
        st.tuples(st.lists(st.booleans(), min_size=3, max_size=3), st.lists(st.booleans(), min_size=3, max_size=3)), max_size=20
    ),
)
def test_batch_equals_scalar_bit_for_bit(stop, standing, first, period, ticks):
    """Walking, standing and resets of each robot are its own."""
    says = {'period_s': period, 'stop_at_zero_command': stop, 'first_tick': first} | (standing if stop else {})
    scalars = [clock(**says) for _ in range(3)]
    single, batch = clock((1,), **says), clock((3,), **says)
    for walking, resets in ticks:
        batch.reset(np.array(resets))
        for k in np.flatnonzero(resets):
            scalars[k].reset()
        single.reset(np.array(resets[:1]))
        command = np.where(np.array(walking)[:, None], WALK, STAND)
        expected = [scalar.tick(command[k]) for k, scalar in enumerate(scalars)]
        assert np.array_equal(batch.tick(command), np.array(expected))
        assert np.array_equal(single.tick(command[:1])[0], expected[0])


def test_functions_are_found_by_their_columns():
    running = clock(encoding=['cos', 'sin'], offsets=[0.0, 0.5, 0.25])
    for tick in range(5):
        encoded, angle = running.tick(WALK), 2 * np.pi * (tick * 0.02 / 0.8 + np.array([0.0, 0.5, 0.25]))
        np.testing.assert_allclose(encoded[running.columns['sin']], np.sin(angle), atol=1e-12)
        np.testing.assert_allclose(encoded[running.columns['cos']], np.cos(angle), atol=1e-12)


def test_clock_may_advance_before_the_first_observation():
    early, late = clock(first_tick=1), clock()
    late.tick(WALK)
    for _ in range(10):
        assert np.array_equal(early.tick(WALK), late.tick(WALK))
    early.reset()
    np.testing.assert_allclose(early.tick(WALK)[:1], [np.sin(2 * np.pi * 0.02 / 0.8)], atol=1e-15)


def test_gait_begins_at_tick_zero_when_it_moves_again_even_if_it_advances_before():
    """As holosoma does: both feet at half a period while standing, then 0 and half a period."""
    stopping = clock(first_tick=1, stop_at_zero_command=True, standing_phase=0.5)
    stopping.tick(WALK)
    for _ in range(3):
        np.testing.assert_allclose(stopping.tick(STAND), [0, 0, -1, -1], atol=1e-15)
    np.testing.assert_allclose(stopping.tick(WALK), [0, 0, 1, -1], atol=1e-15)


@pytest.mark.parametrize(('speed', 'moves'), [(0.0, False), (0.0099, False), (0.01, True), (0.5, True)])
@pytest.mark.parametrize('axis', [0, 1, 2])
def test_small_command_counts_as_zero(speed, moves, axis):
    stopping = clock(stop_at_zero_command=True, standing_below=0.01)
    stopping.tick(WALK)
    assert stopping.tick(speed * np.eye(3)[axis]).any() == moves


def test_every_robot_stands_for_itself():
    stopping = clock((2,), stop_at_zero_command=True, standing_phase=0.5, standing_below=0.01)
    for _ in range(3):
        encoded = stopping.tick(np.array([[0.5, 0, 0], [0.005, 0, 0]]))
    assert abs(encoded[0, 0] - np.sin(2 * np.pi * 2 * 0.02 / 0.8)) < 1e-12
    np.testing.assert_allclose(encoded[1], [0, 0, -1, -1], atol=1e-15)
