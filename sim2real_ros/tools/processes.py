# SPDX-License-Identifier: Apache-2.0
"""`Stack`: the nodes as child processes, all ended together, whichever ends first."""

from __future__ import annotations

import ctypes
import importlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from sim2real_ros.bringup import Options, Process
from sim2real_ros.errors import DependencyError, RunError

PR_SET_PDEATHSIG = 1  # of prctl(2)
PATIENCE_S = 10.0  # for a clean end; then SIGKILL


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


def _end_with_parent() -> None:
    """Have the kernel send SIGINT to this process when its parent dies, however it dies (Linux; elsewhere nothing)."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


class Stack:
    """Child processes of one bring-up; a context manager."""

    def __init__(self, processes: Sequence[Process], options: Options) -> None:
        self._descriptions, self._options = processes, options
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Stack:
        for process in self._descriptions:
            # a session of its own: Ctrl-C reaches us alone, and we end the nodes in order
            self.children[process.executable] = subprocess.Popen(
                command_line(process, self._options), start_new_session=True, preexec_fn=_end_with_parent
            )
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
        """End policy, safety, watchdog and driver, in this order, each given the time to leave a safe state behind.

        A recorder is ended when they have ended: it shall see how.
        """
        optional = self._optional()
        order: list[str] = [n for n in ('policy_node', 'safety_node', 'watchdog_node') if n in self.children]
        order += [name for name in self.children if name not in order]
        self._end([self.children[name] for name in order if name not in optional])
        self._end([self.children[name] for name in order if name in optional])

    @staticmethod
    def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE_S
        for child in children:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
