# SPDX-License-Identifier: Apache-2.0
"""Promises of `StateChecks`: each fault of its table is found, within the time it states, and nothing else is."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_rig import DT, go2, lean

from sim2real_ros.robot import Robot
from sim2real_ros.safety import checks
from sim2real_ros.safety.checks import BLOCK_S, JUMP_SLACK, StateChecks
from sim2real_ros.signals import LEVEL_XYZW, RobotState

ROBOT = go2()
MONITORS = ROBOT.monitors
N = len(ROBOT.joints)
GOOD = RobotState(1.0, ROBOT.pose('stand'), np.zeros(N), LEVEL_XYZW, base_ang_vel=np.zeros(3))
TIMEOUT = ROBOT.sensors.joint_timeout_s
SPEED = ROBOT.limits.velocity
JUMP = MONITORS.encoder_jump_factor * SPEED * DT + JUMP_SLACK


class Feed:
    """Checks that are fed states with stamps that go on and the noise of real sensors."""

    def __init__(self, robot: Robot = ROBOT) -> None:
        self.checks, self._stamp, self._rng = StateChecks(robot), 1.0, np.random.default_rng(0)

    def see(self, state: RobotState, dt: float = DT, times: int = 1, noise: float = 1e-9) -> list[str | None]:
        """Return the names of what is found in a state that is repeated; `last` is the state to go on with."""
        names = []
        for _ in range(times):
            self._stamp += dt
            q, w = (noise * self._rng.standard_normal(size) for size in (N, 3))
            turn = None if state.base_ang_vel is None else state.base_ang_vel + w
            noisy = replace(state, stamp=self._stamp, joint_pos=state.joint_pos + q, base_ang_vel=turn)
            self.last, fault = self.checks.check(noisy, dt)
            self.message = fault.message if fault is not None else ''
            names.append(fault.name if fault is not None else None)
        return names


def with_joint(field: str, joint: int, value: float) -> RobotState:
    """Return a good state with one number of one joint replaced."""
    values = getattr(GOOD, field).copy()
    values[joint] = value
    return replace(GOOD, **{field: values})


def found(state: RobotState, dt: float = DT, times: int = 1) -> list[str | None]:
    """Return the names of what fresh checks find in a state that is repeated."""
    return Feed().see(state, dt, times)


def seconds_until(name: str, names: list[str | None]) -> float:
    """Return when a fault was found first; nothing else may have been found before."""
    first = names.index(name)
    assert set(names[:first]) <= {None}
    return (first + 1) * DT


def test_a_good_state_is_never_a_fault_and_always_green():
    feed = Feed()
    assert feed.see(GOOD, times=1000) == [None] * 1000
    assert feed.checks.green
    assert not feed.checks.warnings


# --- numbers


@given(
    joint=st.integers(0, N - 1),
    field=st.sampled_from(['joint_pos', 'joint_vel']),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
)
def test_one_number_of_a_joint_that_is_not_finite_is_found_in_the_same_tick_by_name(joint, field, value):
    feed = Feed()
    feed.see(GOOD)
    assert feed.see(with_joint(field, joint, value)) == ['non_finite_sensor']
    assert ROBOT.joints[joint] in feed.message
    assert not feed.checks.green


@pytest.mark.parametrize('index', range(4))
@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_an_orientation_that_is_not_finite_is_found_in_the_same_tick(index, value):
    quat = LEVEL_XYZW.copy()
    quat[index] = value
    feed = Feed()
    assert feed.see(replace(GOOD, base_quat_xyzw=quat)) == ['non_finite_sensor']
    assert 'IMU orientation' in feed.message


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_an_angular_velocity_that_is_not_finite_is_found_in_the_same_tick(value):
    feed = Feed()
    assert feed.see(replace(GOOD, base_ang_vel=np.array([0.0, value, 0.0]))) == ['non_finite_sensor']
    assert 'IMU angular velocity' in feed.message


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_two_infinities_of_opposite_sign_do_not_cancel():
    values = np.zeros(N)
    values[0], values[1] = np.inf, -np.inf
    assert found(replace(GOOD, joint_vel=values)) == ['non_finite_sensor']


def test_a_state_after_one_that_was_not_finite_is_compared_with_the_last_finite_one():
    feed = Feed()
    feed.see(GOOD)
    feed.see(with_joint('joint_pos', 0, np.nan))
    assert feed.see(GOOD, times=20) == [None] * 20


# --- age


def test_joint_states_further_apart_than_the_timeout_are_stale():
    assert found(GOOD, dt=TIMEOUT) == [None]
    assert found(GOOD, dt=TIMEOUT + 1e-6) == ['stale_joint_state']


def test_an_imu_sample_older_than_the_timeout_is_stale():
    timeout = ROBOT.sensors.imu_timeout_s
    assert found(replace(GOOD, imu_age=timeout)) == [None]
    assert found(replace(GOOD, imu_age=timeout + 1e-6)) == ['stale_imu']


def test_an_imu_sample_of_unknown_age_is_stale():
    assert found(replace(GOOD, imu_age=float('nan'))) == ['stale_imu']


# --- sensors that repeat themselves


def test_joint_states_that_never_change_are_found_after_the_stated_number_of_samples():
    names = Feed().see(replace(GOOD, base_ang_vel=None), times=MONITORS.frozen_samples + 1, noise=0.0)
    assert names == [None] * MONITORS.frozen_samples + ['frozen_joint_state']


def test_joint_states_that_change_before_the_stated_number_are_no_fault():
    feed = Feed()
    for _ in range(5):
        assert feed.see(GOOD, times=MONITORS.frozen_samples, noise=0.0) == [None] * MONITORS.frozen_samples
        assert feed.see(GOOD) == [None]


def test_joint_states_of_a_simulator_without_noise_may_repeat_while_the_imu_must_not():
    quiet = replace(ROBOT, monitors=MONITORS.model_copy(update={'frozen_joints': False}))
    frozen = Feed(quiet).see(GOOD, times=MONITORS.frozen_samples + 1, noise=0.0)
    assert frozen[-1] == 'frozen_imu'
    assert Feed(quiet).see(replace(GOOD, base_ang_vel=None), times=100, noise=0.0) == [None] * 100


def frozen_imu(times: int, age: float) -> list[str | None]:
    """Return what is found where the joints are alive and the IMU repeats itself; its age grows by `age` a sample."""
    feed, names = Feed(), []
    for k in range(times):
        names += feed.see(replace(with_joint('joint_pos', 0, 1e-6 * k), base_ang_vel=np.ones(3), imu_age=age * k), noise=0.0)
    return names


def test_imu_samples_that_never_change_are_found_after_the_stated_number_of_samples():
    assert frozen_imu(MONITORS.frozen_samples + 1, 0.0) == [None] * MONITORS.frozen_samples + ['frozen_imu']


def test_one_imu_sample_that_is_held_for_some_joint_states_is_not_frozen_but_gets_old():
    stale = round(ROBOT.sensors.imu_timeout_s / DT)
    assert frozen_imu(stale, DT) == [None] * stale


def test_a_robot_whose_sensors_have_no_noise_can_do_without():
    silent = replace(ROBOT, monitors=MONITORS.model_copy(update={'frozen_samples': None}))
    assert Feed(silent).see(GOOD, times=500, noise=0.0) == [None] * 500


# --- the base


def test_a_lean_is_a_fault_only_after_the_stated_time():
    tilt = ROBOT.safety.tilt
    names = found(replace(GOOD, base_quat_xyzw=lean(tilt.limit_rad + 0.01)), times=200)
    assert tilt.duration_s - 1e-9 <= seconds_until('tilt', names) <= tilt.duration_s + 2 * DT
    assert names[-1] == 'tilt'


def test_a_lean_below_the_limit_is_never_a_fault():
    assert set(found(replace(GOOD, base_quat_xyzw=lean(ROBOT.safety.tilt.limit_rad - 0.01)), times=1000)) == {None}


def test_a_lean_is_a_warning_from_its_threshold_on_and_as_long_as_it_lasts():
    feed, warn = Feed(), ROBOT.safety.tilt.warn_rad
    for angle, warned in ((warn - 0.01, False), (warn + 0.01, True), (warn - 0.01, False)):
        feed.see(replace(GOOD, base_quat_xyzw=lean(angle)))
        assert ('tilt' in feed.checks.warnings) is warned


def test_a_base_that_comes_up_again_starts_the_time_afresh():
    feed, leaning = Feed(), replace(GOOD, base_quat_xyzw=lean(1.5))
    for _ in range(5):
        assert set(feed.see(leaning, times=40)) == {None}
        assert not feed.checks.green
        assert feed.see(GOOD) == [None]
        assert feed.checks.green


@pytest.mark.parametrize('axis', [0, 1])
def test_upside_down_is_a_lean_whichever_way_it_turned(axis):
    quat = np.zeros(4)
    quat[axis] = 1.0
    assert found(replace(GOOD, base_quat_xyzw=quat), times=100)[-1] == 'tilt'


@given(yaw=st.floats(-np.pi, np.pi))
def test_heading_is_no_lean(yaw):
    quat = np.array([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])
    assert set(found(replace(GOOD, base_quat_xyzw=quat), times=100)) == {None}


@given(axis=st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(np.array).filter(lambda a: np.linalg.norm(a) > 0.1))
def test_a_base_that_turns_too_fast_about_any_axis_is_found_within_the_stated_time(axis):
    axis = axis / np.linalg.norm(axis)
    limit, lasting = MONITORS.angular_rate, MONITORS.angular_rate_s
    names = found(replace(GOOD, base_ang_vel=1.001 * limit * axis), times=100)
    assert lasting - 1e-9 <= seconds_until('angular_rate', names) <= lasting + 2 * DT
    assert set(found(replace(GOOD, base_ang_vel=0.999 * limit * axis), times=100)) == {None}


def test_a_short_turn_is_no_fault():
    feed, turning = Feed(), replace(GOOD, base_ang_vel=np.array([20.0, 0.0, 0.0]))
    for _ in range(5):
        assert set(feed.see(turning, times=40)) == {None}
        assert feed.see(GOOD) == [None]


def test_a_fixed_base_needs_no_imu():
    feed = Feed(replace(ROBOT, floating=False))
    state = replace(GOOD, base_quat_xyzw=lean(3.0), imu_age=100.0, base_ang_vel=None)
    assert set(feed.see(state, times=200)) == {None}


# --- the joints


def at_edge(joint: int, side: int, beyond: float) -> RobotState:
    """Return a state with one joint at the edge of its range, or beyond."""
    limit = ROBOT.limits.upper[joint] if side > 0 else ROBOT.limits.lower[joint]
    return with_joint('joint_pos', joint, limit + side * beyond)


@pytest.mark.parametrize('side', [-1, 1])
@pytest.mark.parametrize('joint', range(N))
def test_a_joint_outside_its_range_is_found_by_name_in_as_many_ticks_as_it_has_to_last(joint, side):
    feed, ticks = Feed(), MONITORS.persistence
    outside = at_edge(joint, side, MONITORS.position_tolerance_rad + 1e-6)
    assert feed.see(outside, times=ticks) == [None] * (ticks - 1) + ['joint_position']
    assert ROBOT.joints[joint] in feed.message
    assert set(found(at_edge(joint, side, MONITORS.position_tolerance_rad - 1e-6), times=50)) == {None}


@pytest.mark.parametrize('sign', [-1, 1])
@pytest.mark.parametrize('joint', range(N))
def test_a_joint_that_is_too_fast_is_found_by_name_in_as_many_ticks_as_it_has_to_last(joint, sign):
    feed, ticks, speed = Feed(), MONITORS.persistence, sign * MONITORS.velocity_factor * SPEED[joint]
    assert feed.see(with_joint('joint_vel', joint, 1.001 * speed), times=ticks) == [None] * (ticks - 1) + ['joint_velocity']
    assert ROBOT.joints[joint] in feed.message
    assert set(found(with_joint('joint_vel', joint, 0.999 * speed), times=40)) == {None}


@pytest.mark.parametrize(('field', 'value'), [('joint_pos', 100.0), ('joint_vel', 100.0)])
def test_an_outlier_shorter_than_it_would_have_to_last_is_no_fault_but_not_green(field, value):
    feed = Feed()
    feed.see(GOOD)
    for _ in range(10):
        assert set(feed.see(with_joint(field, 0, value), times=MONITORS.persistence - 1)) == {None}
        assert not feed.checks.green
        assert set(feed.see(GOOD, times=40)) == {None}
        assert feed.checks.green


@pytest.mark.parametrize('joint', range(N))
def test_an_encoder_that_jumps_is_held_and_found_when_it_stays_where_it_cannot_be(joint):
    feed, ticks, stand = Feed(), MONITORS.persistence, GOOD.joint_pos[joint]
    feed.see(GOOD)
    jumped = with_joint('joint_pos', joint, stand + 1.001 * JUMP[joint])
    for _ in range(ticks - 1):
        assert feed.see(jumped) == [None]
        assert abs(feed.last.joint_pos[joint] - stand) < 1e-6
    assert feed.see(jumped) == ['encoder_jump']
    assert ROBOT.joints[joint] in feed.message


@pytest.mark.parametrize('joint', range(N))
def test_a_joint_that_moves_as_fast_as_it_can_is_no_jump(joint):
    feed, stand = Feed(), GOOD.joint_pos[joint]
    feed.see(GOOD)
    assert feed.see(with_joint('joint_pos', joint, stand + 0.999 * JUMP[joint]), times=40) == [None] * 40
    assert abs(feed.last.joint_pos[joint] - stand) > 0.9 * JUMP[joint]


def test_after_a_lost_state_a_joint_may_have_moved_twice_as_far():
    moved = with_joint('joint_pos', 0, GOOD.joint_pos[0] + 1.9 * JUMP[0])
    for dt, held in ((DT, True), (2 * DT, False)):
        feed = Feed()
        feed.see(GOOD)
        feed.see(moved, dt=dt)
        assert bool(abs(feed.last.joint_pos[0] - GOOD.joint_pos[0]) < 1e-6) is held


def test_a_single_wrong_sample_is_never_answered():
    feed, rng = Feed(), np.random.default_rng(1)
    feed.see(GOOD)
    for _ in range(50):
        joint = rng.integers(N)
        assert feed.see(with_joint('joint_pos', joint, GOOD.joint_pos[joint] + rng.choice([-1, 1]) * 0.5)) == [None]
        assert np.abs(feed.last.joint_pos - GOOD.joint_pos).max() < 1e-6
        assert set(feed.see(GOOD, times=60)) == {None}


LATEST = MONITORS.velocity_mismatch_s + 2 * (BLOCK_S + DT)  # it is looked at in blocks, the first may begin late


@pytest.mark.parametrize('sign', [-1, 1])
@pytest.mark.parametrize('joint', range(N))
def test_a_velocity_that_is_not_what_the_position_does_is_found_within_the_stated_time(joint, sign):
    feed, wrong = Feed(), sign * MONITORS.velocity_mismatch * SPEED[joint]
    names = feed.see(with_joint('joint_vel', joint, 1.02 * wrong), times=100)
    assert MONITORS.velocity_mismatch_s <= seconds_until('velocity_mismatch', names) <= LATEST
    assert set(found(with_joint('joint_vel', joint, 0.98 * wrong), times=500)) == {None}


def swing(feed: Feed, scale: float, keep: np.ndarray, stamps: np.ndarray) -> list[str | None]:
    """Feed a swing about the stand at half the top speed whose velocity is scaled, with jittering stamps and lost states."""
    names, last = [], stamps[0] - DT
    for stamp, kept in zip(stamps, keep, strict=True):
        if kept:
            phase = 2 * np.pi * 3 * stamp
            amplitude = 0.5 * SPEED / (2 * np.pi * 3)
            q, v = GOOD.joint_pos + amplitude * np.sin(phase), scale * 0.5 * SPEED * np.cos(phase)
            names += feed.see(replace(GOOD, joint_pos=q, joint_vel=v), dt=stamp - last)
            last = stamp
    return [name for name in names if name not in ('joint_position', None)]


@pytest.mark.parametrize('lost', [0.0, 0.05])
def test_a_swing_is_no_mismatch_and_one_with_the_wrong_sign_is_whatever_stamps_jitter_and_states_are_lost(lost):
    rng = np.random.default_rng(2)
    stamps = 1.0 + DT * (np.arange(500) + rng.uniform(-0.3, 0.3, 500))
    keep = rng.uniform(size=500) >= lost
    assert swing(Feed(), 1.0, keep, stamps) == []
    assert 'velocity_mismatch' in swing(Feed(), -1.0, keep, stamps)


def test_a_mismatch_of_a_moment_is_no_fault():
    feed = Feed()
    for _ in range(5):
        assert set(feed.see(with_joint('joint_vel', 0, 0.5 * SPEED[0]), times=30)) == {None}
        assert set(feed.see(GOOD, times=30)) == {None}


# --- the whole


def test_reset_forgets_what_persisted():
    feed, outside = Feed(), with_joint('joint_pos', 0, 9.0)
    for _ in range(5):
        assert feed.see(outside, times=2) == [None, None]
        feed.checks.reset()


def test_a_copy_finds_what_the_original_finds():
    feed = Feed()
    feed.see(GOOD)
    twin = copy.deepcopy(feed)
    assert twin.see(with_joint('joint_vel', 0, np.nan)) == ['non_finite_sensor']
    assert twin.see(with_joint('joint_vel', 0, 100.0), times=3)[-1] == 'joint_velocity'


def test_the_table_of_faults_lists_every_fault_that_can_be_found():
    with open(checks.__file__, encoding='utf-8') as file:
        source = file.read()
    names = set(re.findall(r"(?:Fault|_fault)\(\s*'(\w+)'", source))
    cells = [line.split('|')[1] for line in checks.__doc__.splitlines() if line.startswith('| ')]
    assert {name.strip() for cell in cells for name in cell.split(',')} - {'fault'} == names


def test_a_joint_without_limits_does_not_blind_the_others():
    """A wheel turns for ever; what the other joints do wrong is found all the same."""
    lower, upper = ROBOT.limits.lower.copy(), ROBOT.limits.upper.copy()
    lower[0], upper[0] = -np.inf, np.inf
    own = StateChecks(replace(ROBOT, limits=replace(ROBOT.limits, lower=lower, upper=upper)))
    q = GOOD.joint_pos.copy()
    q[0] = 500.0
    assert own.check(replace(GOOD, joint_pos=q), 0.0)[1] is None
    q[2] = ROBOT.limits.upper[2] + 0.2
    faults = [own.check(replace(GOOD, stamp=GOOD.stamp + k * DT, joint_pos=q + 1e-9 * k), DT)[1] for k in range(1, 9)]
    assert 'joint_position' in [fault.name for fault in faults if fault is not None]
