# SPDX-License-Identifier: Apache-2.0
"""The smallest rclpy node that answers a joint state with a command: what command ages are measured against."""

import contextlib

import rclpy
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.ros import qos


def main() -> None:
    """Relay until interrupted."""
    rclpy.init()
    node = rclpy.create_node('relay')
    publisher = node.create_publisher(Float64MultiArray, 'effort_controller/commands', qos.COMMAND)
    node.create_subscription(
        JointState, 'joint_states', lambda message: publisher.publish(Float64MultiArray(data=message.position)), qos.SENSOR_IN
    )
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


main()
