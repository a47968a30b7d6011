# SPDX-License-Identifier: Apache-2.0
"""The stack against a ros2_control that does what the real one was seen to do: the robot never falls because of us."""

import time

import numpy as np
import pytest

pytest.importorskip('mujoco')

from fake_controllers import DEACTIVATED  # noqa: E402
from fake_stack import FakeStack, fake_stack  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402

from sim2real_ros.ros import qos  # noqa: E402

WALK = np.array([0.5, 0.0, 0.0])
UPRIGHT = 0.6  # rad
SINKING = 5.0  # rad/s, fastest joint of a robot that sinks in damping; one that stands and collapses comes to 8.3


def assert_started_in_order(stack: FakeStack) -> None:
    """Commands flowed before the controller took any, and what it took first was damping."""
    activated = stack.happened('activated')
    received = int(stack.events[0][1].split()[2])
    assert received >= 10, 'commands flow before the activation'
    trace = stack.since(activated)
    assert not stack.trace['torque'][stack.trace['time'] < activated].any()
    assert (trace['mode'][:20] == 'damping').all()
    until_pose = trace['speed'][: int(np.argmax(trace['mode'] == 'pose')) or None]
    print(f'{received} commands before the activation; fastest joint {until_pose.max():.1f} rad/s')
    assert until_pose.max() < SINKING


def test_the_stack_walks_with_shuffled_joints_and_default_qos_outlasts_a_pause_and_leaves_no_torque_behind(tmp_path):
    """At 500 Hz and without effort feedback, from a robot that stands on rigid joints."""
    with fake_stack(tmp_path, start_pose='stand') as stack:
        stack.operator.command = WALK
        stack.arm()
        stack.stand_up()
        stack.spin(2.0)
        stack.manage('pause')
        for _ in range(5):  # clock and joint states go on with one stamp, the IMU is silent
            time.sleep(0.1)
            stack.operator.spin(0.01)
        assert stack.operator.mode == 'active'
        stack.manage('resume')
        stack.spin(1.0)
        assert stack.operator.mode == 'active'
        ended = stack.operator.time
        for name in ('policy_node', 'safety_node', 'watchdog_node'):
            assert stack.end(name) == 0
        stack.spin(3.0)  # a limp leg may sink for a second
    assert_started_in_order(stack)
    active = stack.trace['mode'] == 'active'
    way = stack.trace['qpos'][active][-1, 0] - stack.trace['qpos'][active][0, 0]
    print(f'{way:.2f} m in {0.002 * active.sum():.1f} s')
    assert way > 0.3 * 0.002 * active.sum()
    assert stack.since(0)['lean'].max() < UPRIGHT
    last = stack.since(ended)
    assert not last['torque'][-1000:].any(), 'the controller would hold it for ever'
    assert last['height'][-1] < 0.2, 'it lies'


def test_a_foreign_command_of_the_wrong_size_makes_the_robot_limp_and_the_next_activation_does_not_throw_it(tmp_path):
    """Nothing can hold a limp robot; but what is commanded meanwhile must not be what was wanted while it stood."""
    with fake_stack(tmp_path, start_pose='lying') as stack:
        stack.arm()
        stack.stand_up()
        stack.spin(0.5)
        intruder = stack.operator._node.create_publisher(Float64MultiArray, 'effort_controller/commands', qos.COMMAND)
        stack.operator.wait(lambda: intruder.get_subscription_count() > 0, 10, 'no controller')
        for _ in range(30):  # one of ours right behind it would take its place
            intruder.publish(Float64MultiArray(data=[0.0]))
            stack.operator.spin(0.01)
        stack.spin(1.5)
        stack.operator._node.destroy_publisher(intruder)
        assert stack.operator.mode == 'fault'
        stack.manage('activate')
        again = stack.operator.time
        stack.spin(1.5)
    assert_started_in_order(stack)
    assert stack.happened(DEACTIVATED) < again
    after = stack.since(again)
    assert set(after['mode']) <= {'fault', 'damping'}  # damping: of the watchdog, when the nodes end
    assert after['speed'].max() < SINKING
    assert after['lean'].max() < UPRIGHT


def test_a_missing_interface_is_refused_by_name(tmp_path):
    with fake_stack(tmp_path, ('safety_node',), missing='RL_calf_joint/velocity') as stack:
        stack.operator.wait(lambda: stack.operator.time > 0.5, 60, 'no clock')
        named = 'not finite: RL_calf_joint velocity'
        stack.operator.wait(lambda: named in stack.operator.request('damp'), 60, f'nobody says "{named}"')
    assert not stack.trace['torque'].any()


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(20))
def test_from_an_empty_graph_our_nodes_are_armed_before_the_controller_is_activated(tmp_path, seed):
    """All processes start at once; the joints are listed in another order each time."""
    with fake_stack(tmp_path, start_pose='lying' if seed % 2 else 'stand', seed=seed) as stack:
        stack.arm()
        stack.stand_up()
        stack.spin(0.5)
        assert stack.operator.mode == 'active'
    assert_started_in_order(stack)
    assert stack.since(0)['lean'].max() < UPRIGHT
