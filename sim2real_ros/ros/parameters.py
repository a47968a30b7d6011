# SPDX-License-Identifier: Apache-2.0
"""Declaring parameters with a description and a range, so that `ros2 param describe` explains them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node

from sim2real_ros.errors import ParameterError
from sim2real_ros.robot import Robot
from sim2real_ros.ros.conversions import OUTPUTS

NOISE: dict[str, dict[str, Any]] = {'all': {}, 'imu': {'frozen_joints': False}, 'none': {'frozen_samples': None}}


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

    Raises:
        ParameterError: the user gave a value of another type or outside the range.
    """
    descriptor = ParameterDescriptor(description=description, read_only=fixed)
    if low is not None and high is not None and isinstance(default, int):
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    elif low is not None and high is not None:
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)]
    try:
        return node.declare_parameter(name, default, descriptor).value
    except InvalidParameterTypeException:
        raise ParameterError(f'parameter {name}: {_given(node, name)} given, {_kind(default)} expected') from None
    except InvalidParameterValueException:
        raise ParameterError(f'parameter {name}: {_given(node, name)} given, {low:g} to {high:g} possible') from None


def _given(node: Node, name: str) -> str:
    """Return what the user gave for a parameter that rclpy refused, so that no node has it."""
    given = node._parameter_overrides.get(name)
    return 'another type' if given is None else repr(given.value)


def _kind(default: Any) -> str:
    """Say which type a parameter has, in the words of someone who writes it."""
    if isinstance(default, list):
        return 'a list of texts is' if isinstance(default[0], str) else f'a list like {default} is'
    kinds = {bool: 'true or false', int: 'a whole number', float: 'a number with a decimal point, like 1.0', str: 'text'}
    return f'{kinds[type(default)]} is'


def output(node: Node) -> str:
    """Declare `output` and return what the driver takes: `torque` or `impedance`."""
    text = 'What the driver takes: torque, or impedance for drives with a PD law of their own.'
    value = declare(node, 'output', 'torque', text)
    if value not in OUTPUTS:
        raise ParameterError(f'parameter output: "{value}" given, {" or ".join(OUTPUTS)} possible')
    return str(value)


def sensor_noise(node: Node, robot: Robot) -> Robot:
    """Declare `sensor_noise` and return the robot, its monitors told which sensors may repeat themselves bit by bit."""
    text = 'Which sensors have noise, so that identical samples are a fault: all, imu (as in Gazebo), none (as of a mock).'
    noise = declare(node, 'sensor_noise', 'all', text)
    if noise not in NOISE:
        raise ParameterError(f'parameter sensor_noise: "{noise}" given, {", ".join(NOISE)} possible')
    return replace(robot, monitors=robot.monitors.model_copy(update=NOISE[noise]))


def command_joints(node: Node, robot: Robot) -> tuple[str, ...]:
    """Declare `command_joints` and return the joint order of the command topic."""
    text = 'Joint order of effort_controller/commands, as in the controller; empty: that of the robot file.'
    order = declare(node, 'command_joints', [''], text) or ['']  # rclpy makes None of []
    return robot.joints if order == [''] else tuple(order)
