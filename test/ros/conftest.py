# SPDX-License-Identifier: Apache-2.0
"""Real nodes in processes of their own, on a private domain, with an operator."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')

from sim2real_ros import bringup  # noqa: E402
from sim2real_ros.ros.operator import Operator  # noqa: E402
from sim2real_ros.tools.processes import Stack  # noqa: E402

DOMAINS = itertools.count(40 + os.getpid() % 100)


@pytest.fixture(autouse=True)
def private_domain(monkeypatch):
    """Neither another test nor another machine hears this one."""
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    monkeypatch.setenv('ROS_DOMAIN_ID', str(next(DOMAINS) % 200))


@dataclass
class Running:
    """A running stack, its operator, and where its trace will be."""

    stack: Stack
    operator: Operator
    trace_file: Path

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

    def spin(self, seconds):
        """Let simulated time pass."""
        self.operator.spin(0.2)  # it may not have listened for a while
        end = self.operator.time + seconds
        self.operator.wait(lambda: self.operator.time >= end, 120, 'simulated time stood still')


@pytest.fixture
def start(tmp_path):
    """Return a context manager that runs a stack; the trace can be read after it."""

    @contextlib.contextmanager
    def run(processes=bringup.simulation, **options):
        trace_file = tmp_path / f'{options.get("namespace", "")}trace.npz'
        chosen = bringup.Options(**{'lockstep': True, 'log_level': 'info', 'trace_file': str(trace_file), **options})
        with Stack(processes(chosen), chosen) as stack, Operator(chosen.namespace, stack.check) as operator:
            yield Running(stack, operator, trace_file)

    return run
