# SPDX-License-Identifier: Apache-2.0
"""Checks of what was proven of the policy, and whether this machine is as fast as that takes."""

from __future__ import annotations

import numpy as np

from sim2real_ros.preflight.command_checks import LATE
from sim2real_ros.preflight.finding import Level, Verdict
from sim2real_ros.preflight.observed import Observed
from sim2real_ros.validation.tolerance import command_age_margin


def passport(seen: Observed) -> Verdict:
    """Whether the policy was validated for this robot, as policy_node found."""
    told = seen.passport
    if seen.contract is None:
        return Level.SKIPPED, 'no policy has announced its contract'
    if told is None:
        return Level.WARNING, 'policy_node does not tell whether its policy has a passport'
    if told.granted:
        return Level.OK, told.text
    if not told.hardware:
        return Level.SKIPPED, f'not asked for in simulation: {told.text}'
    if told.required:
        return Level.REFUSED, f'policy_node will not run this policy: {told.text}'
    return Level.WARNING, f'require_passport is false, so nothing keeps this policy off the robot: {told.text}'


def delay_tolerance(seen: Observed) -> Verdict:
    """Whether commands are as young as the policy needs them."""
    told = seen.passport
    if not len(seen.command_ages):
        return Level.SKIPPED, f'no commands flow in the mode {seen.mode or "unknown"}; look again in the mode damping'
    late = float(np.quantile(seen.command_ages, LATE))
    verdict, text = command_age_margin(told.tolerances if told is not None else {}, late)
    if verdict == 'skip':
        return Level.SKIPPED, text
    failed = Level.REFUSED if told is not None and told.hardware else Level.WARNING
    return Level.OK if verdict == 'pass' else failed, f'{text} ({LATE:.0%} of the commands are younger)'
