# SPDX-License-Identifier: Apache-2.0
"""What the motors get when a process is killed without warning while the robot walks."""

import numpy as np
import pytest
from ros_traces import read_trace

from sim2real_ros.robot import load_robot
from sim2real_ros.sim.trace import Source

pytest.importorskip('mujoco')
ROBOT = load_robot('go2')
WALK = np.array([0.5, 0.0, 0.0])
PERIOD = 0.02


def walk(running, seconds=2.0):
    running.operator.command = WALK
    running.stand_up()
    running.spin(seconds)


def test_without_a_policy_the_safety_node_damps_within_three_policy_periods(start):
    """policy_node killed: damping within 60 ms of the last answered state, and no torque above its limit in between."""
    with start(real_time_factor=1.0) as running:  # faster, the states run away from the safety node while lockstep waits
        walk(running)
        running.kill('policy_node')
        running.operator.wait(lambda: running.operator.mode == 'damping', 30, 'no damping')
        running.spin(0.3)
    trace = read_trace(running.trace_file)
    active = np.flatnonzero(trace['mode'] == 'active')
    damped = active[-1] + 1
    silence = trace['time'][damped] - trace['targets_stamp'][damped]
    print(f'damping {1e3 * silence:.0f} ms after the last state that the policy answered')
    assert trace['mode'][damped] == 'damping'
    assert silence <= 3 * PERIOD
    assert (np.abs(trace['torque'][active[0] :]) <= ROBOT.limits.effort + 1e-9).all()


def test_without_a_safety_node_the_watchdog_commands_within_20_ms(start):
    """safety_node killed: the watchdog's damping reaches the driver, and no older torque acts after it."""
    with start(lockstep=False, real_time_factor=0.1) as running:
        walk(running, 1.0)
        running.kill('safety_node')
        running.spin(0.5)
    trace = read_trace(running.trace_file)
    rescued = int(np.flatnonzero(trace['source'] == Source.WATCHDOG)[0])
    last = trace['time'][rescued - 1] - trace['command_age'][rescued - 1]  # stamp of the last state that was answered
    print(f'watchdog command {1e3 * (trace["time"][rescued] - last):.0f} ms after the last answered state, in simulated time')
    assert trace['mode'][rescued - 1] == 'active'
    assert trace['time'][rescued] - last <= 0.02 + 0.004
    after = slice(rescued, None)
    assert (trace['source'][after] == Source.WATCHDOG).all()
    assert (np.abs(trace['torque'][after]) <= ROBOT.limits.effort + 1e-9).all()
    assert len(np.unique(trace['torque'][after], axis=0)) > 20, 'a held torque would not change'


def test_the_watchdog_alone_leaves_a_robot_that_nobody_commanded_alone(start):
    """Without a first command there is no command at all."""
    with start(
        processes=lambda options: [p for p in everything(options) if p.executable in ('watchdog_node', 'mujoco_node')]
    ) as running:
        running.operator.wait(lambda: running.operator.time > 0.5, 60, 'no clock')
    trace = read_trace(running.trace_file)
    assert (trace['source'] == Source.NONE).all()
    assert not trace['torque'].any()


def everything(options):
    from sim2real_ros import bringup

    return bringup.simulation(options)
