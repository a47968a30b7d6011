# SPDX-License-Identifier: Apache-2.0
"""The `<gazebo>` elements: the plug-in that runs ros2_control, IMU, contacts of the feet, odometry; and the bridge to ROS."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from sim2real_ros.description.collisions import WORLD, collision_names
from sim2real_ros.description.gazebo_names import GENERATIONS, Gazebo
from sim2real_ros.description.ros2_control import IMU
from sim2real_ros.description.urdf_file import add, root_link
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot

CONTACT_HZ = 100.0
ODOMETRY_HZ = 200.0
# An IMU without noise would repeat itself bit by bit at rest, as a dead one does. Chosen: far below what training adds.
GYROSCOPE_NOISE = 0.005  # rad/s
ACCELEROMETER_NOISE = 0.05  # m/s^2


def plugin_element(names: Gazebo, controllers: Path, namespace: str = '') -> ElementTree.Element:
    """Return the plug-in that runs the controller manager inside Gazebo."""
    element = ElementTree.Element('gazebo')
    plugin = add(element, 'plugin', filename=names.library, name=names.plugin)
    add(plugin, 'parameters', str(controllers))
    add(plugin, 'hold_joints', 'true')  # until the first controller is active; after it, never again
    if namespace:
        add(add(plugin, 'ros'), 'namespace', f'/{namespace}')
    return element


def imu_element(robot: Robot) -> ElementTree.Element:
    """Return the IMU at the robot file's frame, its orientation in the world: by default it would be that of its first pose."""
    element = ElementTree.Element('gazebo', reference=robot.sensors.imu_frame)
    sensor = add(element, 'sensor', name=IMU, type='imu')
    add(sensor, 'always_on', 'true')
    add(sensor, 'update_rate', robot.sensors.rate_hz)
    imu = add(sensor, 'imu')
    add(add(imu, 'orientation_reference_frame'), 'localization', 'ENU')
    for quantity, deviation in (('angular_velocity', GYROSCOPE_NOISE), ('linear_acceleration', ACCELEROMETER_NOISE)):
        axes = add(imu, quantity)
        for axis in 'xyz':
            noise = add(add(axes, axis), 'noise', type='gaussian')
            add(noise, 'mean', 0.0)
            add(noise, 'stddev', deviation)
    return element


def anchor_elements(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Return what bolts a robot down, unless its URDF does: a link `world` and a fixed joint from it to the root link."""
    base = root_link(root)
    if base == WORLD:
        return []
    joint = ElementTree.Element('joint', name=f'{WORLD}_joint', type='fixed')
    add(joint, 'parent', link=WORLD)
    add(joint, 'child', link=base)
    return [ElementTree.Element('link', name=WORLD), joint]


def contact_topic(robot: Robot, foot: str, namespace: str = '') -> str:
    """Return the topic, in Gazebo, of the contacts of a foot."""
    return f'/{namespace or robot.name}/contacts/{foot}'


def contact_elements(root: ElementTree.Element, robot: Robot, namespace: str = '') -> list[ElementTree.Element]:
    """Return a contact sensor for each foot of the robot file.

    Raises:
        DocumentError: a foot is no link of the URDF, or has no shape that could touch anything.
    """
    elements, faults, shapes = [], [], collision_names(root)
    for foot in feet(robot):
        if not shapes.get(foot):
            what = 'has no <collision> in the URDF' if foot in shapes else f'is no link; links are {", ".join(shapes)}'
            faults.append(f'simulation.feet: {foot} {what}')
            continue
        element = ElementTree.Element('gazebo', reference=foot)
        sensor = add(element, 'sensor', name=f'{foot}_contact', type='contact')
        add(sensor, 'always_on', 'true')
        add(sensor, 'update_rate', CONTACT_HZ)
        add(sensor, 'topic', contact_topic(robot, foot, namespace))
        contact = add(sensor, 'contact')
        add(contact, 'collision', shapes[foot][0])
        add(contact, 'topic', contact_topic(robot, foot, namespace))
        elements.append(element)
    if faults:
        raise DocumentError(str(robot.path), faults)
    return elements


def feet(robot: Robot) -> tuple[str, ...]:
    """Return the links that touch the ground, as far as the robot file tells."""
    return robot.simulation.feet if robot.simulation is not None else ()


def odometry_topic(robot: Robot, namespace: str = '') -> str:
    """Return the topic, in Gazebo, of the true pose and velocity of the base."""
    return f'/{namespace or robot.name}/odometry'


def odometry_element(root: ElementTree.Element, names: Gazebo, robot: Robot, namespace: str = '') -> ElementTree.Element:
    """Return what publishes pose and velocity of the base, in place of an estimator."""
    element = ElementTree.Element('gazebo')
    file, kind = names.system('odometry-publisher', 'OdometryPublisher')
    plugin = add(element, 'plugin', filename=file, name=kind)
    add(plugin, 'odom_frame', 'odom')
    add(plugin, 'robot_base_frame', root_link(root))
    add(plugin, 'odom_topic', odometry_topic(robot, namespace))
    add(plugin, 'odom_publish_frequency', ODOMETRY_HZ)
    add(plugin, 'dimensions', '3')
    return element


def drop_replaced(root: ElementTree.Element, robot: Robot) -> list[str]:
    """Remove from a user's URDF what ours takes the place of, and return a line for each: plug-ins, IMU, contact sensors."""
    ours = {names.plugin for names in GENERATIONS.values()}
    if robot.floating and robot.sensors.odom:
        ours |= {names.system('odometry-publisher', 'OdometryPublisher')[1] for names in GENERATIONS.values()}
    sensors = {(foot, 'contact') for foot in feet(robot)} | ({(robot.sensors.imu_frame, 'imu')} if robot.floating else set())
    notes = []
    for element in root.findall('gazebo'):
        for child in [*element.findall('plugin'), *element.findall('sensor')]:
            if child.get('name') in ours or (element.get('reference'), child.get('type')) in sensors:
                element.remove(child)
                notes.append(f'replaced <{child.tag} name="{child.get("name", "")}"> of <gazebo>')
        if not len(element):
            root.remove(element)
    return notes


def bridge(names: Gazebo, robot: Robot, namespace: str = '') -> list[dict[str, object]]:
    """Return what ros_gz_bridge has to carry to ROS, as its YAML file lists it; joints and IMU go through ros2_control."""

    def topic(ros: str, gz: str, ros_type: str, gz_type: str, *, lazy: bool = False) -> dict[str, object]:
        row: dict[str, object] = {'ros_topic_name': ros, 'gz_topic_name': gz, 'ros_type_name': ros_type}
        row |= {'gz_type_name': f'{names.messages}.{gz_type}', 'direction': 'GZ_TO_ROS'}
        return row | ({'lazy': True} if lazy else {})

    rows = [topic('/clock', '/clock', 'rosgraph_msgs/msg/Clock', 'Clock')]
    if robot.floating and robot.sensors.odom:
        rows.append(topic('odom', odometry_topic(robot, namespace), 'nav_msgs/msg/Odometry', 'Odometry'))
    for foot in feet(robot):
        gz = contact_topic(robot, foot, namespace)
        rows.append(topic(f'contacts/{foot}', gz, 'ros_gz_interfaces/msg/Contacts', 'Contacts', lazy=True))
    return rows
