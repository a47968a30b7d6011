# SPDX-License-Identifier: Apache-2.0
"""`sim2real pack POLICY -o one.onnx`: the whole policy in one file."""

from __future__ import annotations

import argparse
from pathlib import Path

from sim2real_ros.errors import OutputError
from sim2real_ros.paths import writable_file
from sim2real_ros.policy.pack import pack
from sim2real_ros.validation.admission import valid_passport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('-o', '--output', type=Path, required=True, help='ONNX file to write')


def main(arguments: argparse.Namespace) -> int:
    """Write the file and say what is in it."""
    out = writable_file(arguments.output, '-o')
    if out.suffix != '.onnx':
        raise OutputError(f'-o: {out} must end in .onnx, by which every command knows it')
    contract = pack(arguments.policy, out)
    golden = 'with golden vectors' if contract.file.golden is not None else 'without golden vectors'
    passport = 'with its passport' if valid_passport(contract) is not None else 'without a passport'
    print(f'{out}: {contract.file.name} [{contract.id}], {out.stat().st_size / 1024:.0f} kB, {golden}, {passport}')
    return 0
