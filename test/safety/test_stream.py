# SPDX-License-Identifier: Apache-2.0
"""Promises of `StreamMonitor`: each row of its table is found within the time it states, and nothing just below it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_rig import DT, go2

from sim2real_ros.safety.stream import BACK_S, REPEATS, WINDOW_S, StreamMonitor

ROBOT = go2()
LIMITS = ROBOT.monitors


class Feed:
    """A monitor and the stamps that it is fed."""

    def __init__(self) -> None:
        self.monitor, self.stamp, self.arrival = StreamMonitor(ROBOT), 100.0, 5.0
        self.monitor.see(self.stamp, self.arrival)

    def go(self, step: float, apart: float = 0.0) -> tuple[bool, str | None]:
        """Feed the next stamp, `apart` s ahead of the steady clock; returns whether it may be used, and what is found."""
        self.stamp += step
        self.arrival += step - apart
        usable, fault = self.monitor.see(self.stamp, self.arrival)
        return usable, fault.name if fault is not None else None

    def run(self, step: float, seconds: float) -> list[tuple[float, str]]:
        """Feed evenly spaced stamps; returns what is found when."""
        begin, found = self.stamp, []
        while self.stamp - begin < seconds - 1e-9:
            _, name = self.go(step)
            if name is not None:
                found.append((self.stamp - begin, name))
        return found


def test_an_even_stream_shows_nothing():
    feed = Feed()
    assert feed.run(DT, 5.0) == []
    assert feed.monitor.warnings == {}


def test_the_first_state_may_have_any_stamp():
    assert StreamMonitor(ROBOT).see(-1e9, None) == (True, None)


# --- order


@given(back=st.floats(0, BACK_S - 1e-6))
def test_a_stamp_that_is_not_newer_is_dropped_and_the_third_in_a_second_is_a_fault(back):
    feed = Feed()
    for k in range(REPEATS):
        usable, name = feed.go(-back)
        assert usable == (k == REPEATS - 1)  # the third tells the new time: the robot must be answered
        assert name == (None if k < REPEATS - 1 else 'stamp_order')
        feed.stamp += back
        feed.go(DT)


def test_two_repeats_every_second_are_no_fault():
    feed = Feed()
    for _ in range(5):
        assert [feed.go(0.0) for _ in range(REPEATS - 1)] == [(False, None)] * (REPEATS - 1)
        assert feed.run(DT, WINDOW_S + DT) == []


def test_a_state_that_was_overtaken_does_not_set_back_what_is_newest():
    feed = Feed()
    feed.go(DT)
    newest = feed.stamp
    assert feed.go(-DT)[0] is False
    feed.stamp = newest
    assert feed.go(1e-6) == (True, None)


@pytest.mark.parametrize('stamp', [np.nan, np.inf])
def test_a_stamp_that_is_no_number_is_dropped_and_harms_none_after_it(stamp):
    feed = Feed()
    assert feed.monitor.see(stamp, None) == (False, None)
    assert feed.run(DT, 3.0) == []


# --- clocks


def test_a_clock_set_back_is_found_in_the_same_tick_and_the_stream_goes_on_from_there():
    feed = Feed()
    assert feed.go(-BACK_S - 1e-6) == (True, 'clock_jump')
    assert feed.run(DT, 5.0) == []


@pytest.mark.parametrize('sign', [-1, 1])
def test_stamps_that_part_from_the_steady_clock_are_found_in_the_same_tick(sign):
    feed = Feed()
    assert feed.go(DT, sign * (LIMITS.clock_trip_s + 1e-6)) == (True, 'clock_jump')
    assert feed.go(DT, sign * (LIMITS.clock_trip_s - 1e-6)) == (True, None)


def test_stamps_that_part_a_little_from_the_steady_clock_are_a_warning_until_the_second_is_over():
    feed = Feed()
    feed.go(DT, LIMITS.clock_warn_s - 1e-6)
    assert feed.monitor.warnings == {}
    feed.go(DT, LIMITS.clock_warn_s + 1e-6)
    assert list(feed.monitor.warnings) == ['clock']
    feed.run(DT, WINDOW_S)
    assert feed.monitor.warnings == {}


def test_a_message_that_is_held_up_and_the_burst_after_it_are_no_jump_below_the_threshold():
    feed = Feed()
    assert feed.go(DT, -0.04) == (True, None)
    assert feed.go(DT, 0.04) == (True, None)
    assert feed.monitor.warnings == {}


def test_simulated_time_is_not_held_against_the_steady_clock():
    monitor = StreamMonitor(ROBOT)
    assert [monitor.see(k * DT, None) for k in range(100)] == [(True, None)] * 100


# --- rate and gaps


@pytest.mark.parametrize('share', [-1, 1])
def test_a_wrong_rate_is_found_within_a_second(share):
    for off, faulty, warned in ((0.95, False, True), (1.05, True, True)):
        feed = Feed()
        found = feed.run(DT / (1 + share * off * LIMITS.rate_trip), 1.1 * WINDOW_S)
        assert [name for _, name in found] == (['joint_rate'] if faulty else [])
        assert all(when <= WINDOW_S + 2 * DT for when, _ in found)
        assert ('joint_rate' in feed.monitor.warnings) is warned


@pytest.mark.parametrize('share', [-1, 1])
def test_a_rate_that_is_a_little_off_is_a_warning_while_it_lasts(share):
    feed = Feed()
    feed.run(DT / (1 + share * 0.9 * LIMITS.rate_warn), 1.1)
    assert feed.monitor.warnings == {}
    feed.run(DT / (1 + share * 1.1 * LIMITS.rate_warn), 2.1)
    assert list(feed.monitor.warnings) == ['joint_rate']
    assert f'{ROBOT.sensors.rate_hz:g}' in feed.monitor.warnings['joint_rate']
    feed.run(DT, 2.1)
    assert feed.monitor.warnings == {}


def lose(feed: Feed, share: float, seconds: float) -> list[tuple[float, str]]:
    """Lose an evenly spread share of the states; returns what is found when."""
    found, gap = [], 0
    for k in range(round(seconds / DT)):
        gap += 1
        if int((k + 1) * share) == int(k * share):
            name = feed.go(gap * DT)[1]
            gap = 0
            if name is not None:
                found.append(((k + 1) * DT, name))
    return found


@pytest.mark.parametrize(('of_limit', 'fault'), [(0.9, []), (1.1, ['dropped_states'])])
def test_lost_states_are_found_within_a_second(of_limit, fault):
    feed = Feed()
    found = lose(feed, of_limit * LIMITS.dropped_trip, 1.05 * WINDOW_S)
    assert [name for _, name in found] == fault
    assert all(when <= WINDOW_S + 2 * DT for when, _ in found)


def test_some_lost_states_are_a_warning_while_it_lasts():
    feed = Feed()
    assert lose(feed, 0.9 * LIMITS.dropped_warn, 1.05) == []
    assert feed.monitor.warnings == {}
    assert lose(feed, 1.2 * LIMITS.dropped_warn, 2.05) == []
    assert list(feed.monitor.warnings) == ['dropped_states']
    feed.run(DT, 2.05)
    assert feed.monitor.warnings == {}


def test_jitter_of_a_third_of_a_period_is_no_loss():
    feed, rng = Feed(), np.random.default_rng(0)
    begin = feed.stamp
    for k in range(1, 2500):
        assert feed.go(begin + DT * (k + rng.uniform(-0.2, 0.2)) - feed.stamp) == (True, None)
    assert feed.monitor.warnings == {}


def test_a_long_silence_is_neither_lost_states_nor_a_wrong_rate():
    """It is `stale_joint_state`, which the checks of the state say."""
    feed = Feed()
    assert feed.go(2.0) == (True, None)
    for _ in range(600):
        assert feed.go(DT) == (True, None)


def test_what_was_lost_before_the_robot_was_armed_does_not_stop_it_afterwards():
    monitor = StreamMonitor(ROBOT)
    for k in range(100):
        monitor.see(k * 0.008, None)  # three of four are lost
    monitor.begin_window()
    faults = [monitor.see(0.8 + k * 0.002, None)[1] for k in range(1000)]
    assert faults == [None] * 1000
    assert monitor.warnings == {}


def test_reset_begins_anew():
    feed = Feed()
    feed.go(0.0)
    feed.go(0.0)
    feed.monitor.reset()
    assert feed.monitor.see(3.0, None) == (True, None)
    assert feed.monitor.see(3.0, None) == (False, None)


def test_a_paused_simulation_repeats_its_last_stamp_for_ever_and_that_is_no_fault():
    monitor = StreamMonitor(ROBOT)
    assert monitor.see(1.0, None) == (True, None)
    assert not monitor.standing
    for _ in range(1000):
        assert monitor.see(1.0, None) == (False, None)
    assert monitor.standing
    assert monitor.see(1.002, None) == (True, None)
    assert not monitor.standing


def test_a_simulation_that_is_stepped_by_hand_is_no_fault():
    monitor = StreamMonitor(ROBOT)
    for k in range(50):
        for _ in range(5):
            assert monitor.see(k * 0.002, None)[1] is None


def test_states_that_come_twice_in_simulated_time_are_still_two_drivers():
    monitor, faults = StreamMonitor(ROBOT), []
    for k in range(REPEATS):
        faults += [monitor.see(k * 0.1, None)[1], monitor.see(k * 0.1, None)[1]]
    assert [fault.name for fault in faults if fault is not None] == ['stamp_order']


def test_on_hardware_a_stamp_that_stands_is_a_fault():
    monitor = StreamMonitor(ROBOT)
    faults = [monitor.see(1.0, 5.0 + 0.002 * k)[1] for k in range(1 + REPEATS)]
    assert faults[-1].name == 'stamp_order'
