# SPDX-License-Identifier: Apache-2.0
"""Promises of swapping policies while the robot walks: it goes on walking, whatever is swapped in or refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from ros_traces import leans, read_trace

from sim2real_ros.paths import find_policy
from sim2real_ros.robot import load_robot

FORWARD = np.array([0.8, 0.0, 0.0])
OURS = find_policy('go2_velocity').parent


def copy_of_ours(folder: Path, **changes: object) -> Path:
    """Return a folder with our policy under another name, so that it is another policy to everybody."""
    shutil.copytree(OURS, folder)
    data = yaml.safe_load((folder / 'policy.yaml').read_text())
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data | {'name': folder.name} | changes, sort_keys=False))
    return folder


def worst_step(trace) -> float:
    """Return the largest change of a torque between two ticks while active, as a share of what the rate allows."""
    active = trace['mode'] == 'active'
    change = np.abs(np.diff(trace['torque'], axis=0))[active[1:] & active[:-1]]
    return float((change / (load_robot('go2').safety.torque_rate * 0.002)).max())


def longest_silence(trace) -> float:
    """Return the longest time without new targets while active, s."""
    active = trace['mode'] == 'active'
    age = trace['time'][active] - trace['targets_stamp'][active]
    return float(age.max())


def swap_and_back(running, other: Path, times: int) -> None:
    """Swap between two policies; each must be granted."""
    for k in range(times):
        refusal = running.operator.set_parameter('policy_node', 'policy', str(other if k % 2 == 0 else OURS))
        assert refusal is None, refusal
        assert running.operator.mode == 'active'


def check_walk(trace) -> None:
    """Hold a walk with swaps against the bars of the issue."""
    assert leans(trace).max() < 0.5
    assert worst_step(trace) <= 1.0 + 1e-9
    assert longest_silence(trace) <= 0.0401  # one policy tick at most went without


def test_swaps_while_walking_leave_the_robot_walking(start, tmp_path):
    """Another policy, and with gains of its own; back; and a rollback."""
    other = copy_of_ours(tmp_path / 'softer', stiffness={'.*': 23.0})
    with start() as running:
        running.operator.command = FORWARD
        running.stand_up()
        running.spin(1.0)
        swap_and_back(running, other, 3)
        running.spin(0.5)
        assert running.operator.call('policy_node/rollback', 60) is None
        running.spin(1.0)
        assert running.operator.mode == 'active'
    trace = read_trace(running.trace_file)
    check_walk(trace)
    active = trace['mode'] == 'active'
    assert trace['qpos'][active][-1, 0] - trace['qpos'][active][0, 0] > 1.0


def test_a_policy_in_the_shadow_commands_nothing_and_may_be_broken(start, tmp_path):
    """It is refused with the reason, or runs beside; the robot walks on."""
    other = copy_of_ours(tmp_path / 'other')
    broken = copy_of_ours(tmp_path / 'broken')
    (broken / 'policy.onnx').write_bytes((OURS / 'policy.onnx').read_bytes()[:5000])
    with start() as running:
        running.operator.command = FORWARD
        running.stand_up()
        assert 'sha256' in str(running.operator.set_parameter('policy_node', 'shadow_policy', str(broken)))
        assert running.operator.set_parameter('policy_node', 'shadow_policy', str(other)) is None
        running.spin(1.0)
        assert running.operator.mode == 'active'
        assert running.operator.set_parameter('policy_node', 'shadow_policy', '') is None
    check_walk(read_trace(running.trace_file))


def test_policies_are_found_by_name_in_the_policies_folder(start, tmp_path):
    """`policies_folder` and `policy:=name`; a name that is nowhere is refused."""
    copy_of_ours(tmp_path / 'mine')
    with start() as running:
        running.operator.wait(lambda: running.operator.time > 0, 60, 'no clock')
        assert running.operator.set_parameter('policy_node', 'policies_folder', str(tmp_path)) is None
        assert running.operator.set_parameter('policy_node', 'policy', 'mine') is None
        assert 'no_such' in str(running.operator.set_parameter('policy_node', 'policy', 'no_such'))
        assert 'no policy before' not in str(running.operator.call('policy_node/rollback', 60))


@pytest.mark.slow
def test_fifty_swaps_at_walking_speed(start, tmp_path):
    """The bar of the issue: no fall, no torque step above the rate, at most one policy tick without targets."""
    other = copy_of_ours(tmp_path / 'softer', stiffness={'.*': 23.0})
    with start(real_time_factor=0.0) as running:
        running.operator.command = FORWARD
        running.stand_up()
        swap_and_back(running, other, 50)
        running.spin(1.0)
        assert running.operator.mode == 'active'
    check_walk(read_trace(running.trace_file))
