# SPDX-License-Identifier: Apache-2.0
"""Names that change with the generation of Gazebo and of its bridge to ros2_control, and which generation is installed.

Sources: gz_ros2_control, branches jazzy, rolling and humble; gz-sim 8 (Harmonic) and later, ignition-gazebo 6 (Fortress).
Humble pairs with Fortress, Jazzy with Harmonic, Kilted with Ionic, Lyrical with Jetty; the last three share their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sim2real_ros.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class Gazebo:
    """One generation."""

    name: str
    hardware: str  # class in <ros2_control><hardware><plugin>
    library: str  # file of the plug-in that runs the controller manager, without lib and .so
    plugin: str  # its class
    system_file: str  # prefix of the files of Gazebo's own systems, as of <prefix>-imu-system
    system_class: str  # prefix of their classes
    messages: str  # package of its messages
    command: tuple[str, ...]  # starts it
    search_path: str  # environment variable with the folders of plug-ins
    mesh_path: str  # and with those in which package:// is looked for

    def system(self, name: str, kind: str) -> tuple[str, str]:
        """Return file and class of one of Gazebo's own systems, as in `system('imu', 'Imu')`."""
        return f'{self.system_file}-{name}-system', f'{self.system_class}::{kind}'


HARMONIC = Gazebo(
    name='harmonic',  # and every later one
    hardware='gz_ros2_control/GazeboSimSystem',
    library='gz_ros2_control-system',
    plugin='gz_ros2_control::GazeboSimROS2ControlPlugin',
    system_file='gz-sim',
    system_class='gz::sim::systems',
    messages='gz.msgs',
    command=('gz', 'sim'),
    search_path='GZ_SIM_SYSTEM_PLUGIN_PATH',
    mesh_path='GZ_SIM_RESOURCE_PATH',
)
FORTRESS = replace(  # Humble, with the package gz_ros2_control
    HARMONIC,
    name='fortress',
    system_file='ignition-gazebo',
    system_class='ignition::gazebo::systems',
    messages='ignition.msgs',
    command=('ign', 'gazebo'),
    search_path='IGN_GAZEBO_SYSTEM_PLUGIN_PATH',
    mesh_path='IGN_GAZEBO_RESOURCE_PATH',
)
IGNITION = replace(  # Humble, with the package ign_ros2_control
    FORTRESS,
    name='ignition',
    hardware='ign_ros2_control/IgnitionSystem',
    library='ign_ros2_control-system',
    plugin='ign_ros2_control::IgnitionROS2ControlPlugin',
)
GENERATIONS = {generation.name: generation for generation in (HARMONIC, FORTRESS, IGNITION)}


def gazebo(name: str = '', environment: Mapping[str, str] = os.environ) -> Gazebo:
    """Return a generation by name; for '' the one that is installed, or that belongs to ROS_DISTRO.

    Raises:
        NotFoundError: there is no such generation.
    """
    if name and name not in GENERATIONS:
        raise NotFoundError(
            f'no Gazebo generation "{name}"; there are {", ".join(GENERATIONS)} (harmonic: and every later one)'
        )
    if name:
        return GENERATIONS[name]
    if environment.get('ROS_DISTRO') != 'humble':
        return HARMONIC
    return IGNITION if find_library(IGNITION, environment) and not find_library(FORTRESS, environment) else FORTRESS


def find_library(generation: Gazebo, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the plug-in that runs the controller manager, or None where it is not installed."""
    for folder in plugin_folders(generation, environment):
        path = folder / f'lib{generation.library}.so'
        if path.is_file():
            return path
    return None


def plugin_folders(generation: Gazebo, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders where the plug-in may be, in the order of looking."""
    folders = [*_split(environment.get(generation.search_path)), *_split(environment.get('LD_LIBRARY_PATH'))]
    return [*folders, *(prefix / 'lib' for prefix in _split(environment.get('AMENT_PREFIX_PATH')))]


def mesh_folders(generation: Gazebo, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the folders in which Gazebo is to look for the packages of `package://` meshes."""
    folders = list(_split(environment.get(generation.mesh_path)))
    return [*folders, *(prefix / 'share' for prefix in _split(environment.get('AMENT_PREFIX_PATH')))]


def _split(text: str | None) -> Iterable[Path]:
    return (Path(part) for part in (text or '').split(os.pathsep) if part)
