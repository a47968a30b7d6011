# SPDX-License-Identifier: Apache-2.0
"""What Gazebo, ros2_control and MuJoCo need to know of a robot, made from its plain URDF and its robot file."""

from sim2real_ros.description.controllers import controllers
from sim2real_ros.description.describe import Description, for_gazebo, for_ros2_control
from sim2real_ros.description.gazebo_names import gazebo

__all__ = ['Description', 'controllers', 'for_gazebo', 'for_ros2_control', 'gazebo']
