# SPDX-License-Identifier: Apache-2.0
"""The `<ros2_control>` block: effort commands, position, velocity and effort states, an IMU; what a user's own block lacks."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np

from sim2real_ros.description.urdf_file import add
from sim2real_ros.robot import Robot

MOCK = 'mock_components/GenericSystem'
IMU = 'imu_sensor'  # name of the sensor, in Gazebo and in ros2_control
STATES = ('position', 'velocity', 'effort')
GRAVITY = 9.81  # m/s^2; an IMU at rest measures it upwards
IMU_STATES: dict[str, float] = {  # and what a level robot at rest measures
    **{f'orientation.{axis}': float(axis == 'w') for axis in 'xyzw'},
    **{f'angular_velocity.{axis}': 0.0 for axis in 'xyz'},
    **{f'linear_acceleration.{axis}': GRAVITY * (axis == 'z') for axis in 'xyz'},
}


def control_block(robot: Robot, plugin: str, start: np.ndarray) -> ElementTree.Element:
    """Return the block for one hardware class.

    Args:
        robot: gives joints, effort limits and whether there is an IMU.
        plugin: class of the hardware, as gz_ros2_control/GazeboSimSystem.
        start: (n,) rad, robot order: where simulated and mock joints begin.
    """
    block = ElementTree.Element('ros2_control', name=robot.name, type='system')
    add(add(block, 'hardware'), 'plugin', plugin)
    for name, position, effort in zip(robot.joints, start.tolist(), robot.limits.effort.tolist(), strict=True):
        joint = add(block, 'joint', name=name)
        command = add(joint, 'command_interface', name='effort')
        add(command, 'param', -effort, name='min')
        add(command, 'param', effort, name='max')
        for state in STATES:
            interface = add(joint, 'state_interface', name=state)
            if state == 'position':
                add(interface, 'param', position, name='initial_value')
    if robot.floating:
        sensor = add(block, 'sensor', name=IMU)
        for state, rest in IMU_STATES.items():
            interface = add(sensor, 'state_interface', name=state)
            if plugin == MOCK:  # without it a mock says NaN
                add(interface, 'param', rest, name='initial_value')
    return block


def blocks_of(root: ElementTree.Element, robot: Robot) -> list[ElementTree.Element]:
    """Return the blocks of a URDF that name a joint of the robot."""
    return [block for block in root.findall('ros2_control') if robot_joints(block) & set(robot.joints)]


def robot_joints(block: ElementTree.Element) -> set[str]:
    """Return the joints that a block names."""
    return {joint.get('name', '') for joint in block.findall('joint')}


def lacks(blocks: list[ElementTree.Element], robot: Robot) -> list[str]:
    """Return what a user's own blocks must have for this stack to drive the robot, and have not; one line each."""
    has: dict[str, set[str]] = {}
    for joint in (joint for block in blocks for joint in block.findall('joint')):
        interfaces = has.setdefault(joint.get('name', ''), set())
        interfaces |= {f'command {element.get("name")}' for element in joint.findall('command_interface')}
        interfaces |= {f'state {element.get("name")}' for element in joint.findall('state_interface')}
    faults = []
    for name in robot.joints:
        missing = [need for need in ('command effort', 'state position', 'state velocity') if need not in has.get(name, set())]
        if name not in has:
            faults.append(f'joint {name} is in no <ros2_control> block')
        elif missing:
            faults.append(f'joint {name} has no {" and no ".join(missing)} interface in <ros2_control>')
    return faults
