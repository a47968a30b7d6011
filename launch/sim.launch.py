# SPDX-License-Identifier: Apache-2.0
"""The stack on the embedded MuJoCo simulator: ros2 launch sim2real_ros sim.launch.py policy:=go2_velocity headless:=false."""

from launch import LaunchDescription
from sim2real_ros.bringup import Options, simulation
from sim2real_ros.ros.launching import launch_description, together


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return launch_description(Options, lambda options: together(simulation(options), options))
