# SPDX-License-Identifier: Apache-2.0
"""The real nodes against the fake ros2_control: started together from an empty graph, operated, and ended one by one."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ros_traces import leans, read_trace

from sim2real_ros import bringup
from sim2real_ros.errors import RunError
from sim2real_ros.ros.operator import Operator
from sim2real_ros.tools.processes import command_line

FAKE = Path(__file__).with_name('fake_ros2_control.py')
REMAPPED = ['-r', 'imu/data:=imu_sensor_broadcaster/imu']
PATIENCE_S = 20


class FakeStack:
    """Running processes and their operator.

    Attributes:
        operator: of the stack.
        children: processes by name; the fake is `fake`.
        trace, events: what happened in the fake, once it has ended.
    """

    def __init__(self, folder: Path, nodes: tuple[str, ...], options: dict[str, Any], fake: dict[str, Any]) -> None:
        self._trace_file = folder / 'fake.npz'
        chosen = bringup.Options(**{'lockstep': True, 'log_level': 'info', **options})
        lockstep = {'lockstep': chosen.lockstep, 'trace_file': str(self._trace_file)}
        self.children = {'fake': subprocess.Popen([sys.executable, str(FAKE), *_given(lockstep | fake)])}
        self._options = chosen
        for process in bringup.control(chosen):
            if process.executable in nodes:
                self.start(process)
        self.operator = Operator('', self.check)
        self.trace: dict[str, np.ndarray] = {}
        self.events: list[tuple[float, str]] = []

    def start(self, process: bringup.Process) -> None:
        line = [*command_line(process, self._options), *REMAPPED]
        self.children[process.executable] = subprocess.Popen(line)

    def check(self) -> None:
        for name, child in self.children.items():
            if child.poll() is not None:
                raise RunError(f'{name} ended with code {child.returncode}')

    def end(self, name: str, number: signal.Signals = signal.SIGINT) -> int:
        """End a process and return its exit code."""
        child = self.children.pop(name)
        child.send_signal(number)
        try:
            return child.wait(PATIENCE_S)
        finally:
            child.kill()

    def arm(self) -> None:
        """Bring everything into the order that a launch has to keep: damping first, then the controller."""
        self.operator.wait(lambda: self.operator.time > 0, 60, 'the fake sent no clock')
        self.operator.insist('damp', 60)
        self.spin(0.1)
        if self.operator.mode == 'fault':  # lockstep waits from the first command on: a busy machine may lose a state before
            self.operator.insist('reset', 60)
        self.manage('activate')

    def stand_up(self) -> None:
        """From the mode damping to the mode active."""
        self.operator.insist('pose', 60)
        self.operator.insist('activate', 60)

    def manage(self, service: str) -> None:
        """Call a service of the fake's controller manager."""
        assert self.operator.call(f'controller_manager/{service}') is None

    def spin(self, seconds: float) -> None:
        """Let simulated time pass."""
        self.operator.spin(0.2)  # it may not have listened for a while
        end = self.operator.time + seconds
        self.operator.wait(lambda: self.operator.time >= end, 120, 'simulated time stood still')

    def close(self) -> None:
        """End all, the fake last, and read what happened."""
        for name in [name for name in self.children if name != 'fake']:
            self.end(name)
        with contextlib.suppress(KeyError):
            self.end('fake')
        self.trace = read_trace(self._trace_file)
        self.events = [(t, text) for t, text in json.loads(self._trace_file.with_suffix('.json').read_text())]

    def happened(self, text: str) -> float:
        """Return when something happened, s."""
        return next(t for t, other in self.events if text in other)

    def since(self, seconds: float) -> dict[str, np.ndarray]:
        """Return the trace from a time on, with the lean of the base in rad and its height in m."""
        rows = self.trace['time'] >= seconds - 1e-9
        whole = {name: values[rows] for name, values in self.trace.items() if len(values) == len(rows)}
        return {**whole, 'lean': leans(whole), 'height': whole['qpos'][:, 2], 'speed': np.abs(whole['qvel'][:, 6:]).max(1)}


@contextlib.contextmanager
def fake_stack(
    folder: Path,
    nodes: tuple[str, ...] = ('watchdog_node', 'safety_node', 'policy_node'),
    options: dict[str, Any] | None = None,
    **fake: Any,
) -> Iterator[FakeStack]:
    """Run the nodes of the bring-up beside the fake; `fake` are its parameters."""
    stack = FakeStack(folder, nodes, options or {}, fake)
    try:
        with stack.operator:
            yield stack
            stack.close()
    finally:
        for child in stack.children.values():
            child.kill()
            child.wait()


def _given(parameters: dict[str, Any]) -> list[str]:
    words = ['--ros-args', '--log-level', 'warn', '--log-level', 'rcl:=error']
    for name, value in parameters.items():
        words += ['-p', f'{name}:={json.dumps(value)}']
    return words
