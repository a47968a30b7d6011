# SPDX-License-Identifier: Apache-2.0
"""The robot: joints, limits, poses, gains, sensors. What the stack holds a policy against."""

from sim2real_ros.robot.description import Robot
from sim2real_ros.robot.load import load_robot

__all__ = ['Robot', 'load_robot']
