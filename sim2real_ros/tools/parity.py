# SPDX-License-Identifier: Apache-2.0
"""`sim2real parity POLICY TRACE`: does a contract build what the trainer's own deployment fed its network, and if not, why."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim2real_ros.contract import Contract, load_contract
from sim2real_ros.parity.compare import Report, compare
from sim2real_ros.parity.recorded import trace_of_run
from sim2real_ros.parity.trace import Trace, load_trace
from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.recording.bag import is_bag
from sim2real_ros.recording.reading import load_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('trace', type=Path, help='npz file, or a recording of our nodes (rosbag2); see docs/parity.md')
    parser.add_argument('--namespace', help='of the robot, where a recording holds several')
    parser.add_argument('--mend', type=Path, metavar='FILE', help='write the contract that agrees to this YAML file')
    parser.add_argument('--json', type=Path, help='write what was found to this file')
    parser.epilog = 'Exit code 0 when contract and trace agree, 1 otherwise.'


def main(arguments: argparse.Namespace) -> int:
    """Print what differs and why; returns 0 when nothing does."""
    for path, option in ((arguments.mend, '--mend'), (arguments.json, '--json')):
        if path is not None:
            writable_file(path, option)
    contract = load_contract(arguments.policy)
    trace = _trace(arguments.trace, contract, arguments.namespace)
    report = compare(contract, trace)
    if arguments.json is not None:
        write_text(arguments.json, json.dumps(asdict(report), indent=2) + '\n', '--json')
    for note in report.notes:
        print(f'{note.where} differs by {note.largest:.1e}: {note.cause}')
    if report.agrees:
        print(f'{contract.file.name} agrees with {len(trace.states)} ticks of {arguments.trace.name} to {report.left:.1e}')
        return 0
    _print(report)
    if report.mended is not None and arguments.mend is not None:
        if contract.model_path is not None:
            report.mended['model'] = {**report.mended['model'], 'file': str(contract.model_path)}
        write_text(arguments.mend, yaml.safe_dump(report.mended, sort_keys=False, width=128), '--mend')
        print(f'the contract that agrees is in {arguments.mend}')
    return 1


def _trace(path: Path, contract: Contract, namespace: str | None) -> Trace:
    if is_bag(path):
        return trace_of_run(load_run(path, namespace=namespace), contract)
    return load_trace(path)


def _print(report: Report) -> None:
    table = Table(title='what differs, first things first', title_justify='left')
    for column in ('where', 'largest', 'cause'):
        table.add_column(column)
    for difference in report.differences:
        cause = Text(difference.cause) if difference.cause else Text('no simple cause was found', style='bold red')
        table.add_row(difference.where, f'{difference.largest:.3g}', cause)
    console = Console()
    console.print(table)
    if report.changes:
        console.print('the contract would have to say:', markup=False)
        for change in report.changes:
            console.print(f'  {change}', markup=False)
        console.print(f'with that the inputs agree to {report.left:.1e}', markup=False)
