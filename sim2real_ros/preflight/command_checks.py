# SPDX-License-Identifier: Apache-2.0
"""Checks of who commands the motors, in which order, and how fast."""

from __future__ import annotations

import numpy as np

from sim2real_ros.errors import Sim2RealError
from sim2real_ros.preflight.finding import Level, Verdict
from sim2real_ros.preflight.observed import Observed
from sim2real_ros.safety.adoption import adopt

LATE = 0.95  # quantile of the command ages that is held against the robot file


def nodes(seen: Observed) -> Verdict:
    """Whether safety node, watchdog and policy run."""
    names = {name.rsplit('/', 1)[-1] for name in seen.nodes}
    if 'safety_node' not in names:
        return Level.REFUSED, 'safety_node does not run: without it nothing limits the torques, start it'
    if seen.read_only:
        return Level.WARNING, 'safety_node is read-only: it commands nothing, and cannot be armed'
    if 'watchdog_node' not in names:
        return (
            Level.REFUSED,
            'watchdog_node does not run: if safety_node died, the last torque would be held for ever, start it',
        )
    if 'policy_node' not in names:
        return Level.WARNING, 'policy_node does not run: the robot can stand up, not walk'
    return Level.OK, f'safety_node (mode {seen.mode or "unknown"}), watchdog_node and policy_node run'


def policy(seen: Observed) -> Verdict:
    """Whether the announced policy is for this robot."""
    if seen.contract_problem:
        return Level.REFUSED, f'the announced contract cannot be used: {seen.contract_problem}'
    if seen.contract is None:
        return Level.WARNING, 'no policy has announced its contract: is policy_node configured?'
    try:
        adopt(seen.robot, seen.contract)
    except Sim2RealError as error:
        return Level.REFUSED, ' '.join(str(error).split())
    return Level.OK, f'{seen.contract.file.name} [{seen.contract.id}], {seen.contract.file.rate_hz:g} Hz'


def rivals(seen: Observed) -> Verdict:
    """Whether anybody else commands the joints."""
    if seen.rivals:
        return Level.REFUSED, seen.rivals
    if not seen.controllers_known:
        text = f'nobody else publishes {seen.commands.topic}; which controllers hold the joints, nobody told'
        return Level.WARNING, f'{text} (controller_manager_msgs or the controller manager is not there)'
    return Level.OK, f'nobody else publishes {seen.commands.topic} or holds the joints'


def controller_order(seen: Observed) -> Verdict:
    """Whether the controller takes the torques in the order in which they are sent."""
    if seen.order is None:
        return Level.WARNING, 'no controller told its joints: make sure that command_joints is its order'
    if seen.order:
        return Level.REFUSED, seen.order
    return Level.OK, 'the controller takes the joints in the order in which they are sent'


def command_age(seen: Observed) -> Verdict:
    """Whether commands are as young as the robot file reckons with."""
    if not len(seen.command_ages):
        return Level.SKIPPED, f'no commands flow in the mode {seen.mode or "unknown"}; look again in the mode damping'
    late, allowed = float(np.quantile(seen.command_ages, LATE)), seen.robot.safety.command_delay_s
    text = f'{LATE:.0%} of the commands are at most {1e3 * late:.1f} ms old'
    if late > allowed:
        advice = 'leave the computer more cores, or raise safety.command_delay_s'
        return Level.WARNING, f'{text}, the robot file reckons with {1e3 * allowed:g} ms: {advice}'
    return Level.OK, text
