# SPDX-License-Identifier: Apache-2.0
"""The same nodes on a robot with ros2_control: ros2 launch sim2real_ros robot.launch.py robot:=mine.yaml policy:=my_policy.

With hardware:=mock it is a dry run: no motor, no simulator, the joints stay where they are.
"""

from launch import Action, LaunchDescription
from sim2real_ros.bringup.options import RobotOptions
from sim2real_ros.bringup.prerequisites import HARDWARE, RUNNING, require
from sim2real_ros.bringup.ros2_control import robot_steps
from sim2real_ros.ros.launching import folder, launch_description, one_after_another


def start(options: RobotOptions) -> list[Action]:
    """Return the actions for the given arguments."""
    require(RUNNING if options.hardware == 'running' else HARDWARE)
    return one_after_another(robot_steps(options, folder(options)), options)


def generate_launch_description() -> LaunchDescription:
    """Return the launch description."""
    return launch_description(RobotOptions, start)
