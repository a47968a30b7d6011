# SPDX-License-Identifier: Apache-2.0
"""A running stack of real nodes, and the operator who tests it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim2real_ros import bringup
from sim2real_ros.ros.operator import Operator
from sim2real_ros.tools.processes import Stack, command_line


@dataclass
class Running:
    """A running stack, its operator, and where its trace will be."""

    stack: Stack
    operator: Operator
    trace_file: Path
    options: bringup.Options

    def stand_up(self):
        """Go from lying to the mode active."""
        self.operator.wait(lambda: self.operator.time > 0, 60, 'the simulator sent no clock')
        self.operator.insist('damp', 60)
        self.operator.insist('pose', 20)
        self.operator.insist('activate', 120)

    def kill(self, name):
        """SIGKILL a node; returns the simulated time that the operator knew last."""
        self.stack.children[name].kill()
        self.stack.children.pop(name).wait()
        return self.operator.time

    def revive(self, name):
        """Start a node that was killed afresh."""
        (process,) = [p for p in bringup.simulation(self.options) if p.executable == name]
        self.stack.children[name] = subprocess.Popen(command_line(process, self.options))

    def spin(self, seconds):
        """Let simulated time pass."""
        self.operator.spin(0.2)  # it may not have listened for a while
        end = self.operator.time + seconds
        self.operator.wait(lambda: self.operator.time >= end, 120, 'simulated time stood still')


@contextlib.contextmanager
def running_stack(
    trace_file: Path, processes: Callable[[bringup.Options], list[bringup.Process]] = bringup.simulation, **options: Any
) -> Iterator[Running]:
    """Run a stack in lockstep and as fast as possible, unless the options say otherwise; the trace can be read after it."""
    usual = {'lockstep': True, 'real_time_factor': 0.0, 'log_level': 'info', 'trace_file': str(trace_file)}
    chosen = bringup.Options(**{**usual, **options})
    with Stack(processes(chosen), chosen) as stack, Operator(chosen.namespace, stack.check) as operator:
        yield Running(stack, operator, trace_file, chosen)
