# SPDX-License-Identifier: Apache-2.0
"""Promises of `realtime_priority`: the threads that control have it, what is started later has not, and a refusal is told."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from std_msgs.msg import Empty

from sim2real_ros.errors import ParameterError
from sim2real_ros.ros import realtime
from sim2real_ros.ros.loop import ControlLoop

START_S = 30.0


def permitted() -> bool:
    """Return whether this user may have a real-time priority."""
    code = 'import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))'
    return subprocess.run([sys.executable, '-c', code], capture_output=True, check=False).returncode == 0


NEEDS_RIGHT = pytest.mark.skipif(not permitted(), reason='this user may not have a real-time priority')


def policies(process: int) -> dict[str, int]:
    """Return the scheduling policy of each thread of a process."""
    tasks = Path(f'/proc/{process}/task').iterdir()
    return {task.name: os.sched_getscheduler(int(task.name)) & ~os.SCHED_RESET_ON_FORK for task in tasks}


@NEEDS_RIGHT
def test_every_thread_of_a_node_gets_the_priority():
    line = [sys.executable, '-m', 'sim2real_ros.ros.safety_node', '--ros-args', '-p', 'realtime_priority:=20']
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as node:
        try:
            end = time.monotonic() + START_S
            while set(policies(node.pid).values()) != {os.SCHED_FIFO} and node.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            assert set(policies(node.pid).values()) == {os.SCHED_FIFO}
            assert os.sched_getparam(node.pid).sched_priority == 20
        finally:
            node.terminate()
            assert node.wait(START_S) == 0


@NEEDS_RIGHT
def test_a_loop_that_begins_later_gets_it_and_what_it_starts_does_not(make):
    node, seen = make('realtime_priority:=20'), []
    realtime.declare_priority(node)

    def look() -> None:
        if not seen:
            code = 'import os; print(os.sched_getscheduler(0))'
            child = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
            seen.append((os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, int(child.stdout)))

    loop = ControlLoop(node, 'tested', idle=look, idle_s=0.01)
    loop.add(Empty, 'nothing', lambda _: None, 1)
    loop.start()
    end = time.monotonic() + START_S
    while not seen and time.monotonic() < end:
        time.sleep(0.01)
    loop.stop()
    assert seen == [(os.SCHED_FIFO, os.SCHED_OTHER)]


def test_a_refusal_of_the_system_is_told_with_what_to_do(make, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, 'Operation not permitted')

    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    node, told = make('realtime_priority:=20'), []
    monkeypatch.setattr(node, 'get_logger', lambda: SimpleNamespace(warning=told.append))
    realtime.raise_process(node, realtime.declare_priority(node))
    assert len(told) == 1
    assert 'realtime_priority 20' in told[0]
    assert 'rtprio' in told[0]


def test_a_node_is_ordinary_unless_it_is_asked_for(make, monkeypatch):
    monkeypatch.setattr(os, 'sched_setscheduler', lambda *_: pytest.fail('nobody asked for it'))
    realtime.raise_process(node := make('other:=1'), realtime.declare_priority(node))


def test_a_priority_that_linux_does_not_have_is_refused(make):
    with pytest.raises(ParameterError, match=r'^parameter realtime_priority: 120 given, 0 to 98 possible$'):
        realtime.declare_priority(make('realtime_priority:=120'))
