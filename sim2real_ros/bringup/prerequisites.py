# SPDX-License-Identifier: Apache-2.0
"""What must be installed before anything is started: ROS packages, programs and the plug-in of Gazebo, all told at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from sim2real_ros.description.gazebo_names import Gazebo, find_library
from sim2real_ros.errors import DependencyError

CONTROLLERS = ('controller_manager', 'joint_state_broadcaster', 'imu_sensor_broadcaster', 'forward_command_controller')
GAZEBO = ('robot_state_publisher', 'ros_gz_sim', 'ros_gz_bridge', *CONTROLLERS)
HARDWARE = ('robot_state_publisher', *CONTROLLERS)
RUNNING = ('controller_manager',)  # for its spawner; the rest is on the robot


def require(packages: Iterable[str], names: Gazebo | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Raise DependencyError when a ROS package, or Gazebo and its plug-in, are not there; the message says how to install them.

    Args:
        packages: names of ROS packages.
        names: generation of Gazebo, where it is needed.
        environment: of the process.
    """
    prefixes = [Path(part) for part in environment.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if part]
    missing = [package for package in packages if not any(_has(prefix, package) for prefix in prefixes)]
    reasons = [f'ROS packages that are not installed, or not sourced: {", ".join(missing)}'] if missing else []
    if names is not None:
        if find_library(names, environment) is None:
            missing.append(names.library.removesuffix('-system'))
            searched = f'{names.search_path}, LD_LIBRARY_PATH and AMENT_PREFIX_PATH'
            reasons.append(
                f'no lib{names.library}.so, the plug-in for Gazebo ({names.name}; another one: gazebo:=), in {searched}'
            )
        if shutil.which(names.command[0], path=environment.get('PATH')) is None:
            reasons.append(f'the program {names.command[0]} of Gazebo is not on the PATH')
    if not reasons:
        return
    distribution = environment.get('ROS_DISTRO', '$ROS_DISTRO')
    install = ' '.join(f'ros-{distribution}-{package.replace("_", "-")}' for package in missing)
    advice = f'. Try: sudo apt install {install}' if install else ''
    raise DependencyError(f'{"; ".join(reasons)}{advice}')


def _has(prefix: Path, package: str) -> bool:
    return (prefix / 'share' / 'ament_index' / 'resource_index' / 'packages' / package).is_file()
