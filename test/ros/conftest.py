# SPDX-License-Identifier: Apache-2.0
"""Real nodes in processes of their own, on a private domain, with an operator."""

from __future__ import annotations

import itertools
import os

import pytest

rclpy = pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')

from running import running_stack  # noqa: E402

from sim2real_ros import bringup  # noqa: E402

DOMAINS = itertools.count(40 + os.getpid() % 100)


@pytest.fixture(autouse=True)
def private_domain(monkeypatch):
    """Neither another test nor another machine hears this one."""
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    monkeypatch.setenv('ROS_DOMAIN_ID', str(next(DOMAINS) % 200))


@pytest.fixture
def start(tmp_path):
    """Return a context manager that runs a stack; the trace can be read after it."""

    def run(processes=bringup.simulation, **options):
        return running_stack(tmp_path / f'{options.get("namespace", "")}trace.npz', processes, **options)

    return run


@pytest.fixture
def make():
    """Return a maker of nodes that were started with `-p name:=value`."""
    context, nodes = rclpy.Context(), []
    rclpy.init(context=context)

    def node(override):
        nodes.append(rclpy.create_node('tested', context=context, cli_args=['--ros-args', '-p', override]))
        return nodes[-1]

    yield node
    for made in nodes:
        made.destroy_node()
    rclpy.try_shutdown(context=context)
