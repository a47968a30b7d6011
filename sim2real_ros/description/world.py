# SPDX-License-Identifier: Apache-2.0
"""A world of Gazebo for a robot: whether it loads the systems that the robot needs, in the names of the generation."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

from sim2real_ros.description.gazebo import feet
from sim2real_ros.description.gazebo_names import HARMONIC, Gazebo
from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.paths import find_world
from sim2real_ros.robot import Robot

DEFAULT_STEP_S = 0.001  # of Gazebo, where the world says nothing


@dataclass(frozen=True, slots=True)
class World:
    """Name and text of a world."""

    name: str
    text: str


def world(name: str, names: Gazebo, robot: Robot) -> World:
    """Return a world that a robot can be spawned in.

    Args:
        name: shipped world or SDF file.
        names: generation of Gazebo; the names of systems are written for it.
        robot: decides which systems are needed, and how long a step may be.

    Raises:
        NotFoundError: there is no such world.
        DocumentError: it is no world, or lacks what the robot needs; all is listed.
    """
    path = find_world(name)
    try:
        text = path.read_text(encoding='utf-8')
        root = ElementTree.fromstring(text)
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f'cannot read the world {path}: {error}') from None
    except ElementTree.ParseError as error:
        raise DocumentError(str(path), [f'not valid XML: {error}']) from None
    element = root.find('world')
    if root.tag != 'sdf' or element is None:
        raise DocumentError(str(path), ['this is no world: <sdf><world> is expected'])
    faults = _faults(element, robot)
    if faults:
        raise DocumentError(str(path), faults)
    for prefix in ('system_file', 'system_class'):
        text = text.replace(getattr(HARMONIC, prefix), getattr(names, prefix))
    return World(element.get('name', 'default'), text)


def _faults(element: ElementTree.Element, robot: Robot) -> list[str]:
    loaded = {plugin.get('name', '').rsplit('::', 1)[-1] for plugin in element.findall('plugin')}
    needed = {'Physics': ('physics', 'nothing moves without it'), 'UserCommands': ('user-commands', 'it spawns the robot')}
    if robot.floating:
        needed['Imu'] = ('imu', 'the IMU is silent without it')
    if feet(robot):
        needed['Contact'] = ('contact', 'the feet feel nothing without it')
    faults = []
    for kind, (name, why) in needed.items():
        if kind not in loaded:
            file, full = HARMONIC.system(name, kind)
            faults.append(f'the system {kind} is not loaded, {why}: add <plugin filename="{file}" name="{full}"/>')
    step = _step(element)
    if step * robot.sensors.rate_hz > 1 + 1e-9:
        rate = robot.sensors.rate_hz
        faults.append(f'max_step_size {step:g} s is longer than a period of the joint states, sensors.rate_hz {rate:g}')
    return faults


def _step(element: ElementTree.Element) -> float:
    text = element.findtext('physics/max_step_size')
    try:
        return float(text) if text is not None else DEFAULT_STEP_S
    except ValueError:
        return DEFAULT_STEP_S
