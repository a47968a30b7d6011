# SPDX-License-Identifier: Apache-2.0
"""`sim2real check POLICY [--robot R]`: everything that can be found out about a policy without a robot."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.policy.inspection import inspect, passed
from sim2real_ros.tools.arguments import milliseconds

COLOURS = {'pass': 'green', 'warn': 'yellow', 'fail': 'bold red', 'skip': 'dim'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--robot', help="hold it against this robot instead of the contract's own")
    parser.add_argument(
        '--command-age-ms', type=milliseconds, help='how old commands are at the motors, as sim2real preflight measures it'
    )
    parser.add_argument('--json', type=Path, help='write the checks to this file')
    parser.epilog = 'Exit code 0 when nothing failed, 1 otherwise; a warning is no failure.'


def main(arguments: argparse.Namespace) -> int:
    """Print the checks; returns 0 when none failed."""
    if arguments.json is not None:
        writable_file(arguments.json, '--json')
    age = None if arguments.command_age_ms is None else 1e-3 * arguments.command_age_ms
    checks = inspect(arguments.policy, arguments.robot, age)
    table = Table(title=f'check of {arguments.policy}', title_justify='left')
    for column in ('check', 'verdict', 'detail'):
        table.add_column(column)
    for check in checks:
        table.add_row(check.name, Text(check.verdict, style=COLOURS[check.verdict]), Text(check.detail))
    Console().print(table)
    if arguments.json is not None:
        text = json.dumps(
            {'policy': arguments.policy, 'passed': passed(checks), 'checks': [asdict(c) for c in checks]}, indent=2
        )
        write_text(arguments.json, text + '\n', '--json')
    return 0 if passed(checks) else 1
