# SPDX-License-Identifier: Apache-2.0
"""Child processes that end when we do: told to by us, in peace, or by the kernel when we were killed."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial

PR_SET_PDEATHSIG = 1  # of prctl(2)


def start_child(line: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own: Ctrl-C reaches us alone, and we end it when its turn has come."""
    return subprocess.Popen(line, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=partial(_begin, os.getpid()))


def end_children(children: Iterable[subprocess.Popen[bytes]], patience_s: float) -> bool:
    """End some at once as Ctrl-C would, and wait; those that have not ended in time are killed.

    Returns:
        Whether none had to be killed.
    """
    running = [child for child in children if child.poll() is None]
    for child in running:
        child.send_signal(signal.SIGINT)
    deadline, willing = time.monotonic() + patience_s, True
    for child in running:
        try:
            child.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            willing = False
            child.kill()
            child.wait()
    return willing


def _begin(parent: int) -> None:
    """Prepare the child: what a shell runs in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(parent)


def end_with_parent(parent: int, number: signal.Signals = signal.SIGINT) -> None:
    """Have the kernel send a signal to this process when its parent dies, however it dies (Linux; elsewhere nothing).

    Args:
        parent: its process number; where it has died already the signal comes at once.
        number: the signal.
    """
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)
