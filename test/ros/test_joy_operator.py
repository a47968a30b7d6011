# SPDX-License-Identifier: Apache-2.0
"""Promises of the joystick: what moves the robot needs the dead-man, what stops it does not, and silence is no heartbeat."""

import time

import pytest

pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')

import rclpy  # noqa: E402
import yaml  # noqa: E402
from makers import REPOSITORY  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from sensor_msgs.msg import Joy  # noqa: E402
from std_msgs.msg import Empty  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from sim2real_ros.errors import ParameterError  # noqa: E402
from sim2real_ros.ros import qos  # noqa: E402
from sim2real_ros.ros.joy_operator import BUTTONS, DEAD_MAN, JoyOperator  # noqa: E402


class Pad:
    """A joystick, a safety node that counts its calls, and the operator between them."""

    def __init__(self):
        rclpy.init()
        self.calls, self.beats = [], 0
        self.world, self.operator = rclpy.create_node('safety_node'), JoyOperator()
        for name in BUTTONS:
            self.world.create_service(Trigger, f'~/{name}', lambda _, reply, name=name: self.served(name, reply))
        self.out = self.world.create_publisher(Joy, 'joy', qos.SENSOR_OUT)
        self.world.create_subscription(Empty, 'operator/heartbeat', self.beat, qos.COMMAND)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.world)
        self.executor.add_node(self.operator)
        self.spin(until=lambda: all(c.service_is_ready() for c in self.operator._requests.values()))
        self.spin(until=lambda: self.out.get_subscription_count() > 0)
        self.press()

    def served(self, name, reply):
        self.calls.append(name)
        reply.success = True
        return reply

    def beat(self, _):
        self.beats += 1

    def press(self, *buttons):
        self.out.publish(Joy(buttons=[int(k in buttons) for k in range(11)]))
        self.spin(0.1)

    def spin(self, seconds=10.0, until=lambda: False):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            self.executor.spin_once(timeout_sec=0.01)

    def close(self):
        self.operator.destroy_node()
        self.world.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def pad():
    made = Pad()
    yield made
    made.close()


def test_what_moves_the_robot_needs_the_dead_man_and_what_stops_it_does_not(pad):
    for service, (button, _, needs) in BUTTONS.items():
        pad.press(button)
        pad.press()
        assert (service in pad.calls) == (not needs), service
    pad.calls.clear()
    for button, _, _ in BUTTONS.values():
        pad.press(DEAD_MAN, button)
        pad.press(DEAD_MAN)
    assert pad.calls == list(BUTTONS)


def test_a_button_that_is_held_calls_once(pad):
    for _ in range(3):
        pad.press(1)
    assert pad.calls == ['damp']


def test_the_heartbeat_goes_on_while_the_joystick_is_heard_and_ends_with_it(pad):
    for _ in range(5):
        pad.press()
    assert pad.beats >= 2
    pad.spin(0.6)
    beats = pad.beats
    pad.spin(0.5)
    assert pad.beats == beats


def test_a_button_held_since_before_the_start_and_a_pad_with_fewer_buttons_do_nothing():
    pad = Pad()
    try:
        pad.operator._before = []
        pad.press(1)
        assert pad.calls == []
        pad.out.publish(Joy(buttons=[1]))
        pad.spin(0.1)
        pad.out.publish(Joy(buttons=[1]))
        pad.spin(0.1)
        assert pad.calls == []
    finally:
        pad.close()


def test_a_button_for_two_things_is_refused():
    rclpy.init(args=['--ros-args', '-p', 'button_pose:=1'])
    try:
        with pytest.raises(ParameterError, match='button 1 is used for more than one thing'):
            JoyOperator()
    finally:
        rclpy.try_shutdown()


def test_a_pad_that_lacks_several_buttons_is_served():
    rclpy.init(args=['--ros-args', '-p', 'button_pose:=-1', '-p', 'button_reset:=-1', '-p', 'dead_man:=-1'])
    try:
        JoyOperator().destroy_node()
    finally:
        rclpy.try_shutdown()


def test_the_shipped_gamepad_agrees_with_the_nodes_about_every_button():
    file = {
        name: node['ros__parameters']
        for name, node in yaml.safe_load((REPOSITORY / 'config/joystick/gamepad.yaml').read_text()).items()
    }
    assert file['teleop_twist_joy_node']['enable_button'] == file['joy_operator']['dead_man'] == DEAD_MAN
    assert file['teleop_twist_joy_node']['require_enable_button'] is True
    assert {name: file['joy_operator'][f'button_{name}'] for name in BUTTONS} == {n: b for n, (b, _, _) in BUTTONS.items()}
    assert file['joy_node']['autorepeat_rate'] >= 10
