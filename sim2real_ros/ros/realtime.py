# SPDX-License-Identifier: Apache-2.0
"""Real-time scheduling of a node, so that other programs of the computer cannot hold up its control loop.

An ordinary process that wakes up may wait for a turn of 3 ms, or for several, while others compute: more than a period. With
`SCHED_FIFO`, as controller_manager of ros2_control has it, it runs at once.
"""

from __future__ import annotations

import os
from pathlib import Path

from rclpy.node import Node

from sim2real_ros.ros.parameters import declare

PARAMETER = 'realtime_priority'
HIGHEST = 98  # above it are threads of the kernel
TASKS = Path('/proc/self/task')  # threads of this process, on Linux
ADVICE = (
    'the operating system does not let this user have it: give it "rtprio 98" in /etc/security/limits.d and log in again; '
    'going on with an ordinary priority'
)


def declare_priority(node: Node) -> int:
    """Declare `realtime_priority` and return it: 1 to 98, or 0 for an ordinary process.

    Raises:
        ParameterError: another number was given.
    """
    text = 'SCHED_FIFO priority of the node, 1 to 98; 0: an ordinary process. Needs the right to it (rtprio), on Linux.'
    return int(declare(node, PARAMETER, 0, text, low=0, high=HIGHEST))


def raise_process(node: Node, priority: int) -> None:
    """Give every thread that the process has by now a real-time priority; a refusal of the system is a warning.

    Threads and processes that they start later are ordinary again: those that save and look things up shall wait.
    """
    if priority and not (TASKS.is_dir() and all(_raise(int(task.name), priority) for task in TASKS.iterdir())):
        node.get_logger().warning(f'{PARAMETER} {priority}: {ADVICE}')


def raise_thread(node: Node) -> None:
    """Give the calling thread the priority of its node, if it has one; what the system refuses it has told already."""
    if node.has_parameter(PARAMETER) and (priority := node.get_parameter(PARAMETER).value):
        _raise(0, priority)


def _raise(thread: int, priority: int) -> bool:
    """Return whether a thread, 0 for the calling one, has the priority now, or has ended meanwhile."""
    try:
        os.sched_setscheduler(thread, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True
