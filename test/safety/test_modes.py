# SPDX-License-Identifier: Apache-2.0
"""Promises of the state machine: every event in every mode, entry conditions, emergency stop, reset."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from safety_rig import DT, POLICY_EVERY, Rig, contract, go2, lean, rig_in

from sim2real_ros.safety import Mode, SafetyFilter, modes
from sim2real_ros.safety.calm import GREEN_S
from sim2real_ros.safety.entry import POSE_ERROR, SPEED, TILT, TORQUE_STEP, WARM_UP
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.modes import OPERATOR, TRANSITIONS, Event, possible

SECOND = round(GREEN_S / DT)


@pytest.mark.parametrize(('mode', 'event'), itertools.product(Mode, Event))
def test_every_event_in_every_mode_does_what_the_table_says(mode, event):
    """Of 6 x 8 pairs those in the table lead to their goal; the others are refused and leave the mode as it is."""
    rig = rig_in(mode)
    rig.run(SECOND)
    safety = rig.safety
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
def test_a_withdrawal_leads_where_the_table_says_and_is_not_latched(mode):
    safety = rig_in(mode).safety
    before = safety.fault
    safety.withdraw(Fault('policy_timeout', 'found by a test'))
    goal = TRANSITIONS.get((mode, Event.WITHDRAW))
    assert safety.mode is (goal or mode)
    assert safety.fault is before
    assert ('policy_timeout: found by a test' in safety.last_change) is (goal is not None)


@pytest.mark.parametrize('mode', Mode)
def test_silence_of_the_policy_ends_only_what_follows_it(mode):
    rig = rig_in(mode)
    rig.target = None
    rig.run(50)
    assert rig.safety.mode is (Mode.DAMPING if mode is Mode.ACTIVE else mode)


@pytest.mark.parametrize('mode', Mode)
def test_ticks_that_take_too_long_withdraw_after_three_in_a_row(mode):
    rig = rig_in(mode)
    for seconds in (1.1 * DT, 1.1 * DT, 0.9 * DT, 1.1 * DT, 1.1 * DT):
        rig.safety.took(seconds)
        assert rig.safety.mode is mode
    rig.safety.took(1.1 * DT)
    assert rig.safety.mode is TRANSITIONS.get((mode, Event.WITHDRAW), mode)
    if mode is Mode.ACTIVE:
        assert 'loop_overrun' in rig.safety.last_change


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
    rig.run(SECOND)
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
    rig.run(SECOND + 1)
    rig.insist(Event.RESET)
    rig.quat = lean(1.2)
    rig.run(45)
    assert rig.safety.mode is Mode.DAMPING
    rig.run(10)
    assert rig.safety.fault.name == 'tilt'


def wait_for_reset(rig: Rig) -> float:
    """Return after which time a reset is granted; the refusals before say how long it takes."""
    begin = rig.stamp
    while (refusal := rig.safety.request(Event.RESET)) is not None:
        assert any(part in refusal for part in ('wait ', 'the cause is still there', 'not finite'))
        rig.step()
    return rig.stamp - begin


FINDINGS = {
    'from outside': lambda rig: rig.safety.trip(Fault('driver', 'said so')),
    'a bad target': lambda rig: rig.send(np.full(12, np.nan)),
    'a sensor': lambda rig: rig.step(joint_vel=np.full(12, np.nan)),
    'two drivers': lambda rig: double(rig, 3),
}


def double(rig: Rig, states: int) -> None:
    """Have some states come twice."""
    for k in range(states):
        if k:
            rig.step()
        rig.safety.step(rig.state())


@pytest.mark.parametrize('finding', FINDINGS)
def test_reset_needs_a_second_without_any_finding(finding):
    rig = rig_in(Mode.ACTIVE)
    FINDINGS[finding](rig)
    assert rig.safety.mode is Mode.FAULT
    assert wait_for_reset(rig) == pytest.approx(GREEN_S)


def test_a_finding_during_a_fault_begins_the_second_anew_also_when_it_is_not_the_first():
    rig = rig_in(Mode.ACTIVE)
    rig.insist(Event.ESTOP)
    rig.run(SECOND // 2)
    double(rig, 3)
    assert rig.safety.fault.name == 'estop'
    assert wait_for_reset(rig) == pytest.approx(GREEN_S)


def test_an_emergency_stop_alone_needs_no_waiting():
    rig = rig_in(Mode.ACTIVE)
    rig.insist(Event.ESTOP)
    rig.insist(Event.RESET)


def test_a_reset_after_an_emergency_stop_before_the_first_state_waits_until_sensors_were_watched_for_a_second():
    rig = Rig()
    rig.insist(Event.ESTOP)
    assert rig.safety.request(Event.RESET) is not None
    rig.step()
    assert wait_for_reset(rig) == pytest.approx(GREEN_S)


# --- entry conditions


def test_pose_is_refused_until_nothing_was_wrong_for_a_second(damping):
    assert 'the sensors have just begun to be watched' in damping.safety.request(Event.POSE)
    damping.run(SECOND // 2)
    damping.step(joint_vel=np.full(12, 100.0))  # one sample, no fault
    assert 'wait 1.0 s' in damping.safety.request(Event.POSE)
    damping.run(SECOND - 1)
    assert damping.safety.request(Event.POSE) is not None
    damping.run(11)  # the sample was part of a block in which speeds and positions are compared
    damping.insist(Event.POSE)


def test_a_reason_from_outside_keeps_the_robot_from_being_armed():
    for mode, event in ((Mode.OFF, Event.DAMP), (Mode.DAMPING, Event.POSE), (Mode.FAULT, Event.RESET)):
        rig = rig_in(mode)
        rig.run(SECOND)
        rig.safety.obstacles['rival'] = 'another node commands the joints'
        rig.run(1)
        assert rig.safety.request(event) == 'another node commands the joints'
        assert rig.safety.warnings == {'rival': 'another node commands the joints'}
        rig.safety.obstacles.clear()
        rig.run(SECOND)
        rig.insist(event)


def test_a_robot_in_motion_can_always_be_damped():
    for mode in (Mode.POSE, Mode.ACTIVE):
        rig = rig_in(mode)
        rig.safety.obstacles['rival'] = 'another node commands the joints'
        rig.quat, rig.v = lean(0.9), np.full(12, 3.0)
        rig.run(2)
        rig.insist(Event.DAMP)


@pytest.mark.parametrize('event', [Event.DAMP])
def test_nothing_is_commanded_before_a_complete_sensor_sample(event):
    safety = SafetyFilter(go2())
    assert 'no complete sensor sample' in safety.request(event)
    assert safety.mode is Mode.OFF


def test_pose_is_refused_when_the_base_leans(damping):
    damping.run(SECOND)
    damping.quat = lean(TILT + 0.05)
    damping.step()
    assert 'leans by 0.35 rad' in damping.safety.request(Event.POSE)
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
    assert 'leans by 0.35 rad' in refusal_to_activate(pose)


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


def test_pose_is_refused_when_a_joint_moves(damping):
    damping.run(SECOND)
    damping.v[7] = SPEED + 0.1
    damping.step()
    assert 'moves at 1.10 rad/s' in damping.safety.request(Event.POSE)


def test_active_is_refused_until_the_policy_has_warmed_up(pose):
    own = contract(name='another')
    pose.safety.accept(own)
    pose.contract = own
    pose.run(300)  # the move into its pose
    pose.safety._link.forget()
    pose.run((WARM_UP - 1) * POLICY_EVERY + 1)
    assert 'is warming up' in refusal_to_activate(pose)
    pose.run(POLICY_EVERY)
    pose.insist(Event.ACTIVATE)


@pytest.mark.parametrize('share', [TORQUE_STEP - 0.01, TORQUE_STEP + 0.01])
def test_active_is_refused_when_the_policy_asks_for_a_torque_far_from_the_one_that_holds(pose, share):
    effort = pose.robot.limits.effort[5]
    pose.target[5] += share * effort / pose.contract.gains.stiffness[5]
    pose.run(2 * POLICY_EVERY)
    if share < TORQUE_STEP:
        pose.insist(Event.ACTIVATE)
    else:
        assert f'asks {pose.robot.joints[5]} for {share * effort:.1f} N m' in refusal_to_activate(pose)


def test_active_needs_the_operators_heartbeat_where_one_is_expected_and_keeps_on_needing_it():
    robot = go2()
    watched = replace(robot, monitors=robot.monitors.model_copy(update={'operator_timeout_s': 0.5}))
    rig = Rig(watched).bring_to(Mode.POSE)
    assert 'heartbeat is silent' in refusal_to_activate(rig)
    rig.safety.operator_alive()
    rig.insist(Event.ACTIVATE)
    rig.run(249)
    rig.safety.operator_alive()
    rig.run(250)
    assert rig.safety.mode is Mode.ACTIVE
    rig.run(2)
    assert rig.safety.mode is Mode.DAMPING
    assert 'operator_timeout' in rig.safety.last_change


def test_a_heartbeat_does_not_survive_a_clock_that_went_back():
    robot = go2()
    watched = replace(robot, monitors=robot.monitors.model_copy(update={'operator_timeout_s': 0.5}))
    rig = Rig(watched).bring_to(Mode.POSE)
    rig.safety.operator_alive()
    rig.k = 0
    rig.run(SECOND + 2)
    rig.insist(Event.RESET)
    rig.insist(Event.POSE)
    rig.run(300)
    assert refusal_to_activate(rig) == "the operator's heartbeat is silent"


def test_active_is_refused_without_a_contract():
    rig = Rig(accept=False)
    rig.bring_to(Mode.POSE)
    assert 'no policy has announced its contract' in refusal_to_activate(rig)


def test_active_is_refused_when_the_policy_is_silent(pose):
    pose.target = None
    pose.run(50)
    assert 'sends no targets' in refusal_to_activate(pose)


def test_active_is_refused_while_the_pose_move_is_under_way(damping):
    damping.run(SECOND)
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
    pose.v[1] = 2.0
    pose.move(pose.q + 0.5 * (np.arange(12) == 0))
    refusal = refusal_to_activate(pose)
    for part in ('leans', 'sends no targets', pose.robot.joints[0], pose.robot.joints[1]):
        assert part in refusal


def test_active_is_entered_when_nothing_is_against_it(pose):
    pose.insist(Event.ACTIVATE)
    assert pose.safety.mode is Mode.ACTIVE
