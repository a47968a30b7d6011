# SPDX-License-Identifier: Apache-2.0
"""`sim2real preflight`: what must hold of a running stack before the robot is armed. It commands nothing, but for --wiggle."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim2real_ros.errors import NotFoundError, RunError
from sim2real_ros.preflight.checks import examine, may_arm
from sim2real_ros.preflight.finding import Finding, Level
from sim2real_ros.preflight.wiring import NAME, wiring_findings
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.tools.arguments import namespace, watched_seconds
from sim2real_ros.tools.processes import require_ros

if TYPE_CHECKING:
    from sim2real_ros.ros.preflight import Look

NICENESS = 10  # the robot's own nodes go first
COLOURS = {Level.OK: 'green', Level.SKIPPED: 'dim', Level.WARNING: 'yellow', Level.REFUSED: 'bold red'}
CONSENT = (
    'Each joint will be turned a little, with up to 15 % of its torque, without any feedback; all other joints are slack.\n'
    'Does the robot hang or lie, are people away from it, and is the emergency stop in your hand? [y/N] '
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        '--robot', default='', help='shipped name or robot YAML file (default: that of the running safety_node)'
    )
    parser.add_argument('--namespace', type=namespace, default='', help='of the stack')
    parser.add_argument('--seconds', type=watched_seconds, default=2.0, help='to watch, 0.5 to 60 (default 2)')
    parser.add_argument('--wiggle', action='store_true', help='then turn each joint a little, to find wrong orders and signs')
    parser.add_argument('--yes', action='store_true', help='do not ask before that')
    parser.add_argument('--json', action='store_true', help='print JSON instead of a table')


def main(arguments: argparse.Namespace) -> int:
    """Look, print, and return 0 when nothing speaks against arming the robot, else 1."""
    require_ros()
    from sim2real_ros.ros.preflight import Look  # noqa: PLC0415 - rclpy only where ROS is used

    os.nice(NICENESS)
    with Look(arguments.namespace) as look:
        robot = _robot(look, arguments.robot)
        findings = examine(look.watch(robot, arguments.seconds))
    if arguments.wiggle:
        findings += _wiggle(robot, arguments, findings)
    if arguments.json:
        print(json.dumps({'may_arm': may_arm(findings), 'findings': [_plain(finding) for finding in findings]}, indent=2))
    else:
        _print(findings)
    return 0 if may_arm(findings) else 1


def _robot(look: Look, given: str) -> Robot:
    name = given or look.parameters.get('robot')
    if not name:
        raise NotFoundError('safety_node does not answer, so nobody tells which robot this is: start it, or give --robot')
    return load_robot(name, look.parameters.get('profile') or '')


def _wiggle(robot: Robot, arguments: argparse.Namespace, before: Sequence[Finding]) -> list[Finding]:
    """Wiggle each joint, if the checks before and the operator allow it."""
    from sim2real_ros.ros.operator import Operator  # noqa: PLC0415
    from sim2real_ros.ros.wiggling import wiggle  # noqa: PLC0415

    if not may_arm(list(before)):
        return [Finding(NAME, Level.SKIPPED, 'no joint was wiggled: mend what is refused above first')]
    if not arguments.yes and not _consent():
        return [Finding(NAME, Level.SKIPPED, 'no joint was wiggled: you did not consent')]
    with Operator(arguments.namespace) as operator:
        try:
            response = wiggle(operator, robot.joints, lambda joint: print(f'wiggling {joint}', file=sys.stderr))
        except RunError as error:
            return [Finding(NAME, Level.REFUSED, str(error))]
    return wiring_findings(robot.joints, response)


def _consent() -> bool:
    try:
        print(CONSENT, end='', file=sys.stderr, flush=True)
        return input().strip().lower() in ('y', 'yes')
    except EOFError:
        return False


def _plain(finding: Finding) -> dict[str, str]:
    return {'check': finding.check, 'level': finding.level.value, 'text': finding.text}


def _print(findings: list[Finding]) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column('check', no_wrap=True)
    table.add_column('', no_wrap=True)
    table.add_column('what was found')
    for finding in findings:
        table.add_row(finding.check, Text(finding.level.value, style=COLOURS[finding.level]), Text(finding.text))
    console = Console()
    console.print(table)
    refused = sum(finding.level is Level.REFUSED for finding in findings)
    if refused:
        console.print(f'do not arm this robot: {refused} of {len(findings)} checks refuse', style='bold red')
    else:
        console.print('nothing that was looked at speaks against arming this robot', style='green')
