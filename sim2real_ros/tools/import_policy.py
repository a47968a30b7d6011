# SPDX-License-Identifier: Apache-2.0
"""`sim2real import SRC -o DIR`: a policy of another trainer in our format, with every assumption printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from sim2real_ros.contract.importers.formats import FORMATS
from sim2real_ros.contract.importers.importer import import_policy
from sim2real_ros.contract.importers.joint_files import joints_of_model
from sim2real_ros.contract.importers.sources import to_number
from sim2real_ros.document import parse_yaml
from sim2real_ros.tools.show import known_robot, report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('source', type=Path, metavar='SRC', help='folder or file of the policy')
    parser.add_argument('-o', '--out', type=Path, required=True, metavar='DIR', help='folder for policy.yaml and policy.onnx')
    parser.add_argument('--format', default='auto', help=f'auto, {", ".join(FORMATS)}')
    parser.add_argument('--robot', help='name of the robot')
    parser.add_argument('--name', help='name of the policy')
    names = parser.add_mutually_exclusive_group()
    names.add_argument('--joints', type=_names, metavar='A,B,C', help='joint names, where the source has none')
    names.add_argument('--joints-from', type=Path, metavar='FILE', help='MJCF or URDF to take the joint names from')
    parser.add_argument('--preset', help='of a format that needs one: playground')
    parser.add_argument('--network', type=Path, metavar='FILE', help='the network, where the source does not name it')
    parser.add_argument(
        '--set', action='append', default=[], type=_setting, metavar='PATH=VALUE', help='a field of the contract, in YAML'
    )
    parser.add_argument('--force', action='store_true', help='replace a policy that is there already')


def main(arguments: argparse.Namespace) -> int:
    """Import, and print what was understood."""
    joints = joints_of_model(arguments.joints_from) if arguments.joints_from else arguments.joints
    contract = import_policy(
        arguments.source,
        arguments.out,
        arguments.format,
        {path: value for path, text in arguments.set for value in [setting_value(path, text)]},
        robot=arguments.robot,
        name=arguments.name,
        joints=joints,
        network=arguments.network,
        preset=arguments.preset,
        force=arguments.force,
    )
    console = Console(markup=False)
    console.print(f'written: {arguments.out / "policy.yaml"}, {arguments.out / "policy.onnx"}')
    report(console, contract, known_robot(contract.file.robot))
    if contract.file.assumptions:
        console.print('Check the assumptions; change one with --set FIELD=VALUE --force, or in policy.yaml.')
    return 0


def setting_value(path: str, text: str) -> Any:
    """Return the value of a setting: YAML, where 1e-3 is a number too."""
    value = parse_yaml(text, f'--set {path}')
    number = to_number(value)
    return number if isinstance(value, str) and number is not None else value


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(','))


def _setting(text: str) -> tuple[str, str]:
    path, sign, value = text.partition('=')
    if not sign or not path:
        raise argparse.ArgumentTypeError(f'"{text}" is not of the form path=value, as in phase.period_s=0.8')
    return path.strip(), value
