# SPDX-License-Identifier: Apache-2.0
"""Entry conditions: what must hold before the robot may stand up or follow a policy. Each refusal is a sentence."""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.rotations import tilt
from sim2real_ros.signals import RobotState

POSE_ERROR = 0.35  # rad, largest distance from the default pose on activation
TILT = 0.5  # rad
SPEED = 1.0  # rad/s, fastest joint


def lean_refusals(robot: Robot, state: RobotState) -> list[str]:
    """Return why the robot may not stand up: it leans."""
    lean = float(tilt(state.base_quat_xyzw)) if robot.floating else 0.0
    return [f'the base leans by {lean:.2f} rad, allowed {TILT} rad'] if lean > TILT else []


def pose_refusals(robot: Robot, state: RobotState, goal: np.ndarray) -> list[str]:
    """Return why the robot is not ready to follow: it is not at rest in the default pose `goal` (n,) rad."""
    reasons = []
    error, speed = np.abs(state.joint_pos - goal), np.abs(state.joint_vel)
    if error.max() > POSE_ERROR:
        worst = int(error.argmax())
        reasons.append(f'{robot.joints[worst]} is {error[worst]:.2f} rad from the default pose, allowed {POSE_ERROR}')
    if speed.max() > SPEED:
        worst = int(speed.argmax())
        reasons.append(f'{robot.joints[worst]} moves at {state.joint_vel[worst]:.2f} rad/s, allowed {SPEED}')
    return reasons
