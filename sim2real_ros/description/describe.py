# SPDX-License-Identifier: Apache-2.0
"""From the plain URDF of a robot to the `robot_description` of a backend: what is added, what of the user's own is replaced."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from sim2real_ros.description import gazebo
from sim2real_ros.description.gazebo_names import Gazebo
from sim2real_ros.description.possible import refuse_impossible
from sim2real_ros.description.ros2_control import MOCK, blocks_of, control_block, lacks
from sim2real_ros.description.urdf_file import read_urdf, to_text
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot


@dataclass(frozen=True, slots=True)
class Description:
    """A `robot_description`.

    Attributes:
        text: the document.
        notes: what of the user's own URDF was replaced or kept, one line each.
    """

    text: str
    notes: tuple[str, ...] = ()


def for_gazebo(robot: Robot, names: Gazebo, controllers: Path, *, namespace: str = '', start: str = '') -> Description:
    """Describe a robot for Gazebo with gz_ros2_control.

    Args:
        robot: the robot.
        names: generation of Gazebo.
        controllers: parameter file that the plug-in reads, see `controllers.py`.
        namespace: of the controller manager.
        start: pose in which it begins; that of the robot file, or `stand`, when empty.

    Raises:
        NotFoundError: it has no such pose, or its URDF is missing.
        DocumentError: the URDF is that of no possible robot, or a foot is not in it.
    """
    root = read_urdf(robot.urdf)
    refuse_impossible(root, robot)
    notes = _drop_blocks(root, robot) + gazebo.drop_replaced(root, robot)
    root.append(control_block(robot, names.hardware, robot.pose(start or start_pose(robot))))
    root.append(gazebo.plugin_element(names, controllers, namespace))
    if robot.floating:
        root.append(gazebo.imu_element(robot))
        if robot.sensors.odom:
            root.append(gazebo.odometry_element(root, names, robot, namespace))
    else:
        root.extend(gazebo.anchor_elements(root))
    root.extend(gazebo.contact_elements(root, robot, namespace))
    return Description(to_text(root), tuple(notes))


def for_ros2_control(robot: Robot, plugin: str = '', *, start: str = '') -> Description:
    """Describe a robot for ros2_control hardware.

    Args:
        robot: the robot.
        plugin: class of the hardware; `mock` for one that does nothing, '' to keep the URDF's own blocks.
        start: pose in which a mock begins; that of the robot file, or `stand`, when empty.

    Raises:
        NotFoundError: it has no such pose, or its URDF is missing.
        DocumentError: the URDF is that of no possible robot, or no class is given and its own blocks do not have what this
            stack needs; all is listed.
    """
    root = read_urdf(robot.urdf)
    refuse_impossible(root, robot)
    if plugin:
        notes = _drop_blocks(root, robot)
        pose = robot.pose(start or start_pose(robot))
        root.append(control_block(robot, MOCK if plugin == 'mock' else plugin, pose))
        return Description(to_text(root), tuple(notes))
    own = blocks_of(root, robot)
    if not own:
        reason = 'it has no <ros2_control> block for these joints; name the class of your hardware, or mock for a dry run'
        raise DocumentError(str(robot.urdf), [reason])
    faults = lacks(own, robot)
    if faults:
        raise DocumentError(str(robot.urdf), faults)
    return Description(to_text(root), tuple(f'kept <ros2_control name="{block.get("name")}">' for block in own))


def start_pose(robot: Robot) -> str:
    """Return the name of the pose in which a simulation begins."""
    return robot.simulation.start_pose if robot.simulation is not None else 'stand'


def _drop_blocks(root: ElementTree.Element, robot: Robot) -> list[str]:
    notes = []
    for block in blocks_of(root, robot):
        root.remove(block)
        plugin = (block.findtext('hardware/plugin') or 'no plug-in').strip()
        notes.append(f'replaced <ros2_control name="{block.get("name")}"> ({plugin}): it describes the same joints')
    return notes
