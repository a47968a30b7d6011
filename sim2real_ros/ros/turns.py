# SPDX-License-Identifier: Apache-2.0
"""`Turns`: the side of the mode `wiggle` that ROS sees: whose turn is next, and how far all joints went when one is over."""

from __future__ import annotations

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import time_message
from sim2real_ros.ros.parameters import declare
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.wiggle import Wiggle


class Turns:
    """Declares `wiggle_joint`, publishes `safety/wiggle`."""

    def __init__(self, node: Node, safety: SafetyFilter) -> None:
        self._filter = safety
        self._told: Wiggle | None = None
        self._out = node.create_publisher(JointState, 'safety/wiggle', qos.COMMAND)
        declare(node, 'wiggle_joint', safety.robot.joints[0], 'The joint that ~/wiggle wiggles next.', fixed=False)
        node.add_on_set_parameters_callback(self._on_parameters)

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        robot = self._filter.robot
        for chosen in (parameter.value for parameter in parameters if parameter.name == 'wiggle_joint'):
            if chosen not in robot.joints:
                reason = f'{chosen} is no joint of robot {robot.name}; its joints are {", ".join(robot.joints)}'
                return SetParametersResult(successful=False, reason=reason)
            self._filter.wiggle_joint = chosen
        return SetParametersResult(successful=True)

    def tell(self, stamp_ns: int) -> None:
        """Publish the newest turn once, when it is over: rad that each joint went; the frame is the joint whose turn it was."""
        turn = self._filter.wiggle
        if turn is None or not turn.done or turn is self._told:
            return
        self._told = turn
        message = JointState(name=list(self._filter.robot.joints), position=turn.response.tolist())
        message.header.stamp, message.header.frame_id = time_message(stamp_ns), turn.joint
        self._out.publish(message)
