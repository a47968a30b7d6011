# SPDX-License-Identifier: Apache-2.0
"""The pre-flight against the fake ros2_control: what is wrong is refused before anything is armed, by the right sentence."""

import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('mujoco')

from fake_stack import fake_stack  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from sim2real_ros import bringup  # noqa: E402
from sim2real_ros.preflight.checks import examine, may_arm  # noqa: E402
from sim2real_ros.preflight.finding import Level  # noqa: E402
from sim2real_ros.preflight.wiring import wiring_findings  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.ros import preflight as preflight_look  # noqa: E402
from sim2real_ros.ros.preflight import Look  # noqa: E402
from sim2real_ros.ros.wiggling import wiggle  # noqa: E402
from sim2real_ros.safety.wiggle import SHARE  # noqa: E402

ROBOT = load_robot('go2')
REVERSED = list(reversed(ROBOT.joints))


def stand_in(node, wait):
    """Ask the fake for its controllers; the real one answers with controller_manager_msgs, which is in no wheel."""
    client = node.create_client(Trigger, 'controller_manager/controllers_as_json')
    assert wait(client.service_is_ready, 10)
    future = client.call_async(Trigger.Request())
    assert wait(future.done, 10)
    return [SimpleNamespace(**entry) for entry in json.loads(future.result().message)]


def look():
    """Return what is refused, by check."""
    with Look('', stand_in) as looking:
        findings = examine(looking.watch(ROBOT, 1.0))
    print('\n'.join(f'{f.check}: {f.level.value}: {f.text}' for f in findings))
    refused = {finding.check: finding.text for finding in findings if finding.level is Level.REFUSED}
    assert may_arm(findings) is not bool(refused)
    return refused


def preflight(*arguments):
    """Run the tool; returns its exit code and its findings."""
    line = [sys.executable, '-m', 'sim2real_ros.tools.cli', 'preflight', '--json', *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=200)
    assert 'Traceback' not in done.stderr, done.stderr
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_wrong_order_second_controller_silent_imu_slow_clock_and_pause_are_refused(tmp_path):
    with fake_stack(tmp_path, joints=REVERSED, rival=True, imu_silent=True, clock_period_s=0.05) as stack:
        stack.operator.wait(lambda: stack.operator.time > 0.5, 60, 'no clock')
        refused = look()
        assert set(refused) == {'controller order', 'rivals', 'imu', 'clock rate'}
        assert 'effort_controller takes torque 1 for RR_calf_joint, it is sent for FL_hip_joint' in refused['controller order']
        assert 'trajectory_controller' in refused['rivals']
        assert '/imu_sensor_broadcaster publishes /imu_sensor_broadcaster/imu, but nothing came' in refused['imu']
        assert '/clock ticks every 50 ms, the policy every 20 ms' in refused['clock rate']
        stack.start(bringup.Process('preflight_node', {'robot': 'go2', 'seconds': 1.0}))
        told = stack.operator.call('preflight_node/preflight', 30)
        assert f'refused: imu: {refused["imu"]}' in told.splitlines()
        stack.manage('pause')
        refused = look()
        assert 'the simulation is paused, let it go on' in refused['time goes on']
        assert 'the simulation is paused' in stack.operator.request('damp')
        assert stack.operator.mode == 'off'
    assert not stack.trace['torque'].any()


def hanging(tmp_path, **wiring):
    """Return a stack of a robot that hangs, with cables that someone got wrong."""
    return fake_stack(tmp_path, hangs=True, **wiring)


def slacken(stack):
    """Let the legs hang: no torque, but commands that flow, before the controller is activated."""
    stack.operator.insist('wiggle', 60)
    stack.spin(0.1)
    stack.manage('activate')
    stack.spin(3.0)


def test_a_healthy_stack_passes_and_two_swapped_joints_are_found(tmp_path):
    pair = ('FL_hip_joint', 'FL_thigh_joint')
    with hanging(tmp_path, swapped=list(pair)) as stack:
        stack.operator.wait(lambda: stack.operator.time > 0.5, 60, 'no clock')
        assert look() == {}
        assert 'no joint' in stack.operator.set_parameter('safety_node', 'wiggle_joint', 'tail')
        slacken(stack)
        findings = wiring_findings(pair, wiggle(stack.operator, pair))
        assert [finding.text.split(':')[0] for finding in findings] == [
            'the torque for FL_hip_joint moves FL_thigh_joint',
            'the torque for FL_thigh_joint moves FL_hip_joint',
        ]
        assert stack.operator.mode == 'wiggle', 'slack still'
    used = stack.trace['torque'].any(axis=0)
    assert used.sum() == 2
    assert np.abs(stack.trace['torque']).max() <= SHARE * ROBOT.limits.effort.max()


@pytest.mark.slow
def test_the_tool_finds_two_swapped_joints_and_a_reversed_one_and_names_nothing_else(tmp_path):
    swapped, flipped = ['FL_hip_joint', 'RR_calf_joint'], 'FR_thigh_joint'
    with hanging(tmp_path, swapped=swapped, flipped=flipped) as stack:
        stack.operator.wait(lambda: stack.operator.time > 0.5, 60, 'no clock')
        code, told = preflight()
        assert (code, told['may_arm']) == (0, True), told
        slacken(stack)
        code, told = preflight('--wiggle', '--yes')
        assert code == 1
        wiring = [finding['text'].split(':')[0] for finding in told['findings'] if finding['check'] == 'wiring']
        a, b = swapped
        assert sorted(wiring) == sorted([
            f'the torque for {a} moves {b}', f'the torque for {b} moves {a}',
            f'the torque for {flipped} moves {flipped} the wrong way',
        ])  # fmt: skip


def test_an_interrupt_while_the_controllers_are_asked_leaves_no_thread_behind(monkeypatch):
    monkeypatch.setattr(preflight_look, 'DISCOVERY_S', 0.0)
    during = []

    def interrupted(*_):
        during.extend(thread.name for thread in threading.enumerate())
        raise KeyboardInterrupt

    with Look('', interrupted) as looking, pytest.raises(KeyboardInterrupt):
        looking.watch(ROBOT, 0.5)
    assert 'preflight' not in during, 'what comes while it asks is not collected'
    assert 'preflight' not in [thread.name for thread in threading.enumerate()]


def test_without_a_stack_it_is_refused_for_what_is_not_there():
    code, told = preflight('--robot', 'go2', '--seconds', '0.5')
    refused = {finding['check'] for finding in told['findings'] if finding['level'] == 'refused'}
    assert code == 1
    assert {'nodes', 'joint_states', 'imu'} <= refused
