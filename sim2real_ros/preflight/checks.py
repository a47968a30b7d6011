# SPDX-License-Identifier: Apache-2.0
"""The list of all checks. Another one is a function of `Observed` that returns level and sentence, and a line here."""

from __future__ import annotations

from collections.abc import Callable

from sim2real_ros.preflight import command_checks, passport_checks, sensor_checks, time_checks
from sim2real_ros.preflight.finding import Finding, Level, Verdict
from sim2real_ros.preflight.observed import Observed

Check = Callable[[Observed], Verdict]

CHECKS: dict[str, Check] = {
    'nodes': command_checks.nodes,
    'policy': command_checks.policy,
    'passport': passport_checks.passport,
    'joint_states': sensor_checks.joint_states,
    'joints': sensor_checks.joints,
    'interfaces': sensor_checks.interfaces,
    'joint range': sensor_checks.joint_range,
    'joint rate': sensor_checks.joint_rate,
    'imu': sensor_checks.imu,
    'gravity': sensor_checks.gravity,
    'clock source': time_checks.clock_source,
    'time goes on': time_checks.time_goes_on,
    'clock rate': time_checks.clock_rate,
    'rivals': command_checks.rivals,
    'controller order': command_checks.controller_order,
    'command age': command_checks.command_age,
    'delay tolerance': passport_checks.delay_tolerance,
}


def examine(seen: Observed) -> list[Finding]:
    """Return what every check says, in the order of the list."""
    return [Finding(name, *check(seen)) for name, check in CHECKS.items()]


def may_arm(findings: list[Finding]) -> bool:
    """Return whether nothing speaks against arming the robot."""
    return not any(finding.level is Level.REFUSED for finding in findings)
