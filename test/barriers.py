# SPDX-License-Identifier: Apache-2.0
"""The two barriers as the adversaries meet them, and the bars that they are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from adversary import Apply, Condition, Outcome, fixed_robot

from sim2real_ros.robot import Robot
from sim2real_ros.safety.certificate import Certificate, certify
from sim2real_ros.safety.dynamics import FixedBaseDynamics
from sim2real_ros.safety.limits import TorqueLimiter

PER_JOINT_MARGIN = 0.1  # rad


@cache
def certificate(name: str) -> Certificate:
    """Return the certificate of a test robot, sampled once."""
    return certify(fixed_robot(name))


@cache
def dynamics(name: str) -> FixedBaseDynamics:
    """Return the dynamics of a test robot, compiled once."""
    return FixedBaseDynamics(fixed_robot(name))


def told(robot: Robot, condition: Condition, margin: float | None = None) -> Robot:
    """Return the robot as its file would describe it: its rate, and half as much delay again as there is."""
    safety = replace(robot.safety, command_delay_s=1.5 * condition.delay)
    if margin is not None:
        safety = replace(safety, position_margin=margin)
    return replace(robot, safety=safety, sensors=robot.sensors.model_copy(update={'rate_hz': float(condition.rate_hz)}))


def per_joint(robot: Robot, condition: Condition) -> Apply:
    """The filter that knows each joint by itself, with the margin of robots that stand on their legs."""
    return TorqueLimiter(told(robot, condition, PER_JOINT_MARGIN), certificate=certificate(robot.name)).apply


def coupled(robot: Robot, condition: Condition) -> Apply:
    """The filter that knows the mass matrix."""
    own = certificate(robot.name)
    return TorqueLimiter(told(robot, condition), certificate=own, dynamics=dynamics(robot.name)).apply


@dataclass(frozen=True)
class Bar:
    """What no adversary may pass."""

    overshoot_rad: float  # past the hard limit
    speed_ratio: float  # of the velocity limit


BARS = {coupled: Bar(0.0005, 1.2), per_joint: Bar(0.06, np.inf)}  # 0.000 rad to three digits


def check(make: Callable[[Robot, Condition], Apply], outcome: Outcome, robot: Robot) -> None:
    """Hold an outcome against the bars of a filter."""
    bar, joint = BARS[make], robot.joints[int(outcome.overshoot_rad.argmax())]
    assert outcome.finite
    assert outcome.torque_ratio <= 1.0
    assert outcome.overshoot <= bar.overshoot_rad, f'{joint} came {outcome.overshoot:.4f} rad past its limit'
    assert outcome.speed <= bar.speed_ratio, f'{robot.joints[int(outcome.speed_ratio.argmax())]} at {outcome.speed:.2f} x limit'


def slow_motors(robot: Robot, condition: Condition) -> Apply:
    """The per-joint filter on motors that take 0.1 s to full torque."""
    return per_joint(with_rate(robot, robot.safety.torque_rate / 10), condition)


def with_rate(robot: Robot, rate: np.ndarray) -> Robot:
    """Return the robot with another torque rate in N m/s."""
    return replace(robot, safety=replace(robot.safety, torque_rate=rate))
