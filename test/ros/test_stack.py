# SPDX-License-Identifier: Apache-2.0
"""The whole stack, used as an operator uses it."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ros_traces import leans, read_trace

from sim2real_ros import bringup
from sim2real_ros.paths import find_policy
from sim2real_ros.tools.processes import command_line

pytest.importorskip('mujoco')
THIRD_PARTY = Path(__file__).resolve().parents[3] / 'shared' / 'third_party'
ROBOT_LAB = """
schema: 1
name: robot_lab
robot: go2
model: {{file: {file}}}
rate_hz: 50
joints: [FR_hip_joint, FR_thigh_joint, FR_calf_joint, FL_hip_joint, FL_thigh_joint, FL_calf_joint,
         RR_hip_joint, RR_thigh_joint, RR_calf_joint, RL_hip_joint, RL_thigh_joint, RL_calf_joint]
default_position: {{".*_hip_joint": 0.0, ".*_thigh_joint": 0.8, ".*_calf_joint": -1.5}}
stiffness: {{".*": 20.0}}
damping: {{".*": 0.5}}
inputs:
  obs:
    stack: {{lags: [0], layout: term_major, fill: first}}
    terms: [{{term: base_ang_vel, scale: 0.25}}, {{term: projected_gravity}}, {{term: velocity_command}},
            {{term: joint_pos_rel}}, {{term: joint_vel, scale: 0.05}}, {{term: last_action, value: clipped}}]
outputs:
  actions:
    type: joint_position
    scale: {{".*_hip_joint": 0.125, ".*_(thigh|calf)_joint": 0.25}}
    offset: default
    clip: [-100, 100]
commands: {{velocity: {{x: [-1, 1], y: [-1, 1], yaw: [-1, 1], timeout_s: 0.5}}}}
provenance: {{trainer: robot_lab}}
"""


def test_services_are_refused_with_the_reason_and_the_mode_stays(start):
    """A person who asks for the wrong thing is told why and what is possible."""
    with start() as running:
        operator = running.operator
        operator.wait(lambda: operator.time > 0, 60, 'no clock')
        assert 'possible: damp' in operator.request('activate')
        operator.insist('damp', 30)
        assert 'not possible in the mode damping' in operator.request('reset')
        operator.insist('pose', 10)
        assert 'the move into the default pose is not over' in operator.request('activate')
        assert operator.mode == 'pose'


def test_estop_latches_and_reset_leads_to_damping(start):
    """After an emergency stop only `reset` leads on."""
    with start() as running:
        operator = running.operator
        operator.insist('damp', 60)
        assert operator.request('estop') is None
        operator.wait(lambda: operator.mode == 'fault', 10, 'no fault')
        assert 'not possible in the mode fault' in operator.request('pose')
        operator.insist('reset', 30)  # once nothing has been wrong for a second
        operator.wait(lambda: operator.mode == 'damping', 10, 'no damping')


def test_a_pushed_robot_stays_on_its_feet_and_a_reset_one_lies(start):
    """The simulator's services act."""
    with start() as running:
        running.operator.command = np.array([0.4, 0.0, 0.0])
        running.stand_up()
        running.spin(1.0)
        assert running.operator.call('mujoco_node/push') is None
        running.spin(2.0)
        assert running.operator.mode == 'active'
        assert running.operator.request('damp') is None
        assert running.operator.call('mujoco_node/reset') is None
        running.spin(0.2)
    trace = read_trace(running.trace_file)
    assert leans(trace).max() < 0.6
    assert trace['qpos'][-1, 2] < 0.15


def test_two_robots_in_two_namespaces_walk_side_by_side(start):
    """Neither hears the other."""
    with start(namespace='one') as one, start(namespace='two') as two:
        one.operator.command = np.array([0.5, 0.0, 0.0])
        two.operator.command = np.array([0.0, 0.0, 0.0])
        one.stand_up()
        two.stand_up()
        one.spin(3.0)
        two.spin(1.0)
        assert (one.operator.mode, two.operator.mode) == ('active', 'active')
    walked = [read_trace(r.trace_file)['qpos'][-1, 0] - read_trace(r.trace_file)['qpos'][0, 0] for r in (one, two)]
    assert walked[0] > 1.0
    assert abs(walked[1]) < 0.3


def test_every_node_ends_on_sigint_with_code_0(start):
    """Also from the middle of a walk, and the driver is left in damping."""
    with start() as running:
        running.stand_up()
        children = dict(running.stack.children)
        for name in ('safety_node', 'policy_node'):
            children[name].send_signal(signal.SIGINT)
            assert children[name].wait(20) == 0, name
            running.stack.children.pop(name)
        for name in ('watchdog_node', 'mujoco_node'):
            running.spin(0.2)
            children[name].send_signal(signal.SIGINT)
            assert children[name].wait(20) == 0, name
            running.stack.children.pop(name)
    trace = read_trace(running.trace_file)
    last_of_safety = np.flatnonzero(trace['source'] == 1)[-1]
    assert trace['mode'][last_of_safety] == 'damping'
    assert not trace['torque'][-1].any(), 'a held torque would act for ever'


@pytest.mark.skipif(not THIRD_PARTY.is_dir(), reason='the third-party policies are not beside the repository')
def test_a_foreign_policy_walks_through_the_nodes(start, tmp_path):
    """rl_sar's robot_lab policy, described by hand, walks our Go2 at 0.5 m/s for 10 s."""
    contract = tmp_path / 'robot_lab.yaml'
    contract.write_text(ROBOT_LAB.format(file=THIRD_PARTY / 'rl_sar_go2_robot_lab' / 'robot_lab' / 'policy.onnx'))
    with start(policy=str(contract)) as running:
        running.operator.command = np.array([0.5, 0.0, 0.0])
        running.stand_up()
        running.spin(10.0)
        assert running.operator.mode == 'active'
    trace = read_trace(running.trace_file)
    active = trace['mode'] == 'active'
    path = np.linalg.norm(np.diff(trace['qpos'][active][::10, :2], axis=0), axis=1).sum()
    duration = active.sum() * 0.002
    x, y = trace['qpos'][active][-1, :2] - trace['qpos'][active][0, :2]
    print(f'{path / duration:.2f} m/s along its path, {x:.1f} m forward and {y:.1f} m left in {duration:.1f} s')
    assert leans(trace).max() < 0.6
    assert 0.4 <= path / duration <= 0.55


def node(name, **parameters):
    """Return the command line of a node of the shipped bring-up with other parameters."""
    options = bringup.Options(log_level='warn')
    process = next(p for p in bringup.simulation(options) if p.executable == name)
    return command_line(bringup.Process(name, process.parameters | parameters), options)


@pytest.mark.parametrize(
    ('process', 'parameters', 'expected'),
    [
        ('policy_node', {'policy': 'no_such_policy'}, 'neither a path nor one of the shipped ones: go2_velocity'),
        ('policy_node', {'robot': 'no_such_robot'}, 'robot "no_such_robot"'),
        ('safety_node', {'robot': 'no_such_robot'}, 'robot "no_such_robot"'),
        ('mujoco_node', {'model': 'missing.xml'}, 'missing.xml does not exist'),
        ('mujoco_node', {'start_pose': 'headstand'}, 'poses are stand, lying'),
        ('mujoco_node', {'trace_file': '/proc/none/x'}, 'mujoco_node: trace_file: cannot write the file /proc/none/x: No such'),
        ('mujoco_node', {'push_velocity': [1.0]}, 'push_velocity: three numbers of at most 5 m/s are possible, [1.0] given'),
        ('watchdog_node', {'robot': 5}, 'watchdog_node: parameter robot: 5 given, text is expected'),
        ('watchdog_node', {'': 5}, 'watchdog_node: ROS does not understand its arguments: '),
    ],
)
def test_a_wrong_parameter_ends_the_node_with_one_message(process, parameters, expected):
    """Non-zero exit, the reason, no traceback."""
    done = subprocess.run(node(process, **parameters), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    ours = [line for line in done.stderr.splitlines() if '[rcl]' not in line]
    assert len(ours) == 1
    assert expected in ours[0]


def missing(folder):
    (folder / 'policy.onnx').unlink()


def truncated(folder):
    data = (folder / 'policy.onnx').read_bytes()
    (folder / 'policy.onnx').write_bytes(data[: len(data) // 2])


def git_lfs_pointer(folder):
    (folder / 'policy.onnx').write_text('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')


def other_width(folder):
    edit(folder, 'term: phase', 'term: joint_vel')


def other_joints(folder):
    edit(folder, 'FL_', 'LF_')


def nan_weights(folder):
    onnx = pytest.importorskip('onnx')
    model = onnx.load(folder / 'policy.onnx')
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.ndim == 2 and values.shape[0] > 1:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.full_like(values, np.nan), tensor.name))
    onnx.save(model, folder / 'policy.onnx')


def edit(folder, old, new):
    text = (folder / 'policy.yaml').read_text()
    assert old in text
    (folder / 'policy.yaml').write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ('spoil', 'expected'),
    [
        (missing, 'cannot read the network'),
        (truncated, 'truncated or not an ONNX model'),
        (git_lfs_pointer, 'is a Git-LFS pointer'),
        (other_width, "the network has 47 numbers, the contract's terms make 57 (10 too many)"),
        (other_joints, 'drives LF_hip_joint, LF_thigh_joint, LF_calf_joint, which robot go2 does not have'),
        (nan_weights, 'non-finite numbers in output actions'),
    ],
)
def test_run_refuses_a_wrong_policy_before_anything_starts(tmp_path, spoil, expected):
    """One message, non-zero exit, no traceback, no node."""
    folder = tmp_path / 'policy'
    shutil.copytree(find_policy('go2_velocity').parent, folder)
    text = (folder / 'policy.yaml').read_text()
    (folder / 'policy.yaml').write_text(re.sub(r'\n  sha256: \w+', '', text))
    spoil(folder)
    done = subprocess.run(
        [sys.executable, '-m', 'sim2real_ros.tools.cli', 'run', '--policy', str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert expected in done.stderr
    assert 'starting' not in done.stdout
    assert 'Traceback' not in done.stderr
