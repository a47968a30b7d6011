# SPDX-License-Identifier: Apache-2.0
"""The nodes and the in-process loop are the same machine."""

import numpy as np
import pytest
from ros_traces import read_trace
from std_msgs.msg import String

from sim2real_ros.contract import load_contract
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.modes import Event
from sim2real_ros.sim.lockstep import Lockstep
from sim2real_ros.sim.world import World

pytest.importorskip('mujoco')
COMMAND = np.array([0.5, 0.0, 0.2])
EVENTS = {'damping': Event.DAMP, 'pose': Event.POSE, 'active': Event.ACTIVATE}
WALK = 2500  # states, 5 s


def difference(trace, late):
    """Return the largest difference of a joint position while walking, rad.

    The in-process loop changes its mode at the states at which the nodes did, and is given their torques until the robot
    is active. policy_node may learn of the mode one tick late; then its clock starts a tick later (`late`).
    """
    robot, contract = load_robot('go2'), load_contract('go2_velocity')
    loop = Lockstep(World(robot), SafetyFilter(robot), PolicyRunner(contract))
    loop.command = COMMAND
    begin = int(np.flatnonzero(trace['mode'] == 'active')[0])
    mode, error = '', 0.0
    for row in range(begin + WALK):
        if trace['mode'][row] != mode:
            mode = str(trace['mode'][row])
            assert loop.safety.request(EVENTS[mode]) is None
        assert loop.world.time == pytest.approx(trace['time'][row], abs=1e-9)
        if late and begin <= row < begin + 10:
            loop.runner.reset()
        error = max(error, float(np.abs(loop.world.data.qpos[7:] - trace['qpos'][row, 7:]).max()))
        loop.tick(None if row >= begin else trace['torque'][row])
    return error


def test_nodes_in_lockstep_follow_the_in_process_loop(start):
    """Joint positions agree within 1e-3 rad over 5 s of walking, mode changes at the same stamps."""
    with start(real_time_factor=1.0) as running:  # policy_node shall learn of the mode within a tick
        running.operator.command = COMMAND
        contracts = []  # a contract that came in the middle of the pose move would give it another goal
        running.operator._node.create_subscription(String, 'policy/contract', contracts.append, qos.LATCHED)
        running.operator.wait(lambda: contracts, 60, 'no policy')
        running.stand_up()
        running.spin(5.2)
    trace = read_trace(running.trace_file)
    active = trace['mode'] == 'active'
    assert active.sum() > WALK
    assert (trace['command_age'][active] == 0).all(), 'a lockstep run answers every state'
    errors = difference(trace, late=False), difference(trace, late=True)
    print(f'largest difference of a joint position over 5 s of walking: {min(errors):.1e} rad')
    assert min(errors) < 1e-3
