# SPDX-License-Identifier: Apache-2.0
"""Promises of the state machine: every event in every mode, entry conditions, emergency stop, reset."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from safety_rig import Rig, go2, lean, rig_in

from sim2real_ros.safety import Mode, SafetyFilter, modes
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.entry import POSE_ERROR, SPEED, TILT
from sim2real_ros.safety.modes import OPERATOR, TRANSITIONS, Event, possible


@pytest.mark.parametrize(('mode', 'event'), itertools.product(Mode, Event))
def test_every_event_in_every_mode_does_what_the_table_says(mode, event):
    """Of 5 x 7 pairs those in the table lead to their goal; the others are refused and leave the mode as it is."""
    safety = rig_in(mode).safety
    refusal = safety.request(event)
    goal = TRANSITIONS.get((mode, event))
    if goal is None or event not in OPERATOR:
        assert refusal is not None
        assert safety.mode is mode
    else:
        assert refusal is None
        assert safety.mode is goal


@pytest.mark.parametrize(('mode', 'event'), [p for p in itertools.product(Mode, Event) if p not in TRANSITIONS])
def test_a_refusal_names_event_and_mode_and_lists_what_is_possible(mode, event):
    refusal = rig_in(mode).safety.request(event)
    assert event.value in refusal
    assert mode.value in refusal
    listed = refusal.split('possible: ')[1].split(', ')
    assert sorted(listed) == sorted(other.value for other in OPERATOR if (mode, other) in TRANSITIONS)


def test_possible_lists_only_what_an_operator_can_ask_for():
    for mode in Mode:
        assert set(possible(mode)) <= {event.value for event in OPERATOR}


def test_every_mode_can_be_entered_and_left():
    assert set(TRANSITIONS.values()) >= set(Mode) - {Mode.OFF}
    assert {source for source, _ in TRANSITIONS} == set(Mode)


def test_the_drawing_mentions_every_mode_and_every_event():
    for name in (*Mode, *Event):
        assert name.value in modes.__doc__, name


def test_a_new_filter_is_off_and_commands_nothing():
    rig = Rig()
    assert rig.safety.mode is Mode.OFF
    assert rig.run(5) is None
    assert rig.safety.rest() is None


# --- events that the filter finds itself


@pytest.mark.parametrize('mode', Mode)
def test_a_finding_leads_where_the_table_says_for_the_event_fault(mode):
    safety = rig_in(mode).safety
    safety.trip(Fault('tilt', 'found by a test'))
    assert safety.mode is TRANSITIONS.get((mode, Event.FAULT), mode)


@pytest.mark.parametrize('mode', Mode)
def test_silence_of_the_policy_leads_where_the_table_says_for_the_event_policy_timeout(mode):
    rig = rig_in(mode)
    rig.target = None
    rig.run(50)
    assert rig.safety.mode is TRANSITIONS.get((mode, Event.POLICY_TIMEOUT), mode)


@pytest.mark.parametrize('mode', Mode)
def test_estop_works_in_every_mode_and_says_so(mode):
    rig = rig_in(mode)
    rig.insist(Event.ESTOP)
    assert rig.safety.mode is Mode.FAULT
    assert rig.safety.fault.name == 'estop'


def test_estop_works_before_any_sensor_has_spoken():
    safety = SafetyFilter(go2())
    assert safety.request(Event.ESTOP) is None
    assert safety.mode is Mode.FAULT


def test_estop_in_a_fault_keeps_the_first_reason():
    rig = rig_in(Mode.DAMPING)
    rig.safety.trip(Fault('tilt', 'first'))
    rig.insist(Event.ESTOP)
    assert rig.safety.fault.name == 'tilt'


@pytest.mark.parametrize('mode', [mode for mode in Mode if mode is not Mode.FAULT])
def test_reset_is_possible_from_fault_only(mode):
    assert rig_in(mode).safety.request(Event.RESET) is not None


def test_reset_leads_to_damping_and_forgets_the_fault():
    rig = rig_in(Mode.FAULT)
    rig.insist(Event.RESET)
    assert rig.safety.mode is Mode.DAMPING
    assert rig.safety.fault is None
    rig.insist(Event.POSE)


def test_reset_is_refused_while_the_sensors_are_not_finite():
    rig = rig_in(Mode.DAMPING)
    rig.v[3] = np.nan
    rig.step()
    assert 'not finite' in rig.safety.request(Event.RESET)
    assert rig.safety.mode is Mode.FAULT


def test_a_cause_that_comes_back_after_a_reset_trips_in_the_same_time_as_the_first():
    rig = rig_in(Mode.DAMPING)
    rig.quat = lean(1.2)
    rig.run(100)
    assert rig.safety.fault.name == 'tilt'
    assert 'the cause is still there: the base leans by 1.20 rad' in rig.safety.request(Event.RESET)
    rig.quat = lean(0.0)
    rig.step()
    rig.insist(Event.RESET)
    rig.quat = lean(1.2)
    rig.run(45)
    assert rig.safety.mode is Mode.DAMPING
    rig.run(10)
    assert rig.safety.fault.name == 'tilt'


# --- entry conditions


@pytest.mark.parametrize('event', [Event.DAMP])
def test_nothing_is_commanded_before_a_complete_sensor_sample(event):
    safety = SafetyFilter(go2())
    assert 'no complete sensor sample' in safety.request(event)
    assert safety.mode is Mode.OFF


def test_pose_is_refused_when_the_base_leans(damping):
    damping.quat = lean(TILT + 0.05)
    damping.step()
    assert 'leans by 0.55 rad' in damping.safety.request(Event.POSE)
    damping.quat = lean(TILT - 0.05)
    damping.step()
    damping.insist(Event.POSE)


def refusal_to_activate(rig: Rig) -> str:
    """Return the refusal; the mode stays as it was."""
    refusal = rig.safety.request(Event.ACTIVATE)
    assert refusal is not None
    assert rig.safety.mode is Mode.POSE
    return refusal


def test_active_is_refused_when_the_base_leans(pose):
    pose.quat = lean(TILT + 0.05)
    pose.step()
    assert 'leans by 0.55 rad' in refusal_to_activate(pose)


def test_active_is_refused_when_a_joint_is_far_from_the_default_pose_and_names_it(pose):
    pose.q[4] += POSE_ERROR + 0.01
    pose.step()
    refusal = refusal_to_activate(pose)
    assert pose.robot.joints[4] in refusal
    assert '0.36 rad from the default pose' in refusal


def test_active_is_refused_when_a_joint_moves_and_names_it(pose):
    pose.v[7] = -(SPEED + 0.1)
    pose.step()
    refusal = refusal_to_activate(pose)
    assert pose.robot.joints[7] in refusal
    assert '-1.10 rad/s' in refusal


def test_active_is_refused_without_a_contract():
    rig = Rig(accept=False)
    rig.bring_to(Mode.POSE)
    assert 'no policy has announced its contract' in refusal_to_activate(rig)


def test_active_is_refused_when_the_policy_is_silent(pose):
    pose.target = None
    pose.run(50)
    assert 'sends no targets' in refusal_to_activate(pose)


def test_active_is_refused_while_the_pose_move_is_under_way(damping):
    damping.insist(Event.POSE)
    damping.run(20)
    assert 'move into the default pose is not over' in refusal_to_activate(damping)


def test_active_is_refused_when_the_last_sample_is_not_finite(pose):
    pose.q[0] = np.inf
    pose.step()
    assert pose.safety.request(Event.ACTIVATE) is not None
    assert pose.safety.mode is Mode.FAULT


def test_every_reason_against_active_is_given_at_once(pose):
    pose.target = None
    pose.quat = lean(0.6)
    pose.q[0] += 0.5
    pose.v[1] = 2.0
    pose.run(40)
    refusal = refusal_to_activate(pose)
    for part in ('leans', 'sends no targets', pose.robot.joints[0], pose.robot.joints[1]):
        assert part in refusal


def test_active_is_entered_when_nothing_is_against_it(pose):
    pose.insist(Event.ACTIVATE)
    assert pose.safety.mode is Mode.ACTIVE
