# SPDX-License-Identifier: Apache-2.0
"""`rehearse`: the whole tick of a policy on made-up states of its robot, before it meets real ones.

Zeros and golden vectors, which every network is tried with, say little about scales, clocks and nodes of the graph that only
other numbers reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sim2real_ros.errors import NetworkError, Sim2RealError
from sim2real_ros.robot import Robot
from sim2real_ros.signals import JointTargets, RobotState

TICKS = 50
HALF_TURN = 3.14  # rad, around the middle of a joint without limits

Step = Callable[[RobotState, np.ndarray, np.ndarray], JointTargets]  # state, command (3,), goal (7,)


def rehearse(step: Step, robot: Robot, name: str, contacts: int, period_s: float) -> None:
    """Run ticks of a policy.

    Args:
        step: one tick; states have joints in robot order.
        robot: whose states are made up.
        name: of the policy.
        contacts: feet that it is told about.
        period_s: between two ticks.

    Raises:
        NetworkError: a tick fails, or its targets are not finite.
    """
    rng = np.random.default_rng(0)
    for state in _states(robot, rng, contacts, period_s):
        goal = np.concatenate([rng.normal(0, 0.5, 3), _unit(rng.normal(0, 1, 4))])
        try:
            targets = step(state, rng.uniform(-10, 10, 3), goal)  # clamped to what the policy can be asked for
        except Sim2RealError as error:
            raise NetworkError(f'{name} fails on states that the robot can be in: {error}') from None
        if not all(np.isfinite(part).all() for part in (targets.position, targets.velocity, targets.effort)):
            raise NetworkError(f'{name} has targets that are not finite on states that the robot can be in')


def _states(robot: Robot, rng: np.random.Generator, contacts: int, period_s: float) -> Iterator[RobotState]:
    """Yield states around the standing pose, up to 0.5 rad from level, joints within their limits and a tenth as fast."""
    limits, n = robot.limits, len(robot.joints)
    stand = robot.pose('stand')
    lower, upper = np.maximum(limits.lower, stand - HALF_TURN), np.minimum(limits.upper, stand + HALF_TURN)
    speed = np.minimum(limits.velocity, 100.0)
    for k in range(TICKS):
        yield RobotState(
            stamp=(k + 1) * period_s,
            joint_pos=stand + 0.5 * (rng.uniform(lower, upper) - stand),
            joint_vel=0.1 * rng.uniform(-1, 1, n) * speed,
            base_quat_xyzw=_unit(np.append(rng.uniform(-0.2, 0.2, 3), 1.0)),
            base_ang_vel=rng.normal(0, 1, 3),
            base_lin_vel=rng.normal(0, 0.5, 3),
            base_pos=np.array([0.0, 0.0, 0.5]) + rng.normal(0, 0.1, 3),
            base_lin_acc=np.array([0.0, 0.0, 9.81]) + rng.normal(0, 1, 3),
            foot_contacts=rng.integers(0, 2, contacts).astype(float),
        )


def _unit(quaternion: np.ndarray) -> np.ndarray:
    return quaternion / np.linalg.norm(quaternion)
