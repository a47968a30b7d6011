# SPDX-License-Identifier: Apache-2.0
"""`sim2real record`: record a stack that runs, until Ctrl-C.

It becomes `recorder_node`. A launch has the same with record:=true.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sim2real_ros.bringup import Options, Process
from sim2real_ros.errors import ParameterError
from sim2real_ros.recording.topics import TOPICS
from sim2real_ros.recording.writer import dated_folder, new_folder
from sim2real_ros.tools.arguments import namespace, remapping
from sim2real_ros.tools.processes import command_line, require_ros


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('folder', type=Path, nargs='?', help='of the recording, must not exist (default: run_<UTC time>)')
    parser.add_argument('--namespace', type=namespace, default='', help='of the stack')
    parser.add_argument(
        '--remap', type=remapping, action='append', default=[], metavar='NAME:=TOPIC',
        help='where a topic of ours has another name, as imu/data:=imu_sensor_broadcaster/imu',
    )  # fmt: skip
    parser.epilog = 'Ctrl-C ends it; then the recording can be read.'


def main(arguments: argparse.Namespace) -> int:
    """Become the recorder; the exit code is that of `recorder_node`."""
    names = [topic.name for topic in TOPICS]
    full = [f'/{arguments.namespace}/{name}'.replace('//', '/') for name in names]
    unknown = [name for name, _ in arguments.remap if name not in (*names, *full)]
    if unknown:
        raise ParameterError(f'--remap: {", ".join(unknown)} is no topic of ours; they are {", ".join(names)}')
    require_ros()
    folder = new_folder(arguments.folder or dated_folder(), 'FOLDER')
    process = Process('recorder_node', {'folder': str(folder)}, remappings=tuple(arguments.remap))
    line = command_line(process, Options(namespace=arguments.namespace))
    os.execv(line[0], line)
