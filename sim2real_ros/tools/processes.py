# SPDX-License-Identifier: Apache-2.0
"""`Stack`: the nodes as child processes, all ended together, whichever ends first."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence

from sim2real_ros.bringup import Options, Process
from sim2real_ros.children import end_children, start_child
from sim2real_ros.errors import DependencyError, RunError

PATIENCE_S = 10.0  # for a clean end, then SIGKILL: of the nodes that command, of the others, of a recorder
COMMANDING = ('safety_node', 'watchdog_node')


def require_ros() -> None:
    """Raise DependencyError when ROS 2 for Python, or its messages, are missing."""
    try:
        importlib.import_module('sim2real_ros.ros.operator')
    except ImportError as error:
        raise DependencyError(
            f'ROS 2 for Python is missing ({error}): source your ROS 2 installation, or pip install "sim2real_ros[ros]"'
        ) from None


def command_line(process: Process, options: Options) -> list[str]:
    """Return the command that starts a node."""
    line = [
        sys.executable,
        '-m',
        f'sim2real_ros.ros.{process.executable}',
        '--ros-args',
        '--log-level',
        options.log_level,
    ]
    line += ['--log-level', 'rcl:=error']
    if options.namespace:
        line += ['-r', f'__ns:=/{options.namespace.strip("/")}']
    for source, target in process.remappings:
        line += ['-r', f'{source}:={target}']
    for name, value in process.parameters.items():
        line += ['-p', f'{name}:={json.dumps(value)}']
    if options.params_file:
        line += ['--params-file', options.params_file]
    return line


class Stack:
    """Child processes of one bring-up; a context manager."""

    def __init__(self, processes: Sequence[Process], options: Options) -> None:
        self._descriptions, self._options = processes, options
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Stack:
        for process in self._descriptions:
            self.children[process.executable] = start_child(command_line(process, self._options))
        return self

    def check(self) -> None:
        """Raise RunError when a node has ended that the others need."""
        optional = self._optional()
        for name, child in self.children.items():
            if name not in optional and child.poll() is not None:
                raise RunError(f'{name} ended with code {child.returncode}; its own message is above')

    def _optional(self) -> set[str]:
        return {process.executable for process in self._descriptions if not process.essential}

    def __exit__(self, *_: object) -> None:
        """End the nodes that command, then policy and driver, then a recorder, which shall see how they ended.

        Each is given the time to leave a safe state behind: the safety node damps until the robot is at rest, and in lockstep
        time goes on for that only while driver and policy answer. The watchdog ends beside it: it would take the silence after
        the last command for a failure.
        """
        optional = self._optional()
        others = [name for name in self.children if name not in (*COMMANDING, *optional)]
        for names in (COMMANDING, others, optional):
            end_children([self.children[name] for name in names if name in self.children], PATIENCE_S)
