# SPDX-License-Identifier: Apache-2.0
"""Promises of the mode `wiggle`: little torque, one joint, no feedback whatever happens, and the wiring is found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from safety_rig import DT, Rig, go2, go2_certificate, lean, rig_in

from sim2real_ros.preflight.finding import Level
from sim2real_ros.preflight.wiring import wiring_findings
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.modes import Event
from sim2real_ros.safety.wiggle import RISE_S, SETTLE_S, SHARE

ROBOT = go2()
N = len(ROBOT.joints)


def wiggling(mode: Mode = Mode.OFF) -> Rig:
    """Return a rig whose third joint has just begun its turn."""
    rig = rig_in(mode)
    rig.run(500)
    rig.safety.wiggle_joint = ROBOT.joints[2]
    rig.insist(Event.WIGGLE)
    return rig


@pytest.mark.parametrize('mode', [Mode.OFF, Mode.DAMPING])
def test_one_joint_alone_gets_a_small_torque_one_way_and_then_the_other(mode):
    rig = wiggling(mode)
    torques = np.array([rig.step().torque for _ in range(round(2.2 * (RISE_S + SETTLE_S) / DT))])
    assert not np.delete(torques, 2, axis=1).any()
    most = SHARE * ROBOT.limits.effort[2]
    assert torques[:, 2].max() == pytest.approx(most, rel=0.01)
    assert torques[:, 2].min() == pytest.approx(-most, rel=0.01)
    assert rig.safety.mode is Mode.WIGGLE
    assert rig.safety.wiggle.done
    assert not torques[-100:].any(), 'slack at the end'


def test_the_torque_ends_when_any_joint_has_moved_a_little():
    rig = wiggling()
    rig.run(100)
    rig.q[7] += 0.06
    rig.run(2)
    assert not rig.run(1).torque.any()


def test_nothing_is_fed_back_whatever_the_joints_do_since_a_wrong_sign_would_drive_them():
    rig = wiggling()
    rig.run(50)
    before = rig.run(1).torque
    rig.v[:] = 3.0
    rig.q -= 0.02
    assert np.abs(rig.step().torque - before).max() < 0.1


@pytest.mark.parametrize('trouble', [
    lambda rig: rig.insist(Event.ESTOP),
    lambda rig: rig.safety.trip(Fault('driver', 'said so')),
    lambda rig: rig.step(joint_vel=np.full(N, np.nan)),
])  # fmt: skip
def test_a_fault_leaves_the_joints_slack_and_does_not_damp(trouble):
    rig = wiggling()
    rig.run(100)
    trouble(rig)
    assert rig.safety.mode is Mode.FAULT
    rig.v[:] = 2.0
    assert not rig.step().torque.any()
    assert not rig.step(joint_vel=np.full(N, np.nan)).torque.any()


def test_after_a_reset_the_fault_of_a_wiggle_damps_again():
    rig = wiggling()
    rig.insist(Event.ESTOP)
    rig.run(510)
    rig.insist(Event.RESET)
    rig.v[:] = 0.5
    assert rig.run(50).torque == pytest.approx(-0.5 * ROBOT.damping, rel=0.05)


def test_a_joint_has_its_turn_when_the_one_before_is_over():
    rig = wiggling()
    rig.run(10)
    assert f'{ROBOT.joints[2]} is being wiggled' in rig.safety.request(Event.WIGGLE)
    rig.run(round(2.2 * (RISE_S + SETTLE_S) / DT))
    rig.insist(Event.WIGGLE)


def test_a_robot_that_moves_is_not_wiggled():
    rig = rig_in(Mode.OFF)
    rig.v[5] = 1.1
    rig.run(2)
    assert f'{ROBOT.joints[5]} moves at 1.10 rad/s' in rig.safety.request(Event.WIGGLE)


def test_a_fallen_robot_ends_its_wiggle():
    rig = wiggling()
    rig.quat = lean(1.2)
    rig.run(60)
    assert rig.safety.fault.name == 'tilt'


# --- with physics


def respond(**wiring) -> np.ndarray:
    """Wiggle every joint of a hanging robot; returns the responses (n, n)."""
    from fake_controllers import Plant

    plant = Plant(ROBOT, 'stand', hangs=True, **wiring)
    safety = SafetyFilter(ROBOT, certificate=go2_certificate())
    columns = []

    def run(seconds: float) -> None:
        for _ in range(round(seconds / DT)):
            safe = safety.step(plant.state())
            plant.step(np.zeros(N) if safe is None else safe.torque, rigid=False)

    run(3.0)  # until the legs hang
    for joint in ROBOT.joints:
        safety.wiggle_joint = joint
        refusal = safety.request(Event.WIGGLE)
        assert refusal is None, refusal
        while not safety.wiggle.done:
            run(0.02)
            assert safety.mode is Mode.WIGGLE, safety.fault
        columns.append(safety.wiggle.response)
    return np.array(columns).T


def test_a_hanging_robot_that_is_wired_rightly_passes():
    pytest.importorskip('mujoco')
    response = respond()
    (finding,) = wiring_findings(ROBOT.joints, response)
    assert finding.level is Level.OK, finding
    assert np.abs(response).max() < 0.4, 'no joint is thrown about'


PAIRS = [('FL_hip_joint', 'FR_hip_joint'), ('FL_thigh_joint', 'FL_calf_joint'), ('RR_hip_joint', 'RR_thigh_joint')]


@pytest.mark.parametrize('swapped', PAIRS)
def test_two_swapped_joints_and_a_reversed_one_are_found_and_named(swapped):
    pytest.importorskip('mujoco')
    findings = wiring_findings(ROBOT.joints, respond(swapped=swapped, flipped='RL_calf_joint'))
    said = {finding.text.split(':')[0] for finding in findings}
    a, b = swapped
    assert said == {
        f'the torque for {a} moves {b}',
        f'the torque for {b} moves {a}',
        'the torque for RL_calf_joint moves RL_calf_joint the wrong way',
    }


@pytest.mark.slow
def test_every_pair_of_joints_is_found_when_it_is_swapped():
    """From the mobility of the right wiring: swapped cables exchange its columns."""
    pytest.importorskip('mujoco')
    right = respond()
    for i, j in itertools.combinations(range(N), 2):
        order = np.arange(N)
        order[[i, j]] = j, i
        named = [f.text for f in wiring_findings(ROBOT.joints, right[:, order])]
        assert [text.split(':')[0] for text in named] == [
            f'the torque for {ROBOT.joints[a]} moves {ROBOT.joints[b]}' for a, b in ((i, j), (j, i))
        ]
