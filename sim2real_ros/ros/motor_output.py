# SPDX-License-Identifier: Apache-2.0
"""`MotorOutput`: the way out of the safety node: commands on the driver's topic, or, where it is read-only, a preview."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import OUTPUTS, time_message
from sim2real_ros.ros.parameters import output
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.observer import Observer
from sim2real_ros.signals import SafeTorque


class MotorOutput:
    """Declares `output`. A read-only node has no publisher of commands at all.

    Attributes:
        kind: `torque`, or `impedance` for drives with a PD law of their own.
        topic: resolved name of the command topic.
    """

    def __init__(self, node: Node, robot: Robot, order: tuple[str, ...], *, read_only: bool) -> None:
        """Prepare.

        Args:
            node: the owner.
            robot: whose joints these are.
            order: in which commands list them.
            read_only: publish `safety/preview` and nothing else.
        """
        self.kind = output(node)
        topic, writer = OUTPUTS[self.kind]
        self.topic = node.resolve_topic_name(topic)
        self._node, self._writer = node, writer(robot, order, node.get_name())
        if read_only:
            self._preview_out = node.create_publisher(JointState, 'safety/preview', qos.COMMAND)
        else:
            self._command_out = node.create_publisher(Float64MultiArray, topic, qos.COMMAND)

    def send(self, safety: SafetyFilter, safe: SafeTorque, stamp_ns: int, mode: str) -> None:
        """Publish a command.

        Args:
            safety: that made it, just now.
            safe: what the motors shall do.
            stamp_ns: of the joint state that it answers.
            mode: in which it was made.
        """
        command = safety.impedance(safe) if self.kind == 'impedance' else safe
        self._command_out.publish(self._writer.write(command, stamp_ns, mode))  # type: ignore[arg-type]

    def show(self, observer: Observer, stamp_ns: int) -> None:
        """Publish what would be commanded, and say what would have stopped the robot."""
        if observer.preview is not None:
            message = JointState(name=list(observer.robot.joints), effort=observer.preview.tolist())
            message.header.stamp = time_message(stamp_ns)
            self._preview_out.publish(message)
        if observer.finding is not None:
            fault = observer.finding
            self._node.get_logger().warning(f'would have stopped: {fault.name}: {fault.message}', throttle_duration_sec=1.0)
