# SPDX-License-Identifier: Apache-2.0
"""Promises of `ConductMonitor`: a policy that works against its limits, or whose targets jump about, is found in time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_rig import DT, contract, go2

from sim2real_ros.safety.conduct import FEWEST, SHARE, SMOOTH_S, TRIP_S, WARN_S, WINDOW_S, ConductMonitor
from sim2real_ros.signals import JointTargets

ROBOT = go2()
LIMITS = ROBOT.monitors
N = len(ROBOT.joints)
GAINS = contract().gains
PERIOD = 0.02  # s, of the policy
LATEST = 1.3  # s, as the table says


def work(monitor: ConductMonitor, altered: int, seconds: float) -> list[tuple[float, str]]:
    """Alter the torque of some joints in every tick; returns what is found when."""
    found = []
    for k in range(round(seconds / DT)):
        fault = monitor.see_torque(altered, DT)
        if fault is not None:
            found.append(((k + 1) * DT, fault.name))
    return found


# --- torques that must be altered


@pytest.mark.parametrize('altered', [7, 9, N])
def test_a_policy_with_most_torques_altered_is_found_in_time_and_not_before(altered):
    assert altered / N > LIMITS.activity_trip
    when, name = work(ConductMonitor(ROBOT), altered, 2.0)[0]
    assert name == 'filter_activity'
    assert TRIP_S < when <= LATEST


@pytest.mark.parametrize('altered', range(7))
def test_a_policy_with_up_to_half_of_its_torques_altered_is_never_stopped(altered):
    monitor = ConductMonitor(ROBOT)
    assert work(monitor, altered, 20.0) == []
    assert ('filter_activity' in monitor.warnings) is (altered / N > LIMITS.activity_warn)


def test_the_warning_comes_after_its_time_and_goes_at_half_its_threshold():
    monitor = ConductMonitor(ROBOT)
    work(monitor, 4, WARN_S - DT)
    assert monitor.warnings == {}
    work(monitor, 4, 5 * SMOOTH_S)
    assert list(monitor.warnings) == ['filter_activity']
    assert '33%' in monitor.warnings['filter_activity']
    work(monitor, 2, 3.0)  # below the threshold, above half of it
    assert list(monitor.warnings) == ['filter_activity']
    work(monitor, 1, 3.0)
    assert monitor.warnings == {}


def test_a_second_of_trouble_with_a_breath_in_between_is_no_fault():
    monitor = ConductMonitor(ROBOT)
    for _ in range(5):
        assert work(monitor, N, 0.9) == []
        assert work(monitor, 0, 0.2) == []


def test_no_work_forgets_a_trickle_and_shows_no_warning():
    monitor = ConductMonitor(ROBOT)
    work(monitor, 3, 3.0)
    work(monitor, 0, 2.0)
    assert monitor.altered == 0.0
    assert monitor.warnings == {}


# --- targets that jump about


def targets(stamp: float, jump: float) -> JointTargets:
    """Return targets whose torque lies `jump` effort limits above zero at one joint."""
    position = np.zeros(N)
    position[2] = jump * ROBOT.limits.effort[2] / GAINS.stiffness[2]
    return JointTargets(stamp, position, np.zeros(N), np.zeros(N))


def send(monitor: ConductMonitor, jumps: list[float], begin: float = 1.0) -> list[tuple[float, str]]:
    """Send targets at the policy's rate; returns what is found when."""
    found = []
    for k, jump in enumerate(jumps):
        fault = monitor.see_targets(targets(begin + k * PERIOD, jump), GAINS)
        if fault is not None:
            found.append(((k + 1) * PERIOD, fault.name))
    return found


def test_targets_that_jump_to_and_fro_are_found_within_a_second():
    """Alternating by J is a second difference of 2 J."""
    amplitude = 0.51 * LIMITS.target_jerk / 2
    when, name = send(ConductMonitor(ROBOT), [amplitude, -amplitude] * 40)[0]
    assert name == 'target_jerk'
    assert when <= WINDOW_S


def test_targets_that_jump_to_and_fro_by_less_than_the_threshold_show_nothing():
    monitor, amplitude = ConductMonitor(ROBOT), 0.49 * LIMITS.target_jerk / 2
    assert send(monitor, [amplitude, -amplitude] * 200) == []
    assert monitor.warnings == {}


@given(slope=st.floats(-5, 5))
def test_targets_that_move_steadily_never_jerk_however_fast(slope):
    monitor = ConductMonitor(ROBOT)
    assert send(monitor, [slope * k for k in range(100)]) == []
    assert monitor.warnings == {}


def test_a_single_jump_is_a_warning_for_a_second_and_no_fault():
    monitor = ConductMonitor(ROBOT)
    jump = 1.1 * LIMITS.target_jerk
    assert send(monitor, [0.0] * 50 + [jump] * 10) == []
    assert list(monitor.warnings) == ['target_jerk']
    send(monitor, [jump] * 60, begin=1.0 + 60 * PERIOD)
    assert monitor.warnings == {}


@pytest.mark.parametrize(('every', 'faulty'), [(11, False), (9, True)])
def test_jumps_in_a_fifth_of_the_ticks_are_the_threshold(every, faulty):
    """A step jerks in two ticks, so one step in `every` ticks is a share of 2 / every."""
    steps = [1.1 * LIMITS.target_jerk * ((k // every) % 2) for k in range(200)]
    found = send(ConductMonitor(ROBOT), steps)
    assert (2 / every > SHARE) is faulty
    settled = [name for when, name in found if when > WINDOW_S]
    assert bool(settled) is faulty


def test_two_jerks_among_the_first_targets_are_too_few():
    monitor = ConductMonitor(ROBOT)
    jump = 1.1 * LIMITS.target_jerk
    assert send(monitor, [0.0, 0.0, jump, jump]) == []
    assert FEWEST == 3


def test_every_part_of_a_target_counts():
    for field in ('position', 'velocity', 'effort'):
        monitor, names = ConductMonitor(ROBOT), []
        for k in range(50):
            parts = {name: np.zeros(N) for name in ('position', 'velocity', 'effort')}
            parts[field][0] = (-1) ** k * 100.0
            fault = monitor.see_targets(JointTargets(k * PERIOD, **parts), GAINS)
            names.append(fault and fault.name)
        assert 'target_jerk' in names, field


def test_reset_begins_anew():
    monitor = ConductMonitor(ROBOT)
    work(monitor, N, 0.9)
    send(monitor, [0.0, 0.0, 3 * LIMITS.target_jerk])
    monitor.reset()
    assert monitor.warnings == {}
    assert work(monitor, N, 0.9) == []
    assert send(monitor, [0.0, 3 * LIMITS.target_jerk], begin=2.0) == []
    assert monitor.warnings.keys() <= {'filter_activity'}
