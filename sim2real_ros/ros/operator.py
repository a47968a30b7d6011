# SPDX-License-Identifier: Apache-2.0
"""`Operator`: calls the safety node's services and sends velocity commands, as a person with a terminal would."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import rclpy
from geometry_msgs.msg import Twist
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from sim2real_ros.errors import RunError
from sim2real_ros.ros import qos

COMMAND_PERIOD_S = 0.05


class Operator:
    """A client of one running stack; a context manager.

    Attributes:
        mode: the last mode that the safety node announced.
        time: simulated time in s, from `clock`; 0 before the first.
        wiggled: rad that each joint went, by name, for each joint that has had its turn in the mode `wiggle`.
        command: (3,) velocity command that is sent all the time, m/s, m/s, rad/s; None sends nothing.
    """

    def __init__(self, namespace: str = '', alive: Callable[[], None] = lambda: None) -> None:
        """Connect.

        Args:
            namespace: of the stack.
            alive: called while waiting; raises when the stack has died.
        """
        self._context = rclpy.Context()  # of its own, so that two operators can work side by side
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._alive = alive
        self.mode, self.time = '', 0.0
        self.wiggled: dict[str, dict[str, float]] = {}
        self.command: np.ndarray | None = None
        self._next_send = 0.0
        self._node = rclpy.create_node('operator', namespace=namespace, context=self._context)
        self._node.create_subscription(String, 'safety/mode', self._on_mode, qos.LATCHED)
        self._node.create_subscription(Clock, 'clock' if namespace else '/clock', self._on_clock, qos.SENSOR_IN)
        self._node.create_subscription(JointState, 'safety/wiggle', self._on_wiggle, qos.COMMAND)
        self._velocity = self._node.create_publisher(Twist, 'cmd_vel', qos.COMMAND)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def request(self, service: str, timeout_s: float = 10.0) -> str | None:
        """Call a service of the safety node; returns the reason of a refusal, or None.

        Raises:
            RunError: no answer in time.
        """
        return self.call(f'safety_node/{service}', timeout_s)

    def call(self, service: str, timeout_s: float = 10.0) -> str | None:
        """Call a Trigger service by its relative name; returns the reason of a refusal, or None."""
        client = self._node.create_client(Trigger, service)
        self.wait(client.service_is_ready, timeout_s, f'{service} did not appear')
        future = client.call_async(Trigger.Request())
        self.wait(future.done, timeout_s, f'{service} did not answer')
        self._node.destroy_client(client)
        answer = future.result()
        return None if answer.success else answer.message

    def set_parameter(self, node: str, name: str, value: object, timeout_s: float = 60.0) -> str | None:
        """Set a parameter of a node; returns the reason of a refusal, or None.

        Raises:
            RunError: no answer in time.
        """
        client = self._node.create_client(SetParameters, f'{node}/set_parameters')
        self.wait(client.service_is_ready, timeout_s, f'{node} did not appear')
        future = client.call_async(SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()]))
        self.wait(future.done, timeout_s, f'{node} did not answer')
        self._node.destroy_client(client)
        result = future.result().results[0]
        return None if result.successful else result.reason

    def insist(self, service: str, timeout_s: float) -> None:
        """Call a service until it is granted.

        Raises:
            RunError: it is still refused after the time; the last reason is in the message.
        """
        deadline = time.monotonic() + timeout_s
        while (reason := self.request(service)) is not None:
            if time.monotonic() > deadline:
                raise RunError(f'{service} was refused for {timeout_s:g} s: {reason}')
            self.spin(0.25)

    def walk(self, command: np.ndarray, seconds: float, timeout_s: float) -> None:
        """Send a velocity command (3,) for a simulated time; ends early when the mode is left.

        Raises:
            RunError: simulated time stands still.
        """
        end, deadline, self.command = self.time + seconds, time.monotonic() + timeout_s, command
        while self.time < end and self.mode == 'active':
            self.spin(0.02)
            if time.monotonic() > deadline:
                raise RunError(f'{seconds:g} s of simulated time were not over after {timeout_s:g} s')

    def wait(self, condition: Callable[[], bool], timeout_s: float, problem: str) -> None:
        """Wait until a condition holds; raises RunError with the problem when it does not in time."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise RunError(f'{problem} within {timeout_s:g} s')
            self.spin(0.02)

    @property
    def listeners(self) -> int:
        """How many nodes our velocity commands reach: the policy's, and a recorder once it listens to everything."""
        return int(self._velocity.get_subscription_count())

    def spin(self, seconds: float) -> None:
        """Handle messages for a while, and send the velocity command at 20 Hz."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.command is not None and time.monotonic() >= self._next_send:
                self._velocity.publish(_twist(self.command))
                self._next_send = time.monotonic() + COMMAND_PERIOD_S
            self._executor.spin_once(timeout_sec=min(left, COMMAND_PERIOD_S))
        self._alive()

    def _on_mode(self, message: String) -> None:
        self.mode = message.data

    def _on_wiggle(self, message: JointState) -> None:
        self.wiggled[message.header.frame_id] = dict(zip(message.name, message.position, strict=True))

    def _on_clock(self, message: Clock) -> None:
        self.time = message.clock.sec + message.clock.nanosec * 1e-9


def _twist(command: np.ndarray) -> Twist:
    message = Twist()
    message.linear.x, message.linear.y, message.angular.z = (float(value) for value in command)
    return message
