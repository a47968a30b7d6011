# SPDX-License-Identifier: Apache-2.0
"""Declaring parameters with a description and a range, so that `ros2 param describe` explains them."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node

from sim2real_ros.robot import Robot


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    fixed: bool = True,
) -> Any:
    """Declare a parameter and return its value.

    Args:
        node: the owner.
        name: of the parameter.
        default: its default; also fixes the type.
        description: what it does, unit, when it takes effect.
        low: smallest value, for numbers.
        high: largest value.
        fixed: whether it is read once at start and cannot be set later.
    """
    descriptor = ParameterDescriptor(description=description, read_only=fixed)
    if low is not None and high is not None:
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)]
    return node.declare_parameter(name, default, descriptor).value


def command_joints(node: Node, robot: Robot) -> tuple[str, ...]:
    """Declare `command_joints` and return the joint order of the command topic."""
    text = 'Joint order of effort_controller/commands, as in the controller; empty: that of the robot file.'
    order = declare(node, 'command_joints', [''], text)
    return robot.joints if order == [''] else tuple(order)
