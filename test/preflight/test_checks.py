# SPDX-License-Identifier: Apache-2.0
"""Promises of the checks: a healthy stack passes all, and each thing that is wrong is refused by its own sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from safety_rig import contract, go2, lean

from sim2real_ros.contract.contract import resolve
from sim2real_ros.preflight.checks import CHECKS, examine, may_arm
from sim2real_ros.preflight.finding import Level
from sim2real_ros.preflight.observed import Observed, Papers, Stream

ROBOT = go2()
N, K = len(ROBOT.joints), 200
STAMPS = 10.0 + 0.002 * np.arange(K)
UP = np.tile([0.0, 0.0, 9.81], (K, 1))


def stream(topic: str, *publishers: str, stamps: np.ndarray = STAMPS) -> Stream:
    """Return a stream that came in real time."""
    return Stream(topic, publishers, stamps, 500.0 + stamps - stamps[:1].sum())


def healthy(**changes: object) -> Observed:
    """Return what is seen of a healthy stack that damps a standing robot in simulation."""
    seen = Observed(
        robot=ROBOT, seconds=2.0, nodes=('/safety_node', '/watchdog_node', '/policy_node'), mode='damping', sim_time=True,
        read_only=False,
        contract=contract(), contract_problem='',
        joint_states=stream('/joint_states', '/joint_state_broadcaster'), joint_names=tuple(reversed(ROBOT.joints)),
        joint_pos=np.tile(ROBOT.pose('stand')[::-1], (K, 1)), joint_vel=np.zeros((K, N)),
        imu=stream('/imu/data', '/imu_sensor_broadcaster'), imu_quat_xyzw=np.tile([0.0, 0.0, 0.0, 1.0], (K, 1)),
        imu_ang_vel=np.zeros((K, 3)), imu_lin_acc=UP, imu_oriented=True, other_imus=(),
        clock=stream('/clock', '/ros_gz_bridge'), now=1e9,
        commands=stream('/effort_controller/commands', '/safety_node', '/watchdog_node'), command_ages=np.full(K, 0.002),
        rivals='', controllers_known=True, order='', passport=Papers(True, True, True, 'proven', {'command_delay_s': 0.012}),
    )  # fmt: skip
    return replace(seen, **changes)


SILENT = np.zeros(0)
NOBODY = {
    'joint_states': Stream('/joint_states'),
    'joint_names': (),
    'joint_pos': np.zeros((0, 0)),
    'joint_vel': np.zeros((0, 0)),
}
NAN_VELOCITY = np.zeros((K, N))
NAN_VELOCITY[:, 2] = np.nan
BENT = np.tile(ROBOT.pose('stand')[::-1], (K, 1))
BENT[:, 0] += 3.0
SLOW = 10.0 + 0.05 * np.arange(40)
OTHER = resolve(contract().file.model_copy(update={'robot': 'spot'}), 'other.yaml', None)
SYSTEM = {'sim_time': False, 'clock': Stream('/clock'), 'now': 10.5}


def states(*publishers: str, stamps: np.ndarray = STAMPS) -> dict[str, Stream]:
    return {'joint_states': stream('/joint_states', *publishers, stamps=stamps)}


def imu(*publishers: str, stamps: np.ndarray = STAMPS) -> dict[str, Stream]:
    return {'imu': stream('/imu', *publishers, stamps=stamps)}


def clock(*publishers: str, stamps: np.ndarray = STAMPS) -> dict[str, Stream]:
    return {'clock': stream('/clock', *publishers, stamps=stamps)}


def named(*joints: str) -> dict[str, object]:
    return {'joint_names': joints, 'joint_pos': np.zeros((K, len(joints))), 'joint_vel': np.zeros((K, len(joints)))}


def force(*acceleration: float) -> dict[str, np.ndarray]:
    return {'imu_lin_acc': np.tile(acceleration, (K, 1))}


NO_CONTRACT = {'contract': None, 'contract_problem': 'a fault'}
LEFT_OUT = named(*ROBOT.joints[1:])
TWICE = named(*ROBOT.joints, 'FL_hip_joint')
ODD = 10 + 0.0023 * np.arange(K)
STANDING = np.full(K, 7.5)
# check, what is seen, the sentence
WRONG = [
    ('nodes', {'nodes': ('/policy_node',)}, 'safety_node does not run'),
    ('nodes', {'nodes': ('/safety_node',)}, 'watchdog_node does not run'),
    ('policy', {'contract': OTHER}, 'the policy was made for "spot", this robot is "go2"'),
    ('policy', NO_CONTRACT, 'cannot be used: a fault'),
    ('joint_states', NOBODY, 'nobody publishes /joint_states'),
    ('joint_states', NOBODY | states('/a', stamps=SILENT), '/a publishes /joint_states, but nothing came'),
    ('joint_states', states('/a', '/b'), '/a, /b all publish /joint_states'),
    ('joints', LEFT_OUT, f'lacks {ROBOT.joints[0]}'),
    ('joints', TWICE, 'names FL_hip_joint more than once'),
    ('interfaces', {'joint_vel': NAN_VELOCITY}, f'{ROBOT.joints[-3]}/velocity is not finite'),
    ('joint range', {'joint_pos': BENT}, f'{ROBOT.joints[-1]} at 1.50 rad, range'),
    ('joint rate', states('/a', stamps=STAMPS[::2]), '250 Hz; sensors.rate_hz'),
    ('imu', imu(stamps=SILENT) | {'other_imus': ('/other',)}, 'nobody publishes /imu'),
    ('imu', imu(stamps=SILENT) | {'other_imus': ('/other',)}, '/other carries an Imu: remap imu/data to it'),
    ('imu', imu('/a', stamps=SILENT), '/a publishes /imu, but nothing came'),
    ('imu', {'imu_oriented': False}, 'carries no orientation'),
    ('imu', imu('/a', stamps=STAMPS - 0.1), '100 ms behind the joint states'),
    ('imu', imu('/a', stamps=STAMPS + 0.1), '/imu is 100 ms ahead of the joint states'),
    ('imu', imu('/a', stamps=SLOW - 10), 'ms behind the joint states, allowed 100'),
    ('gravity', force(0, 0, -9.81), 'gravity has the wrong sign'),
    ('gravity', force(0, 0, 1), 'it is in g'),
    ('gravity', force(0, 0, 0.1), 'gravity was taken out'),
    ('gravity', force(0, 4.703, 8.609), 'disagree by 0.50 rad about where up is'),
    ('gravity', {'imu_quat_xyzw': np.zeros((K, 4))}, 'no rotation'),
    ('clock source', clock(), 'nobody publishes /clock'),
    ('clock source', clock('/a', '/b'), '/a, /b all publish /clock'),
    ('clock source', {'sim_time': False}, 'runs with sim_time:=false'),
    ('clock source', SYSTEM | {'now': 20.0}, '9.60 s behind the system time'),
    ('clock source', clock('/a', stamps=STAMPS + 5), '5.00 s behind /clock'),
    ('time goes on', clock('/a', stamps=STANDING), '/clock stands still at 7.500 s: the simulation is paused'),
    ('time goes on', states('/a', stamps=STANDING), '/joint_states stands still'),
    ('clock rate', clock('/a', stamps=SLOW), '/clock ticks every 50 ms, the policy every 20 ms'),
    ('clock rate', states('/a', stamps=SLOW), '/joint_states ticks every 50 ms'),
    ('rivals', {'rivals': '/teleop publishes as well'}, '/teleop publishes as well'),
    ('controller order', {'order': 'takes torque 1 for another'}, 'takes torque 1 for another'),
    ('passport', {'passport': Papers(True, True, False, 'urdf: changed', {})}, 'will not run this policy: urdf: changed'),
    ('delay tolerance', {'command_ages': np.full(K, 0.0155)}, 'commands are 15.5 ms old, the policy bears 12.0 ms: 3.5 ms'),
]


def test_a_healthy_stack_passes_every_check():
    findings = examine(healthy())
    assert [finding.check for finding in findings] == list(CHECKS)
    assert {finding.text for finding in findings if finding.level is not Level.OK} == set()
    assert may_arm(findings)


def test_a_healthy_robot_on_system_time_passes_every_check():
    assert {f.text for f in examine(healthy(**SYSTEM)) if f.level is not Level.OK} == set()


@pytest.mark.parametrize(('check', 'changes', 'sentence'), WRONG)
def test_what_is_wrong_is_refused_by_its_own_check_with_what_to_do(check, changes, sentence):
    findings = examine(healthy(**changes))
    refused = {finding.check: finding.text for finding in findings if finding.level is Level.REFUSED}
    assert check in refused, findings
    assert sentence in refused[check]
    assert not may_arm(findings)


@pytest.mark.parametrize(
    ('check', 'changes', 'sentence'),
    [
        ('nodes', {'nodes': ('/safety_node', '/watchdog_node')}, 'the robot can stand up, not walk'),
        ('nodes', {'nodes': ('/safety_node',), 'read_only': True}, 'read-only: it commands nothing'),
        ('policy', {'contract': None}, 'is policy_node configured?'),
        ('gravity', {'imu_quat_xyzw': np.tile(lean(0.4), (K, 1))} | force(0, 3.82, 9.035), 'leans by 0.40'),
        ('rivals', {'controllers_known': False}, 'nobody told'),
        ('controller order', {'order': None}, 'make sure that command_joints is its order'),
        ('command age', {'command_ages': np.full(K, 0.009)}, '9.0 ms old, the robot file reckons with 4 ms'),
        ('passport', {'passport': None}, 'does not tell whether'),
        ('passport', {'passport': Papers(True, False, False, 'none', {})}, 'require_passport is false'),
        (
            'delay tolerance',
            {'command_ages': np.full(K, 0.02), 'passport': Papers(False, False, True, '', {'command_delay_s': 0.01})},
            '10.0 ms too old',
        ),
        ('joint rate', states('/a', stamps=ODD) | imu('/a', stamps=ODD), '435 Hz'),
    ],
)  # fmt: skip
def test_what_is_odd_is_a_warning_and_leaves_the_choice_to_the_operator(check, changes, sentence):
    findings = examine(healthy(**changes))
    (found,) = (finding for finding in findings if finding.check == check)
    assert found.level is Level.WARNING, found
    assert sentence in found.text
    assert may_arm(findings)


def test_in_simulation_no_passport_is_asked_for_and_without_a_figure_no_delay_is_judged():
    findings = examine(healthy(passport=Papers(False, False, False, 'none', {})))
    assert {f.check for f in findings if f.level is Level.SKIPPED} == {'passport', 'delay tolerance'}
    assert may_arm(findings)


def test_papers_are_read_as_policy_node_writes_them_and_nothing_else_is():
    told = {
        'contract': 'x',
        'backend': 'hardware',
        'required': True,
        'granted': False,
        'text': 'none',
        'tolerances': {'a_s': 1},
    }
    assert Papers.of(json.dumps(told)) == Papers(True, True, False, 'none', {'a_s': 1.0})
    for other in (
        '',
        'null',
        '[]',
        '{}',
        json.dumps(told | {'tolerances': [1]}),
        json.dumps(told | {'tolerances': {'a': 'b'}}),
    ):
        assert Papers.of(other) is None


def test_a_fixed_base_needs_no_imu():
    arm = replace(ROBOT, floating=False)
    findings = examine(healthy(robot=arm, imu=Stream('/imu/data'), imu_quat_xyzw=np.zeros((0, 4))))
    assert {f.level for f in findings if f.check in ('imu', 'gravity')} == {Level.SKIPPED}
    assert may_arm(findings)


def test_every_sentence_ends_without_a_traceback_when_nothing_at_all_was_seen():
    empty = healthy(
        **NOBODY, nodes=(), mode='', sim_time=None, contract=None, imu=Stream('/imu/data'), imu_quat_xyzw=np.zeros((0, 4)),
        imu_ang_vel=np.zeros((0, 3)), imu_lin_acc=np.zeros((0, 3)), clock=Stream('/clock'), commands=Stream('/c'),
        command_ages=SILENT, controllers_known=False, order=None, passport=None,
    )  # fmt: skip
    findings = examine(empty)
    assert len(findings) == len(CHECKS)
    assert all(finding.text for finding in findings)
    assert not may_arm(findings)
