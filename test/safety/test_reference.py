# SPDX-License-Identifier: Apache-2.0
"""Promises of `Reference`: what each mode asks of the joints, and that the ways between them have no step in torque."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import go2

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.safety import Mode
from sim2real_ros.safety.reference import RAMP_S, Reference
from sim2real_ros.signals import LEVEL_XYZW, Gains, Impedance, JointTargets, RobotState

ROBOT = go2()
N = len(ROBOT.joints)
BLEND_S = ROBOT.safety.blend_s
STAND = ROBOT.pose('stand')
ZERO = np.zeros(N)
HOLD = Gains(ROBOT.pose_move.stiffness, ROBOT.pose_move.damping)
DAMPED = (Mode.DAMPING, Mode.FAULT)
FOLLOWED = Impedance(JointTargets(0.0, STAND + 0.2, ZERO, ZERO), Gains(np.full(N, 25.0), np.full(N, 0.6)))
VALUES = arrays(float, N, elements=st.floats(-20, 20))


def torque(impedance: Impedance, q: np.ndarray = STAND, v: np.ndarray = ZERO) -> np.ndarray:
    """Return what an impedance comes to."""
    return pd_torque(impedance.targets, impedance.gains, q, v)


def entered(mode: Mode, acting: np.ndarray = ZERO, stamp: float = 1.0, *, abrupt: bool = False) -> Reference:
    """Return a reference that entered a mode in the standing pose; active by way of the pose."""
    reference, state = Reference(ROBOT), RobotState(stamp, STAND, ZERO, LEVEL_XYZW)
    if mode is Mode.ACTIVE:
        reference.enter(Mode.POSE, RobotState(stamp - 10.0, STAND, ZERO, LEVEL_XYZW), ZERO)
    reference.enter(mode, state, acting, abrupt=abrupt)
    return reference


@given(acting=VALUES, v=VALUES, since=st.floats(0, 0.999 * RAMP_S))
@pytest.mark.parametrize('mode', DAMPED)
def test_the_torque_of_before_dies_away_while_the_damping_grows(mode, acting, v, since):
    reference = entered(mode, acting)
    share = since / RAMP_S
    asked = reference.impedance(mode, 1.0 + since, None)
    assert np.allclose(torque(asked, v=v), (1 - share) * acting - share * ROBOT.damping * v, atol=1e-6)
    assert not asked.gains.stiffness.any()
    assert reference.blending


@pytest.mark.parametrize('mode', DAMPED)
@pytest.mark.parametrize('stamp', [1.0 + RAMP_S + 1e-9, 100.0, 0.5])
def test_after_the_ramp_and_after_a_clock_that_went_back_there_is_damping_alone(mode, stamp):
    reference = entered(mode, np.full(N, 9.0))
    assert reference.impedance(mode, stamp, FOLLOWED) is reference.damping()
    assert not reference.blending


@pytest.mark.parametrize('mode', DAMPED)
def test_an_abrupt_damping_has_no_ramp(mode):
    reference = entered(mode, np.full(N, 9.0), abrupt=True)
    assert reference.impedance(mode, 1.0, None) is reference.damping()


def test_damping_is_the_robots_and_nothing_else():
    asked = Reference(ROBOT).damping()
    assert not asked.gains.stiffness.any()
    assert (asked.gains.damping == ROBOT.damping).all()
    assert not any(part.any() for part in (asked.targets.position, asked.targets.velocity, asked.targets.effort))


@pytest.mark.parametrize('mode', [Mode.POSE, Mode.ACTIVE])
def test_a_reference_that_never_planned_a_move_damps(mode):
    reference = Reference(ROBOT)
    assert reference.impedance(mode, 1.0, FOLLOWED) is reference.damping()


def test_pose_starts_with_the_torque_of_before_and_ends_at_the_goal():
    acting = np.full(N, 1.5)
    reference = Reference(ROBOT)
    reference.goal = STAND + 0.1
    reference.enter(Mode.POSE, RobotState(1.0, STAND, ZERO, LEVEL_XYZW), acting)
    assert np.allclose(torque(reference.impedance(Mode.POSE, 1.0, None)), acting)
    assert not reference.arrived(1.0)
    assert np.allclose(reference.impedance(Mode.POSE, 20.0, FOLLOWED).targets.position, STAND + 0.1)
    assert reference.arrived(20.0)


def test_active_without_targets_holds_the_pose():
    asked = entered(Mode.ACTIVE).impedance(Mode.ACTIVE, 5.0, None)
    assert np.allclose(torque(asked), torque(Impedance(JointTargets(0.0, STAND, ZERO, ZERO), HOLD)))


def test_active_after_the_blend_is_the_policy_itself():
    reference = entered(Mode.ACTIVE)
    assert reference.impedance(Mode.ACTIVE, 1.0 + BLEND_S + 1e-9, FOLLOWED) is FOLLOWED
    assert not reference.blending


@given(q=VALUES, v=VALUES, since=st.floats(0, BLEND_S, exclude_max=True))
def test_the_torque_of_the_blend_is_a_smooth_step_between_the_two_in_every_state(q, v, since):
    reference = entered(Mode.ACTIVE)
    s = since / BLEND_S
    share = s * s * (3 - 2 * s)
    held = torque(Impedance(JointTargets(0.0, STAND, ZERO, ZERO), HOLD), q, v)
    wanted = (1 - share) * held + share * torque(FOLLOWED, q, v)
    assert np.allclose(torque(reference.impedance(Mode.ACTIVE, 1.0 + since, FOLLOWED), q, v), wanted, atol=1e-6)
    assert reference.blending


def test_the_blend_begins_and_ends_without_a_step():
    reference = entered(Mode.ACTIVE)
    begin, end = (torque(reference.impedance(Mode.ACTIVE, 1.0 + at, FOLLOWED)) for at in (0.0, BLEND_S - 1e-6))
    assert np.allclose(begin, 0.0)
    assert np.allclose(end, torque(FOLLOWED), atol=1e-3)
