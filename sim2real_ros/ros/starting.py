# SPDX-License-Identifier: Apache-2.0
"""`Start`: one stack that is being started, as the node sees it that checks the steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.errors import RunError
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.rivals import can_ask, controller_list


@dataclass
class Topic:
    """What has arrived on one topic."""

    name: str
    messages: int = 0
    stamps: set[int] = field(default_factory=set)  # ns, at most two are kept


class Start:
    """One stack that is being started, seen from the node that checks it."""

    def __init__(self, node: Node, robot: Robot, backend: str, controller: str, *, arm: bool, timeout_s: float) -> None:
        """Prepare.

        Args:
            node: of the stack's namespace, served by somebody else.
            robot: the robot.
            backend: gazebo or hardware.
            controller: name of the effort controller.
            arm: whether the robot is to be damped.
            timeout_s: longest wait for one thing.
        """
        self.node, self.robot, self.backend, self.controller = node, robot, backend, controller
        self.arm, self._timeout_s = arm, timeout_s
        self.gazebo = backend == 'gazebo'
        self.command_topic = node.resolve_topic_name('effort_controller/commands')

    # each is subscribed to when it is first asked for: a thousand messages a second cost the machine that is starting

    @cached_property
    def joints(self) -> Topic:
        """Joint states."""
        return self._listen(JointState, 'joint_states', qos.SENSOR_IN)

    @cached_property
    def imu(self) -> Topic:
        """IMU samples."""
        return self._listen(Imu, 'imu/data', qos.SENSOR_IN)

    @cached_property
    def clock(self) -> Topic:
        """Simulated time."""
        return self._listen(Clock, '/clock', qos.SENSOR_IN)

    @cached_property
    def commands(self) -> Topic:
        """Commands of our nodes."""
        return self._listen(Float64MultiArray, 'effort_controller/commands', qos.WATCHED)

    def _listen(self, kind: type, name: str, profile: QoSProfile) -> Topic:
        topic = Topic('')

        def arrived(message: Clock | JointState | Imu | Float64MultiArray) -> None:
            topic.messages += 1
            stamp = message.clock if kind is Clock else message.header.stamp if kind in (JointState, Imu) else None
            if stamp is not None and len(topic.stamps) < 2:
                topic.stamps.add(stamp.sec * 1_000_000_000 + stamp.nanosec)

        topic.name = self.node.create_subscription(kind, name, arrived, profile).topic_name
        return topic

    def wait(self, condition: Callable[[], bool], why_not: Callable[[], str]) -> None:
        """Wait until a condition holds; raises RunError with the reason when it does not in time."""
        deadline = time.monotonic() + self._timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise RunError(f'{why_not()} ({self._timeout_s:g} s waited)')
            time.sleep(0.05)

    def publishers(self, topic: Topic) -> str:
        """Return who publishes a topic, '' for nobody."""
        ends = self.node.get_publishers_info_by_topic(topic.name)
        return ', '.join(sorted({f'{end.node_namespace.rstrip("/")}/{end.node_name}' for end in ends}))

    @property
    def can_ask(self) -> bool:
        """Whether the controller manager can be asked from here at all."""
        return can_ask()

    def controller_listens(self) -> bool:
        """Return whether the controller's own node subscribes to the commands; a watchdog and a recorder do as well."""
        ends = self.node.get_subscriptions_info_by_topic(self.command_topic)
        return any(end.node_name == self.controller for end in ends)

    def controllers(self) -> dict[str, str] | None:
        """Return the state of each controller of ros2_control, None where nobody tells."""

        def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
            deadline = time.monotonic() + timeout_s
            while not (held := condition()) and time.monotonic() < deadline:
                time.sleep(0.02)
            return held

        listed = controller_list(self.node, wait)
        return None if listed is None else {controller.name: controller.state for controller in listed}

    @property
    def namespace(self) -> str:
        """Namespace without its last slash."""
        return self.node.get_namespace().rstrip('/')

    def watch_time(self) -> None:
        """Listen to simulated time from now on: `standing` must not take a discovery that is slow for a pause."""
        if self.gazebo:
            _ = self.clock

    def standing(self) -> bool:
        """Return whether no time passes for a moment, on a clock that somebody publishes."""
        if not self.publishers(self.clock):
            return False
        self.clock.stamps.clear()
        time.sleep(0.5)
        return len(self.clock.stamps) < 2
