# SPDX-License-Identifier: Apache-2.0
"""The same nodes with Gazebo: ros2 launch sim2real_ros gazebo.launch.py policy:=go2_velocity headless:=false."""

from launch import Action, LaunchDescription
from sim2real_ros.bringup.options import GazeboOptions
from sim2real_ros.bringup.prerequisites import GAZEBO, require
from sim2real_ros.bringup.ros2_control import gazebo_steps
from sim2real_ros.description import gazebo
from sim2real_ros.ros.launching import folder, launch_description, one_after_another


def start(options: GazeboOptions) -> list[Action]:
    """Return the actions for the given arguments."""
    require(GAZEBO, gazebo(options.gazebo))
    return one_after_another(gazebo_steps(options, folder(options)), options)


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return launch_description(GazeboOptions, start)
