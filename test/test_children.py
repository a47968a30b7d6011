# SPDX-License-Identifier: Apache-2.0
"""Promises about child processes: none outlives us, and one that does not listen is killed and told."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sim2real_ros.children import end_children, start_child

DEAF = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
Path(sys.argv[1]).touch()
time.sleep(60)
"""
# a parent and its child, which holds the pipe open for as long as it lives
FAMILY = """
import signal, sys, time
from sim2real_ros.children import start_child
if sys.argv[1:] == ['background']:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it runs with &
start_child([sys.executable, '-c', 'import time; print("up", flush=True); time.sleep(60)'])
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != 'linux', reason='only Linux tells a child of the death of its parent')
@pytest.mark.parametrize('where', ['foreground', 'background'])
def test_a_child_ends_when_its_parent_is_killed(where):
    with subprocess.Popen([sys.executable, '-c', FAMILY, where], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b'up\n'
        os.kill(parent.pid, signal.SIGKILL)
        parent.communicate(timeout=20)  # raises where somebody still holds the pipe


def test_a_child_that_does_not_listen_is_killed_and_waited_for(tmp_path):
    child = start_child([sys.executable, '-c', DEAF, str(tmp_path / 'up')])
    while not (tmp_path / 'up').exists():
        time.sleep(0.02)
    assert not end_children([child], 0.2)
    assert child.returncode == -signal.SIGKILL
    assert end_children([child], 0.2), 'it has ended'
