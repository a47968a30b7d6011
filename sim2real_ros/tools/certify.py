# SPDX-License-Identifier: Apache-2.0
"""`sim2real certify ROBOT`: what the safety node may count on: brakes, gains, barrier, and which promises follow."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.robot import load_robot
from sim2real_ros.tools.assessment import HELD, NONE, TESTED, Assessment, JointFigures, assess

WIDTH = 120  # characters, where the output is no terminal
COLOURS = {HELD: 'green', TESTED: 'yellow', NONE: 'red'}
MEANING = """\
held         while the base is fixed, masses are right within 20 % and feedback is no older than the delay
tested only  attacked in simulation with bounded overshoot, no proof
none         not promised. Contacts, and a robot on its feet, are never covered: docs/safety.md"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('robot', help='shipped name or robot file')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write everything to this file')
    parser.add_argument('--strict', action='store_true', help='exit with 1 for a weak joint too, for scripts')
    parser.epilog = (
        'Exit code 0 when the safety node accepts the robot, 1 when it refuses it. A weak joint is a warning, as the node '
        'starts with it: its limit is not promised. With --strict it is 1 too, also where MuJoCo is missing and all are weak.'
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the certificate; returns 0 when the safety node would start."""
    if arguments.json is not None:
        writable_file(arguments.json, '--json')
    found = assess(load_robot(arguments.robot))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    console.print(_brakes(found))
    console.print(_gains(found))
    _verdict(console, found)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(found.document(), indent=2) + '\n', '--json')
    return 1 if found.faults or (arguments.strict and found.weak) else 0


def _brakes(found: Assessment) -> Table:
    robot = found.robot
    table = Table(
        title=f'robot {robot.name}: what each joint can brake; promise: stays inside its position limit',
        title_justify='left', box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    used = {mode: '\n(used)' if mode == found.barrier else '' for mode in ('per joint', 'coupled')}
    table.add_column('joint', no_wrap=True)
    for column in ('soft range\nrad', 'speed\nrad/s', 'brake rad/s^2\nasked', '\nhas', 'load', 'reaction'):
        table.add_column(column, no_wrap=True, justify='right')
    for mode, mark in used.items():
        table.add_column(f'{mode}{mark}')
    for joint in found.joints:
        low, high = joint.soft_range_rad
        table.add_row(
            joint.name, f'{low:.2f} {high:.2f}', f'{joint.velocity_rad_s:g}', f'{joint.brake_asked:.3g}',
            f'{joint.brake_certified:.3g}' if joint.certified else '-', _figure(joint.load), _figure(joint.reaction),
            *(Text(word, style=COLOURS[word]) for word in (joint.promise_per_joint, joint.promise_coupled)),
        )  # fmt: skip
    return table


def _gains(found: Assessment) -> Table:
    table = Table(
        title=f'gains at {found.robot.sensors.rate_hz:g} Hz: kd and kp figures must stay below 1',
        title_justify='left', box=SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column('joint', no_wrap=True)
    for column in ('inertia J\nleast kg m^2', '\nmost', 'pose_move\nkd dt / J', '\nsqrt(kp / J) dt', 'damping\nkd dt / J'):
        table.add_column(column, no_wrap=True, justify='right')
    for joint in found.joints:
        table.add_row(joint.name, *(_figure(value, '.3g') for value in _stability(joint)))
    return table


def _stability(joint: JointFigures) -> tuple[float | None, ...]:
    return joint.inertia_low, joint.inertia_high, joint.pose_damping, joint.pose_frequency, joint.damping


def _figure(value: float | None, form: str = '.2f') -> str:
    return 'unknown' if value is None else f'{value:{form}}'


def _verdict(console: Console, found: Assessment) -> None:
    """Print what stands below the tables: barrier, clock, words, and whatever is wrong."""
    robot = found.robot
    console.print(f'barrier: {found.barrier}; {found.reason}', soft_wrap=True)
    console.print(f'reckons with: {robot.sensors.rate_hz:g} Hz, command delay {1e3 * robot.safety.command_delay_s:g} ms')
    console.print(MEANING)
    for why, names in found.weak.items():
        who = 'every joint' if len(names) == len(robot.joints) else ', '.join(names)
        console.print(f'warning: weak, so without a promise: {who}: {why}', style='yellow', soft_wrap=True)
    if found.gains_unknown:
        console.print('warning: the gains were not held against the rate: no inertia is known', style='yellow')
    for fault in found.faults:
        console.print(f'refused: {fault}', style='red', soft_wrap=True)
    if not found.faults:
        console.print('the safety node accepts this robot', style='green')
