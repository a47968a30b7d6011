# SPDX-License-Identifier: Apache-2.0
"""Promises of swapping policies while the robot walks: it goes on walking, whatever is swapped in or refused."""

from pathlib import Path

import numpy as np
import pytest
from other_policies import OURS, copy_of_ours
from ros_traces import leans, read_trace

from sim2real_ros.robot import load_robot

FORWARD = np.array([0.8, 0.0, 0.0])


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
    lean, step, silence = leans(trace).max(), worst_step(trace), longest_silence(trace)
    print(f'lean {lean:.2f} rad, torque step {step:.3f} of the allowed, targets at most {1e3 * silence:.0f} ms old')
    assert lean < 0.5
    assert step <= 1.0 + 1e-9
    assert silence <= 0.0401  # one policy tick at most went without


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
