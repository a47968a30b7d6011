# SPDX-License-Identifier: Apache-2.0
"""Promises of `SafetyFilter`: what comes out for which sensors, targets and contracts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safety_rig import DT, POLICY_EVERY, Rig, contract, go2, lean, rig_in

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.errors import DocumentError, JointError
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.modes import Event
from sim2real_ros.safety.reference import RAMP_S
from sim2real_ros.safety.response import EXPIRY_PERIODS, last_resort, last_resort_impedance
from sim2real_ros.signals import Impedance, JointTargets

ROBOT = go2()
BLEND_S = ROBOT.safety.blend_s
N = len(ROBOT.joints)
EFFORT = ROBOT.limits.effort
POWERED = [mode for mode in Mode if mode is not Mode.OFF]
ANY = arrays(float, N, elements=st.floats(allow_nan=False, allow_infinity=False))
BAD = [np.nan, np.inf, -np.inf]


def harmless(torque: np.ndarray) -> bool:
    """Whether a torque is finite and within effort."""
    return bool(np.isfinite(torque).all() and (np.abs(torque) <= EFFORT).all())


# --- whatever comes in


@pytest.mark.filterwarnings('ignore::RuntimeWarning')  # of numbers near 1e308
@given(mode=st.sampled_from(POWERED), q=ANY, v=ANY, target=ANY, quat=arrays(float, 4, elements=st.floats(-2, 2)))
def test_torque_is_finite_and_within_effort_for_any_finite_sensors_and_targets_in_every_mode(mode, q, v, target, quat):
    rig = rig_in(mode)
    rig.q, rig.v, rig.quat = q, v, quat
    for _ in range(4):
        rig.send(target)
        torque = rig.step()
        assert harmless(torque.torque)


@given(
    mode=st.sampled_from(POWERED),
    field=st.sampled_from(['q', 'v', 'quat']),
    index=st.integers(0, 3),
    value=st.sampled_from(BAD),
)
def test_a_sensor_that_is_not_finite_is_a_fault_in_the_same_tick_and_the_torque_finite(mode, field, index, value):
    rig = rig_in(mode)
    getattr(rig, field)[index] = value
    torque = rig.step()
    assert rig.safety.mode is Mode.FAULT
    assert harmless(torque.torque)
    assert mode is Mode.FAULT or rig.safety.fault.name == 'non_finite_sensor'


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
@pytest.mark.parametrize('value', BAD)
def test_targets_that_are_not_finite_are_a_fault_before_the_next_torque(active, field, value):
    rest = np.zeros(N)
    targets = JointTargets(active.stamp, active.contract.default_position, rest, rest)
    values = getattr(targets, field).copy()
    values[5] = value
    active.safety.set_targets(active.contract.id, replace(targets, **{field: values}))
    assert active.safety.fault.name == 'bad_target'
    torque = active.step()
    assert active.safety.mode is Mode.FAULT
    assert np.allclose(torque.torque, 0, atol=1e-6)  # damping of joints at rest


def test_targets_of_a_wrong_length_are_a_fault(active):
    active.send(np.zeros(N - 1))
    assert active.safety.fault.name == 'bad_target'


@pytest.mark.parametrize('mode', [Mode.DAMPING, Mode.POSE])
def test_bad_targets_of_a_policy_that_is_not_followed_change_nothing(mode):
    rig, twin = rig_in(mode), rig_in(mode)
    rig.send(np.full(N, np.nan), stamp=rig.stamp + 0.001)
    for _ in range(20):
        assert rig.step().torque.tobytes() == twin.step().torque.tobytes()
    assert rig.safety.mode is mode


@pytest.mark.filterwarnings('ignore::RuntimeWarning')
def test_a_torque_that_overflows_is_a_fault_and_no_torque(active):
    """Finite targets whose PD terms are infinite, also with opposite signs: that sum is NaN, which no clamp holds back."""
    huge = np.full(N, 1.7e308)
    active.safety.set_targets(active.contract.id, JointTargets(active.stamp, huge, np.zeros(N), np.zeros(N)))
    rig = Rig(own=contract(damping={'.*': 5.0})).bring_to(Mode.ACTIVE)
    for each, speed in ((active, 0 * huge), (rig, -huge)):
        each.safety.set_targets(each.contract.id, JointTargets(each.stamp, huge, speed, np.zeros(N)))
        assert (each.step().torque == 0).all()
        assert each.safety.fault.name == 'non_finite_torque'


# --- sensors that fail: each is a latched fault that damps


def break_joint_stream(rig: Rig) -> None:
    rig.k += 20


def break_imu(rig: Rig) -> None:
    rig.imu_age = 0.05


def break_clock(rig: Rig) -> None:
    rig.k -= round(0.21 / DT)


def break_balance(rig: Rig) -> None:
    rig.quat = lean(1.2)
    rig.run(60)


def break_position(rig: Rig) -> None:
    goal = rig.q.copy()
    goal[2] = ROBOT.limits.upper[2] + 0.1
    rig.v[2] = 10.0
    rig.move(goal, speed=10.0)


def break_velocity(rig: Rig) -> None:
    rig.v[2] = 1.3 * ROBOT.limits.velocity[2]
    rig.run(2)


def break_encoder(rig: Rig) -> None:
    rig.q = rig.q + 0.2
    rig.run(2)


def break_speedometer(rig: Rig) -> None:
    rig.v[2] = 0.5 * ROBOT.limits.velocity[2]
    rig.run(100)


def break_driver(rig: Rig) -> None:
    same = rig.state()
    for _ in range(40):
        rig.k += 1
        rig.safety.step(replace(same, stamp=rig.stamp))


def break_gyro(rig: Rig) -> None:
    for _ in range(60):
        rig.step(base_ang_vel=np.array([0.0, 9.0, 1e-3 * rig.k]))


def break_imu_driver(rig: Rig) -> None:
    for _ in range(30):
        rig.step(base_ang_vel=np.ones(3))


def break_order(rig: Rig) -> None:
    for _ in range(3):
        rig.step()
        rig.safety.step(rig.state())


def break_network(rig: Rig) -> None:
    for k in range(1200):
        rig.k += 1 + k % 2
        rig.target = None
        rig.safety.set_targets(
            rig.contract.id, JointTargets(rig.stamp - DT, *[rig.contract.default_position, 0 * rig.v, 0 * rig.v])
        )
        rig.safety.step(rig.state())


BREAKS = {
    'stale_joint_state': break_joint_stream,
    'stale_imu': break_imu,
    'clock_jump': break_clock,
    'tilt': break_balance,
    'joint_position': break_position,
    'joint_velocity': break_velocity,
    'encoder_jump': break_encoder,
    'velocity_mismatch': break_speedometer,
    'frozen_joint_state': break_driver,
    'frozen_imu': break_imu_driver,
    'angular_rate': break_gyro,
    'stamp_order': break_order,
    'dropped_states': break_network,
}


@pytest.mark.parametrize('mode', [Mode.DAMPING, Mode.POSE, Mode.ACTIVE])
@pytest.mark.parametrize('name', BREAKS)
def test_every_finding_latches_its_fault_and_damps(mode, name):
    rig = rig_in(mode)
    BREAKS[name](rig)
    rig.step()
    assert rig.safety.mode is Mode.FAULT
    assert rig.safety.fault.name == name
    rig.q, rig.quat, rig.imu_age = ROBOT.pose('stand').copy(), lean(0.0), 0.0
    rig.v = np.linspace(-2, 2, N)
    torque = rig.run(50)
    assert rig.safety.fault.name == name
    assert np.allclose(torque.torque, np.clip(-ROBOT.damping * rig.v, -EFFORT, EFFORT))


@pytest.mark.parametrize('name', BREAKS)
def test_nothing_is_found_and_nothing_commanded_while_off(name):
    rig = rig_in(Mode.OFF)
    rig.k += 100
    BREAKS[name](rig)
    assert rig.step() is None
    assert rig.safety.mode is Mode.OFF
    assert rig.safety.fault is None


@pytest.mark.parametrize('mode', POWERED)
def test_a_state_that_was_seen_before_is_not_answered_again(mode):
    rig = rig_in(mode)
    rig.step()
    assert rig.safety.step(rig.state()) is None
    assert rig.safety.mode is mode
    assert rig.step() is not None


def test_rest_is_no_torque_at_all_and_starts_the_rate_from_zero(active):
    active.target = active.contract.default_position + 0.3
    assert (np.abs(active.run(30).torque) > 1.4 * ROBOT.safety.torque_rate * DT).any()
    assert (active.safety.rest().torque == 0).all()
    assert (np.abs(active.step().torque) <= ROBOT.safety.torque_rate * DT + 1e-9).all()


def test_rest_does_not_rewrite_a_torque_that_was_handed_out(active):
    active.target = active.contract.default_position + 0.1
    sent = active.run(20)
    kept = sent.torque.copy()
    active.safety.rest()
    assert (sent.torque == kept).all()


def test_the_answer_carries_the_stamp_of_its_state(active):
    torque = active.step()
    assert torque.stamp == active.stamp


# --- what each mode sends


def test_damping_and_fault_send_damping_alone():
    for mode in (Mode.DAMPING, Mode.FAULT):
        rig = rig_in(mode)
        rig.move(ROBOT.pose('stand') + 0.05)
        rig.v = np.linspace(-2, 2, N)
        assert np.allclose(rig.run(40).torque, -ROBOT.damping * rig.v)


@pytest.mark.parametrize('seed', range(5))
def test_the_torque_of_a_fault_does_not_depend_on_targets(seed):
    rng = np.random.default_rng(seed)
    rig, twin = rig_in(Mode.ACTIVE), rig_in(Mode.ACTIVE)
    for each in (rig, twin):
        each.safety.request(Event.ESTOP)
        each.target = None
    for _ in range(100):
        rig.v = twin.v = rng.uniform(-5, 5, N)
        rig.send(rng.uniform(-3, 3, N))
        assert rig.step().torque.tobytes() == twin.step().torque.tobytes()
    assert rig.safety.mode is Mode.FAULT


def test_pose_starts_without_a_step_in_torque_and_ends_in_the_default_pose(damping):
    damping.move(ROBOT.pose('lying'))
    damping.v = np.full(N, 0.3)
    before = damping.run(500).torque
    damping.insist(Event.POSE)
    assert np.allclose(damping.step().torque, before, atol=0.02)
    damping.v[:] = 0
    damping.move(
        damping.contract.default_position + 0.01, speed=0.5
    )  # as fast as the move, which ends when joints do not follow
    assert np.allclose(damping.run(1300).torque, -0.01 * ROBOT.pose_move.stiffness, atol=1e-6)


def test_pose_from_active_starts_without_a_step_in_torque(active):
    active.target = active.contract.default_position + 0.15
    before = active.run(30).torque
    active.insist(Event.POSE)
    after = active.step().torque
    assert np.allclose(after, before, atol=0.05)
    assert np.abs(before).min() > 3


def test_activation_blends_continuously_from_the_pose_to_the_policy(pose):
    """The torque starts at the pose's, ends at the policy's, and no step is larger than the smoothstep's steepest one."""
    pose.target = pose.contract.default_position + 0.15
    pose.run(20)
    held = pose.step().torque
    pose.insist(Event.ACTIVATE)
    torques = np.array([pose.step().torque for _ in range(round(BLEND_S / DT) + 20)])
    followed = 0.15 * pose.contract.gains.stiffness
    assert np.allclose(torques[0], held, atol=1e-3)
    assert np.allclose(torques[-1], followed, atol=1e-6)
    steps = np.abs(np.diff(np.vstack((held, torques)), axis=0))
    assert steps.max() <= 1.5 * DT / BLEND_S * np.abs(followed - held).max() + 1e-6
    assert (np.diff(torques, axis=0) >= -1e-6).all()


def test_active_sends_the_torque_of_the_policys_gains(active):
    rng = np.random.default_rng(0)
    target = active.contract.default_position + rng.uniform(-0.1, 0.1, N)
    active.target = target
    active.q = active.q + rng.uniform(-0.05, 0.05, N)
    active.v = rng.uniform(-0.5, 0.5, N)
    rest = np.zeros(N)
    wanted = pd_torque(JointTargets(0.0, target, rest, rest), active.contract.gains, active.q, active.v)
    torque = active.run(30)
    assert np.allclose(torque.torque, wanted, atol=1e-6)
    assert not torque.limited.any()


def test_velocity_and_effort_targets_are_followed(active):
    active.target = None
    speed, effort = np.linspace(-1, 1, N), np.linspace(2, -2, N)
    active.safety.set_targets(active.contract.id, JointTargets(active.stamp, active.contract.default_position, speed, effort))
    wanted = active.contract.gains.damping * speed + effort
    assert np.allclose(active.run(10).torque, wanted, atol=1e-6)


# --- targets


def test_targets_that_answer_a_state_count_only_from_the_next_state_on(active):
    """The torque of state k is the same with and without targets that answer state k."""
    twin = rig_in(Mode.ACTIVE)
    assert twin.k == active.k
    active.target = twin.target = None
    active.k += 1
    twin.k += 1
    active.send(active.contract.default_position + 0.1)
    same = active.safety.step(active.state()).torque
    assert same.tobytes() == twin.safety.step(twin.state()).torque.tobytes()
    assert np.abs(active.step().torque - twin.step().torque).max() > 1


def test_targets_with_another_contract_id_are_ignored(active):
    twin = rig_in(Mode.ACTIVE)
    for _ in range(100):
        active.send(np.full(N, 1.0), contract_id='0123456789ab')
        assert active.step().torque.tobytes() == twin.step().torque.tobytes()


def test_bad_targets_with_another_contract_id_are_ignored(active):
    active.send(np.full(N, np.nan), contract_id='0123456789ab')
    active.step()
    assert active.safety.mode is Mode.ACTIVE


def test_targets_before_any_contract_are_ignored():
    rig = Rig(accept=False)
    rig.send(rig.contract.default_position)
    rig.bring_to(Mode.DAMPING)
    assert rig.safety.contract is None


def test_targets_older_than_the_newest_are_ignored(active):
    active.target = None
    newest = active.contract.default_position + 0.1
    active.send(newest, stamp=active.stamp)
    active.send(newest + 0.2, stamp=active.stamp - 0.001)
    active.send(newest - 0.2, stamp=active.stamp)
    assert np.allclose(active.run(5).torque, 0.1 * active.contract.gains.stiffness)


def test_targets_do_not_survive_a_clock_that_went_back():
    """After the simulator started afresh, targets of before must neither look new nor shut out those of now."""
    rig = rig_in(Mode.ACTIVE)
    rig.k = 0
    rig.step()
    assert rig.safety.fault.name == 'clock_jump'
    rig.target = None
    rig.run(500)
    rig.insist(Event.RESET)
    rig.insist(Event.POSE)
    rig.run(300)
    assert 'sends no targets' in rig.safety.request(Event.ACTIVATE)
    rig.target = rig.contract.default_position
    rig.run(110)
    rig.insist(Event.ACTIVATE)
    rig.run(100)
    assert rig.safety.mode is Mode.ACTIVE


def test_a_silent_policy_leads_to_damping_within_three_policy_periods(active):
    active.target = None
    last = active.stamp - active.stamp % (POLICY_EVERY * DT)
    while active.safety.mode is Mode.ACTIVE:
        active.step()
    assert active.stamp - last <= 3 * active.contract.period_s
    assert active.safety.mode is Mode.DAMPING
    assert 'policy_timeout' in active.safety.last_change


def test_a_policy_that_loses_one_answer_in_two_is_still_followed(active):
    for k in range(50):
        active.target = active.contract.default_position if k % 2 else None
        active.run(POLICY_EVERY)
        assert active.safety.mode is Mode.ACTIVE


def test_a_policy_that_speaks_again_after_a_timeout_is_not_followed_by_itself(active):
    active.target = None
    active.run(50)
    active.target = active.contract.default_position
    active.run(100)
    assert active.safety.mode is Mode.DAMPING


# --- contracts

KNEELESS = tuple(name for name in ROBOT.joints if 'calf' not in name)


def test_joints_that_the_policy_does_not_drive_are_held_at_the_stand_with_the_pose_gains():
    rig = Rig(own=contract(joints=KNEELESS[::-1])).bring_to(Mode.ACTIVE)
    rig.target = rig.contract.default_position + 0.05
    calves = np.array(['calf' in name for name in ROBOT.joints])
    rig.q = ROBOT.pose('stand') + 0.03
    torque = rig.run(30).torque
    assert np.allclose(torque[calves], -0.03 * ROBOT.pose_move.stiffness[calves], atol=1e-6)
    assert np.allclose(torque[~calves], 0.02 * 25.0, atol=1e-6)


def test_targets_go_to_the_joints_that_the_contract_names_whatever_its_order():
    order = np.random.default_rng(1).permutation(N)
    rig = Rig(own=contract(joints=tuple(ROBOT.joints[i] for i in order))).bring_to(Mode.ACTIVE)
    offset = np.linspace(-0.1, 0.1, N)
    rig.target = rig.contract.default_position + offset
    torque = rig.run(30).torque
    assert np.allclose(torque[order], 25.0 * offset, atol=1e-6)


def test_a_contract_with_unknown_joints_is_refused_with_all_of_them():
    safety = SafetyFilter(ROBOT)
    own = contract(joints=(*ROBOT.joints[:6], 'tail_joint', 'ear_joint'))
    with pytest.raises(JointError) as error:
        safety.accept(own)
    assert error.value.extra == ['tail_joint', 'ear_joint']
    assert 'tail_joint, ear_joint' in str(error.value)
    assert ROBOT.joints[0] in str(error.value)
    assert safety.contract is None


def test_a_contract_for_another_robot_with_poses_outside_is_refused_with_every_fault():
    safety = SafetyFilter(ROBOT)
    pose = {'.*_hip_joint': 1.2, '.*_thigh_joint': 0.8, '.*_calf_joint': -0.5}
    own = contract(default_position=pose)
    other = replace(own, file=own.file.model_copy(update={'robot': 'spot'}))
    with pytest.raises(DocumentError) as error:
        safety.accept(other)
    faults = error.value.faults
    assert len(faults) == 1 + 4 + 4
    assert any('"spot"' in fault and '"go2"' in fault for fault in faults)
    for name in ROBOT.joints:
        assert any(f'default_position.{name}:' in fault for fault in faults) == ('thigh' not in name)
    assert safety.contract is None


def test_a_contract_is_refused_while_another_policy_is_active(active):
    with pytest.raises(DocumentError, match='another policy is active'):
        active.safety.accept(contract(name='another'))
    active.run(30)
    assert active.safety.mode is Mode.ACTIVE
    assert active.safety.contract is active.contract


def test_the_same_contract_again_changes_nothing(active):
    twin = rig_in(Mode.ACTIVE)
    active.safety.accept(contract())
    for _ in range(30):
        assert active.step().torque.tobytes() == twin.step().torque.tobytes()


def test_a_refused_contract_leaves_the_accepted_one_in_force(pose):
    with pytest.raises(DocumentError):
        pose.safety.accept(contract(default_position={'.*': 2.0}))
    pose.run(20)
    pose.insist(Event.ACTIVATE)


def test_a_new_contract_in_pose_starts_a_new_move_and_needs_targets_of_its_own(pose):
    own = contract(name='another', default_position={'.*_hip_joint': 0.1, '.*_thigh_joint': 0.9, '.*_calf_joint': -1.6})
    before = pose.step().torque
    pose.safety.accept(own)
    assert np.allclose(pose.step().torque, before, atol=0.02)
    refusal = pose.safety.request(Event.ACTIVATE)
    assert 'sends no targets' in refusal
    assert 'not over' in refusal
    pose.run(300)
    wanted = ROBOT.pose_move.stiffness * (own.default_position - ROBOT.pose('stand'))
    assert np.allclose(pose.step().torque, wanted, atol=1e-6)


# --- the watchdog's last resort


@given(v=arrays(float, N, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_last_resort_damps_finite_joints_within_effort_and_leaves_the_others_alone(v):
    with np.errstate(all='ignore'):
        torque = last_resort(ROBOT, 1.0, v).torque
    finite = np.isfinite(v)
    assert harmless(torque)
    assert (torque[~finite] == 0).all()
    assert (torque[finite] * np.sign(v[finite]) <= 0).all()
    slow = finite & (np.abs(v) < 5)
    assert np.allclose(torque[slow], -ROBOT.damping[slow] * v[slow])


def test_last_resort_of_a_drive_is_damping_that_expires():
    command = last_resort_impedance(ROBOT, 1.0)
    assert is_damping(command.impedance)
    assert 0.01 <= command.expires_s <= 0.1


# --- leaving what the robot did


@pytest.mark.parametrize('event', [Event.DAMP, Event.ESTOP])
def test_entering_damping_lets_the_last_torque_die_away_while_the_damping_grows(active, event):
    active.target = active.contract.default_position + 0.15
    before = active.run(30).torque
    active.v = np.full(N, 0.5)
    before = active.step().torque
    active.insist(event)
    torques = np.array([active.step().torque for _ in range(round(RAMP_S / DT) + 5)])
    damped = -ROBOT.damping * active.v
    for k, torque in enumerate(torques):
        share = min(1.0, (k + 1) * DT / RAMP_S)
        assert np.allclose(torque, (1 - share) * before + share * damped, atol=1e-6)
    assert (active.step().limited == 0).all()


def test_after_numbers_that_are_not_finite_damping_starts_at_once(active):
    active.target = active.contract.default_position + 0.15
    assert np.abs(active.run(30).torque).max() > 3
    active.v = np.full(N, 0.5)
    damped = -ROBOT.damping * active.v
    v = active.v.copy()
    v[0] = np.nan
    assert np.allclose(active.step(joint_vel=v).torque[1:], damped[1:])
    assert np.allclose(active.step().torque, damped)


def test_a_hand_over_says_so_in_every_joint(pose):
    pose.insist(Event.ACTIVATE)
    for _ in range(round(BLEND_S / DT) - 1):
        assert (pose.step().limited & Limit.BLEND).all()
    pose.run(3)
    assert not (pose.step().limited & Limit.BLEND).any()


# --- commands to drives with a PD law of their own


def is_damping(impedance: Impedance) -> bool:
    """Whether an impedance damps and does nothing else."""
    t = impedance.targets
    still = not any(part.any() for part in (t.position, t.velocity, t.effort, impedance.gains.stiffness))
    return still and (impedance.gains.damping == ROBOT.damping).all()


@given(
    mode=st.sampled_from(POWERED),
    step=arrays(float, N, elements=st.floats(-0.04, 0.04)),
    v=arrays(float, N, elements=st.floats(-40, 40)),
    offset=arrays(float, N, elements=st.floats(-1, 1)),
    later=st.integers(0, 60),
    event=st.sampled_from(list(Event)),
)
def test_at_the_state_that_it_answers_a_drive_comes_to_the_safe_torque_in_every_mode(mode, step, v, offset, later, event):
    rig = rig_in(mode)
    rig.target = rig.contract.default_position + offset
    rig.run(later)
    rig.safety.request(event)
    rig.q, rig.v = rig.q + step, v
    for _ in range(3):
        state = rig.state(stamp=rig.stamp + DT)
        rig.k += 1
        safe = rig.safety.step(state)
        command = rig.safety.impedance(safe)
        asked = command.impedance
        torque = pd_torque(asked.targets, asked.gains, state.joint_pos, state.joint_vel)
        assert np.allclose(torque, safe.torque, atol=1e-9)
        assert command.stamp == safe.stamp == state.stamp
        assert command.expires_s >= EXPIRY_PERIODS * DT


@pytest.mark.parametrize('mode', [mode for mode in POWERED if mode is not Mode.WIGGLE])
def test_a_drive_damps_by_itself_where_no_torque_could_be_computed(mode):
    rig = rig_in(mode)
    q = rig.q.copy()
    q[3] = np.nan
    assert is_damping(rig.safety.impedance(rig.step(joint_pos=q)).impedance)
    rig.step()
    assert is_damping(rig.safety.impedance(rig.safety.rest()).impedance)


def test_gains_and_targets_of_a_drive_stay_as_they_were_asked_for(active):
    active.target = active.contract.default_position + 0.5  # more than the torque rate allows at once
    active.run(20)
    safe = active.step()
    asked = active.safety.impedance(safe).impedance
    assert (asked.gains.stiffness == active.contract.gains.stiffness).all()
    assert (asked.gains.damping == active.contract.gains.damping).all()
    assert np.allclose(asked.targets.position, active.target)
