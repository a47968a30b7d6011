# SPDX-License-Identifier: Apache-2.0
"""Entry conditions: what must hold before the robot may stand up or follow a policy. Each refusal is a sentence."""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.rotations import tilt
from sim2real_ros.safety.wiggle import Wiggle
from sim2real_ros.signals import RobotState

GREEN_S = 1.0  # nothing may have been wrong for so long
POSE_ERROR = 0.35  # rad, largest distance from the default pose on activation
TILT = 0.3  # rad
SPEED = 1.0  # rad/s, fastest joint; measured speeds of a robot at rest reach 0.75
WARM_UP = 10  # answers of a policy before it is followed
TORQUE_STEP = 0.6  # of the effort limit: what the policy asks for against what holds the pose; walking off takes 0.4


def rest_refusals(robot: Robot, state: RobotState) -> list[str]:
    """Return why the robot may not be moved by its own power: it leans, or moves already."""
    reasons = []
    lean = float(tilt(state.base_quat_xyzw)) if robot.floating else 0.0
    if lean > TILT:
        reasons.append(f'the base leans by {lean:.2f} rad, allowed {TILT} rad')
    worst = int(np.abs(state.joint_vel).argmax())
    if abs(state.joint_vel[worst]) > SPEED:
        reasons.append(f'{robot.joints[worst]} moves at {state.joint_vel[worst]:.2f} rad/s, allowed {SPEED}')
    return reasons


def pose_refusals(robot: Robot, state: RobotState, goal: np.ndarray) -> list[str]:
    """Return why the robot is not ready to follow: it is not in the default pose `goal` (n,) rad."""
    error = np.abs(state.joint_pos - goal)
    worst = int(error.argmax())
    if error[worst] <= POSE_ERROR:
        return []
    return [f'{robot.joints[worst]} is {error[worst]:.2f} rad from the default pose, allowed {POSE_ERROR}']


def torque_refusals(robot: Robot, holding: np.ndarray, following: np.ndarray) -> list[str]:
    """Return why the hand-over would be too hard: the policy's torque is far from the one that holds, (n,) N m each."""
    share = np.abs(following - holding) / robot.limits.effort
    worst = int(share.argmax())
    if share[worst] <= TORQUE_STEP:
        return []
    return [
        f'the policy asks {robot.joints[worst]} for {following[worst]:.1f} N m where {holding[worst]:.1f} hold it, '
        f'allowed {TORQUE_STEP:.0%} of its limit'
    ]


def wiggle_refusals(robot: Robot, state: RobotState, under_way: Wiggle | None) -> list[str]:
    """Return why no joint may be wiggled now: another one is, or the robot moves."""
    if under_way is not None and not under_way.done:
        return [f'{under_way.joint} is being wiggled, wait for its end']
    worst = int(np.abs(state.joint_vel).argmax())
    if abs(state.joint_vel[worst]) > SPEED:
        return [f'{robot.joints[worst]} moves at {state.joint_vel[worst]:.2f} rad/s: let the robot hang or lie still']
    return []
