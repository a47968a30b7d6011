# SPDX-License-Identifier: Apache-2.0
"""Promises of `StateChecks`: each fault of its table is found, within the time it states, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_rig import DT, go2, lean

from sim2real_ros.safety import checks
from sim2real_ros.safety.checks import PERSISTENCE, POSITION_TOLERANCE, VELOCITY_FACTOR, StateChecks
from sim2real_ros.signals import LEVEL_XYZW, RobotState

ROBOT = go2()
N = len(ROBOT.joints)
GOOD = RobotState(1.0, ROBOT.pose('stand'), np.zeros(N), LEVEL_XYZW)
TIMEOUT = ROBOT.sensors.joint_timeout_s


def with_joint(field: str, joint: int, value: float) -> RobotState:
    """Return a good state with one number of one joint replaced."""
    values = getattr(GOOD, field).copy()
    values[joint] = value
    return replace(GOOD, **{field: values})


def found(state: RobotState, dt: float = DT, times: int = 1, own: StateChecks | None = None) -> list[str | None]:
    """Return the names of what is found in a state that is repeated."""
    own = own or StateChecks(ROBOT)
    faults = [own.check(state, dt) for _ in range(times)]
    return [fault and fault.name for fault in faults]


def test_a_good_state_is_never_a_fault():
    assert found(GOOD, times=1000) == [None] * 1000


@given(
    joint=st.integers(0, N - 1),
    field=st.sampled_from(['joint_pos', 'joint_vel']),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_one_number_of_a_joint_that_is_not_finite_is_found_in_the_same_tick_by_name(joint, field, value):
    fault = StateChecks(ROBOT).check(with_joint(field, joint, value), DT)
    assert fault.name == 'non_finite_sensor'
    assert ROBOT.joints[joint] in fault.message


@pytest.mark.parametrize('index', range(4))
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_an_orientation_that_is_not_finite_is_found_in_the_same_tick(index, value):
    quat = LEVEL_XYZW.copy()
    quat[index] = value
    fault = StateChecks(ROBOT).check(replace(GOOD, base_quat_xyzw=quat), DT)
    assert fault.name == 'non_finite_sensor'
    assert 'IMU' in fault.message


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_two_infinities_of_opposite_sign_do_not_cancel():
    values = np.zeros(N)
    values[0], values[1] = np.inf, -np.inf
    assert found(replace(GOOD, joint_vel=values)) == ['non_finite_sensor']


def test_joint_states_further_apart_than_the_timeout_are_stale():
    assert found(GOOD, dt=TIMEOUT) == [None]
    assert found(GOOD, dt=TIMEOUT + 1e-6) == ['stale_joint_state']


def test_a_stamp_that_went_back_is_a_clock_jump():
    assert found(GOOD, dt=-1e-9) == ['clock_jump']


def test_an_imu_sample_older_than_the_timeout_is_stale():
    timeout = ROBOT.sensors.imu_timeout_s
    assert found(replace(GOOD, imu_age=timeout)) == [None]
    assert found(replace(GOOD, imu_age=timeout + 1e-6)) == ['stale_imu']


def test_an_imu_sample_of_unknown_age_is_stale():
    assert found(replace(GOOD, imu_age=float('nan'))) == ['stale_imu']


def test_a_lean_is_a_fault_only_after_the_stated_time():
    tilt = ROBOT.safety.tilt
    names = found(replace(GOOD, base_quat_xyzw=lean(tilt.limit_rad + 0.01)), times=200)
    first = names.index('tilt')
    assert tilt.duration_s - 1e-9 <= (first + 1) * DT <= tilt.duration_s + 2 * DT
    assert set(names[:first]) == {None}
    assert set(names[first:]) == {'tilt'}


def test_a_lean_below_the_limit_is_never_a_fault():
    assert set(found(replace(GOOD, base_quat_xyzw=lean(ROBOT.safety.tilt.limit_rad - 0.01)), times=1000)) == {None}


def test_a_base_that_comes_up_again_starts_the_time_afresh():
    own, leaning = StateChecks(ROBOT), replace(GOOD, base_quat_xyzw=lean(1.5))
    for _ in range(5):
        assert set(found(leaning, times=40, own=own)) == {None}
        assert found(GOOD, own=own) == [None]


@pytest.mark.parametrize('axis', [0, 1])
def test_upside_down_is_a_lean_whichever_way_it_turned(axis):
    quat = np.zeros(4)
    quat[axis] = 1.0
    assert found(replace(GOOD, base_quat_xyzw=quat), times=100)[-1] == 'tilt'


@given(yaw=st.floats(-np.pi, np.pi))
def test_heading_is_no_lean(yaw):
    quat = np.array([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])
    assert set(found(replace(GOOD, base_quat_xyzw=quat), times=100)) == {None}


def test_a_fixed_base_needs_no_imu():
    arm = replace(ROBOT, floating=False)
    state = replace(GOOD, base_quat_xyzw=lean(3.0), imu_age=100.0)
    assert set(found(state, times=200, own=StateChecks(arm))) == {None}


@pytest.mark.parametrize('side', [-1, 1])
@pytest.mark.parametrize('joint', range(N))
def test_a_joint_outside_its_range_is_found_in_the_third_tick_by_name(joint, side):
    limit = ROBOT.limits.upper[joint] if side > 0 else ROBOT.limits.lower[joint]
    state = with_joint('joint_pos', joint, limit + side * (POSITION_TOLERANCE + 1e-6))
    own = StateChecks(ROBOT)
    assert found(state, times=PERSISTENCE, own=own) == [None, None, 'joint_position']
    assert ROBOT.joints[joint] in own.check(state, DT).message


@pytest.mark.parametrize('side', [-1, 1])
def test_a_joint_within_the_tolerance_outside_its_range_is_no_fault(side):
    limit = ROBOT.limits.upper[2] if side > 0 else ROBOT.limits.lower[2]
    assert set(found(with_joint('joint_pos', 2, limit + side * (POSITION_TOLERANCE - 1e-6)), times=50)) == {None}


@pytest.mark.parametrize('sign', [-1, 1])
@pytest.mark.parametrize('joint', range(N))
def test_a_joint_that_is_too_fast_is_found_in_the_third_tick_by_name(joint, sign):
    speed = sign * VELOCITY_FACTOR * ROBOT.limits.velocity[joint]
    own = StateChecks(ROBOT)
    state = with_joint('joint_vel', joint, 1.001 * speed)
    assert found(state, times=PERSISTENCE, own=own) == [None, None, 'joint_velocity']
    assert ROBOT.joints[joint] in own.check(state, DT).message
    assert set(found(with_joint('joint_vel', joint, 0.999 * speed), times=50)) == {None}


@pytest.mark.parametrize(('field', 'value'), [('joint_pos', 100.0), ('joint_vel', 100.0)])
def test_an_outlier_of_two_ticks_is_no_fault(field, value):
    own = StateChecks(ROBOT)
    for _ in range(10):
        assert found(with_joint(field, 0, value), times=2, own=own) == [None, None]
        assert found(GOOD, own=own) == [None]


def test_reset_forgets_what_persisted():
    own, outside = StateChecks(ROBOT), with_joint('joint_pos', 0, 9.0)
    for _ in range(5):
        assert found(outside, times=2, own=own) == [None, None]
        own.reset()


def test_the_table_of_faults_lists_every_fault_that_can_be_found():
    names = {'non_finite_sensor', 'stale_joint_state', 'stale_imu', 'clock_jump', 'tilt', 'joint_position', 'joint_velocity'}
    listed = {line.split('|')[1].strip() for line in checks.__doc__.splitlines() if line.startswith('| ')} - {'fault'}
    assert listed == names
