# SPDX-License-Identifier: Apache-2.0
"""The life of a node's process: start, spin, end on SIGINT or SIGTERM in the safe state and with exit code 0."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import rclpy
from rclpy.duration import Duration
from rclpy.exceptions import InvalidNamespaceException, InvalidNodeNameException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from sim2real_ros.errors import ParameterError, Sim2RealError
from sim2real_ros.ros.realtime import declare_priority, raise_process

GARBAGE = 20_000  # objects between two collections; loops of a few dozen live ones need no more
# How long a thread of Python may keep the others waiting: the default of 5 ms is more than two ticks of a control loop.
SWITCH_INTERVAL_S = 0.001
LAST_WORDS_S = 0.3  # for all that a node has published

# what rclpy raises for names and parameters that a user got wrong, where we do not say it better
ROS_MISTAKES = (ParameterException, InvalidNamespaceException, InvalidNodeNameException)


class Runnable(Protocol):
    """What a node's process needs of its node."""

    exit_code: int | None  # set by the node when it must end

    def begin(self) -> None:
        """Start to work; raises Sim2RealError when it cannot."""

    def close(self) -> None:
        """Leave everything in the safe state; publishers still work."""


def run_node(make: Callable[[], Node]) -> int:
    """Run a node until it is told to stop or says that it must.

    rclpy's own signal handlers shut the context down at once, before a last command could be sent; so the signals are
    taken here.

    Returns:
        Exit code: 0 after a clean end, 1 after a user's mistake (one message on stderr), else the node's own.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    node, code = None, 0
    try:
        _start_ros()
        node = make()
        priority = declare_priority(node)
        node.begin()
        raise_process(node, priority)
        gc.collect()
        gc.set_threshold(GARBAGE)
        gc.freeze()  # what lives as long as the node need not be looked through again while it controls
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not stop.is_set() and node.exit_code is None:
            executor.spin_once(timeout_sec=0.2)
    except ExternalShutdownException:
        pass
    except (Sim2RealError, *ROS_MISTAKES) as error:
        print(f'{node.get_name() if node is not None else Path(sys.argv[0]).stem}: {error}', file=sys.stderr, flush=True)
        return 1
    finally:
        if node is not None:
            node.close()
            code = node.exit_code or 0  # also what went wrong on the way out
            _deliver(node)
            node.destroy_node()
        rclpy.try_shutdown()
    return code


def _deliver(node: Node) -> None:
    """Wait until the last words have come across: what lies in the memory of a process that ends is lost with it."""
    deadline = time.monotonic() + LAST_WORDS_S  # readers that were killed acknowledge nothing
    for publisher in node.publishers:
        with contextlib.suppress(_rclpy.RCLError):  # not every middleware can tell
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, deadline - time.monotonic())))


def _start_ros() -> None:
    """Initialise rclpy, which reads the ROS arguments.

    Raises:
        ParameterError: it cannot read them; without the line numbers of its own source.
    """
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except _rclpy.UnknownROSArgsError as error:
        raise ParameterError(f'ROS arguments that nobody knows: {error}') from None
    except _rclpy.RCLError as error:
        reason = str(error).removeprefix('failed to initialize rcl: ').partition(', at ')[0]
        raise ParameterError(f'ROS does not understand its arguments: {reason}') from None
