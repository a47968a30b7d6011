# SPDX-License-Identifier: Apache-2.0
"""Entry conditions: what must hold before the robot may stand up or follow a policy. Each refusal is a sentence."""

from __future__ import annotations

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import tilt
from sim2real_ros.safety.policy_link import PolicyLink
from sim2real_ros.safety.reference import Reference
from sim2real_ros.safety.wiggle import Wiggle
from sim2real_ros.signals import RobotState

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


def pose_refusals(robot: Robot, state: RobotState, reference: Reference) -> list[str]:
    """Return why the robot is not ready to follow: it has not arrived in the default pose."""
    reasons = [] if reference.arrived(state.stamp) else ['the move into the default pose is not over']
    error = np.abs(state.joint_pos - reference.goal)
    worst = int(error.argmax())
    if error[worst] > POSE_ERROR:
        reasons.append(f'{robot.joints[worst]} is {error[worst]:.2f} rad from the default pose, allowed {POSE_ERROR}')
    return reasons


def policy_refusals(robot: Robot, state: RobotState, link: PolicyLink, holding: np.ndarray, *, well: bool) -> list[str]:
    """Return why the policy may not be followed: there is none, it is silent, not warm, or would jump.

    Args:
        robot: gives the effort limits.
        state: the last one.
        link: to the policy.
        holding: (n,) N m, the torque that holds the robot now.
        well: whether nothing else speaks against it; only then the torques are compared.
    """
    followed, adopted = link.followed(), link.adopted
    if adopted is None:
        return ['no policy has announced its contract']
    name = adopted.contract.file.name
    if followed is None or link.silent(state.stamp):
        return [f'policy {name} sends no targets (is policy_node active?)']
    if link.answers < WARM_UP:
        return [f'policy {name} is warming up']
    following = pd_torque(followed.targets, followed.gains, state.joint_pos, state.joint_vel)
    return torque_refusals(robot, holding, following) if well else []


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
