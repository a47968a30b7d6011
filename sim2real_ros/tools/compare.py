# SPDX-License-Identifier: Apache-2.0
"""`sim2real compare RUN_A RUN_B`: two recorded runs of one policy side by side: simulator, Gazebo, robot, in any pair."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from sim2real_ros.comparison.comparison import Comparison, compare_runs, refuse_other_robots
from sim2real_ros.comparison.page import age_rows, facts, quantity_rows, sentence, write_page
from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.recording.reading import load_run
from sim2real_ros.report.page import require_plotly

SHORT = {'position': 'q', 'velocity': 'qd', 'torque': 'torque'}
LONG = ('position', 'base')  # whose lag and correlation are printed
COLOURS = {'good': 'green', 'warn': 'yellow', 'bad': 'bold red', 'plain': ''}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('run_a', type=Path, help="rosbag2 (folder, .mcap, .db3) or a simulator's trace (.npz)")
    parser.add_argument('run_b', type=Path, help='the run whose differences are shown')
    parser.add_argument('--robot', default='', help='shipped name or robot YAML file (default: what the recordings name)')
    parser.add_argument('--namespace', help='of the robot, where a recording holds several')
    parser.add_argument('--html', type=Path, metavar='FILE', help='write a page with figures')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write all figures')
    parser.epilog = 'Exit code 0 when they could be compared, 1 when not.'


def main(arguments: argparse.Namespace) -> int:
    """Compare and print; returns 0."""
    for path, option in ((arguments.html, '--html'), (arguments.json, '--json')):
        if path is not None:
            writable_file(path, option)
    if arguments.html is not None:
        require_plotly()
    a, b = (load_run(path, arguments.robot, arguments.namespace) for path in (arguments.run_a, arguments.run_b))
    refuse_other_robots(a, b)
    comparison = compare_runs(a, b)
    _print(comparison)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(figures(comparison), indent=2) + '\n', '--json')
    if arguments.html is not None:
        write_page(comparison, arguments.html)
        print(f'the page is in {arguments.html}')
    return 0


def figures(comparison: Comparison) -> dict[str, Any]:
    """Return all figures as JSON takes them; null for what could not be measured."""
    alignment = comparison.alignment
    level, text = sentence(comparison)
    return {
        'runs': [run.source for run in comparison.runs],
        'robot': comparison.runs[0].robot or comparison.runs[1].robot,
        'policies': [run.contract.id if run.contract is not None else None for run in comparison.runs],
        'verdict': {'level': level, 'text': text},
        'identical': comparison.identical,
        'aligned_by': alignment.by,
        'begin_s': list(alignment.begin),
        'duration_s': float(alignment.time[-1]),
        'same_commands': _plain(alignment.agreeing),
        'findings': [{'level': finding.level, 'text': finding.text} for finding in comparison.findings],
        'lag_s': _plain(comparison.quantities['position'].measures.lag_of_all_s),
        'quantities': {
            name: {
                'unit': quantity.unit,
                'lag_of_all_s': _plain(quantity.measures.lag_of_all_s),
                'correlation_of_all': _plain(quantity.measures.correlation_of_all),
                'signals': {
                    signal: {
                        field: _plain(getattr(quantity.measures, field)[i])
                        for field in ('rmse', 'bias', 'largest', 'lag_s', 'correlation')
                    }
                    for i, signal in enumerate(quantity.signals)
                },
            }
            for name, quantity in comparison.quantities.items()
        },
        'command_age_s': [
            {str(q): float(np.quantile(ages, q)) for q in (0.5, 0.95, 0.99, 1.0)} if len(ages) else None
            for ages in comparison.ages
        ],
    }


def _table(comparison: Comparison) -> Table:
    """Return one line for each joint, then the base; bias and largest differences are left to the page."""
    table = Table(title='RMSE of each', title_justify='left', box=SIMPLE_HEAD)
    table.add_column('', no_wrap=True)
    rows: dict[str, list[str]] = {}
    for name, quantity in comparison.quantities.items():
        for signal, rmse, _, _, lag, alike in quantity_rows(quantity):
            joint = name != 'base'
            rows.setdefault(signal if joint else f'base {signal}', []).extend([rmse, lag, alike] if name in LONG else [rmse])
    columns = [c for name, q in comparison.quantities.items() if name != 'base' for c in _columns(name, q.unit)]
    for column in columns:
        table.add_column(column, justify='right')
    for signal, values in rows.items():
        table.add_row(signal, *values)
    return table


def _columns(name: str, unit: str) -> list[str]:
    return [f'{SHORT[name]} {unit}', *(['lag ms', 'correlation'] if name in LONG else [])]


def _plain(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _print(comparison: Comparison) -> None:
    console = Console(markup=False)
    a, b = (run.source for run in comparison.runs)
    console.print(f'A: {a}\nB: {b}')
    console.print('; '.join(f'{name} {value}' for name, value in facts(comparison).items()))
    for finding in comparison.findings:
        console.print(f'  {finding.text}', style=COLOURS[finding.level])
    console.print(_table(comparison))
    for letter, *ages in age_rows(comparison):
        median, _, most, largest = ages
        console.print(f'age of the commands in {letter}: {median} ms, 99 % below {most}, largest {largest}')
    level, text = sentence(comparison)
    console.print(text, style=COLOURS[level])
