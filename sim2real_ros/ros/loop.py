# SPDX-License-Identifier: Apache-2.0
"""`ControlLoop`: a thread with a wait set of its own for the few topics that control depends on.

An executor callback costs about twice the time of a take from a private wait set, and a slow parameter or diagnostics
callback would hold it up. So the hot subscriptions sit in a callback group that no executor may run, and this thread
takes their messages itself; parameters, services and timers of the same node are served by the ordinary executor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from sim2real_ros.ros.realtime import raise_thread

LONGEST_PAUSE_S = 0.1  # a node that is told to end has to notice


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A topic of the loop."""

    subscription: Subscription
    handler: Callable[[Any], None]
    raw: bool
    wakes: Callable[[], bool]


class Untouched(CallbackGroup):
    """A callback group whose entities no executor runs."""

    def can_execute(self, entity: Any) -> bool:  # noqa: D102
        return False

    def beginning_execution(self, entity: Any) -> bool:  # noqa: D102
        return False

    def ending_execution(self, entity: Any) -> None:  # noqa: D102
        return


def _ignore(_: Any) -> None:
    """No executor runs it; rclpy wants one."""


class ControlLoop:
    """Takes messages in a fixed order of topics and hands them to their handlers, on one thread.

    Topics added first are emptied first at every wake-up: add the one that triggers the tick (joint states) last, so
    that the tick sees everything that has arrived.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        idle: Callable[[], None] | None = None,
        idle_s: float = 0.1,
        pause: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Prepare the loop.

        Args:
            node: owner of the subscriptions.
            name: of the thread.
            idle: called after every wait, to notice what does not come.
            idle_s: longest wait, s.
            pause: asked before every wait: how long messages may lie until they are looked at, s. Each wake-up costs Python
                about 0.1 ms, so a loop that needs one state in ten should sleep through the others.
        """
        self._node, self._name, self._pause = node, name, pause
        self._idle, self._idle_ns = idle, int(idle_s * 1e9)
        self._group = Untouched()
        self._subscriptions: tuple[Entry, ...] = ()  # replaced as a whole: topics may be added while the loop runs
        self._taps: list[Subscription] = []
        self._wait_set: Any = None
        self._waits_on = -1  # topics that the wait set has room for
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def add(
        self,
        message_type: type,
        topic: str,
        handler: Callable[[Any], None],
        qos: QoSProfile,
        *,
        raw: bool = False,
        wakes: Callable[[], bool] = lambda: True,
    ) -> None:
        """Subscribe to a topic whose messages this loop takes.

        Args:
            message_type: of the topic.
            topic: relative name.
            handler: called with each message, in the loop's thread.
            qos: profile.
            raw: hand on the serialised bytes.
            wakes: whether a message on this topic ends a wait now; one that does not is taken when another does.
        """
        subscription = self._node.create_subscription(message_type, topic, handler, qos, callback_group=self._group)
        self._subscriptions = (*self._subscriptions, Entry(subscription, handler, raw, wakes))

    def tap(self, message_type: type, topic: str, qos: QoSProfile) -> Callable[[], bytes | None]:
        """Subscribe to a topic that the loop does not look at by itself.

        Returns:
            A function that takes the newest message as bytes, None without one; to be called in the loop's thread.
        """
        subscription = self._node.create_subscription(message_type, topic, _ignore, qos, callback_group=self._group)
        self._taps.append(subscription)

        def take() -> bytes | None:
            taken = subscription.handle.take_message(message_type, True)
            return taken[0] if taken is not None else None

        return take

    @property
    def running(self) -> bool:
        """Whether the thread has been started and not been stopped."""
        return self._thread is not None

    def start(self) -> None:
        """Start the thread."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; it is over when this returns."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def destroy(self) -> None:
        """End the thread and the subscriptions."""
        self.stop()
        for subscription in [*(entry.subscription for entry in self._subscriptions), *self._taps]:
            self._node.destroy_subscription(subscription)
        self._subscriptions, self._waits_on = (), -1
        self._taps.clear()

    def wait(self, timeout_ns: int) -> bool:
        """Wait for a message on any topic and handle those that are there; for loops that keep their own pace."""
        entries = self._subscriptions
        if self._waits_on != len(entries):
            self._wait_set = _rclpy.WaitSet(len(entries), 0, 0, 0, 0, 0, self._node.context.handle)
            self._waits_on = len(entries)
        wait_set = self._wait_set
        wait_set.clear_entities()
        waiting = [entry for entry in entries if entry.wakes()]
        for entry in waiting:
            wait_set.add_subscription(entry.subscription.handle)
        wait_set.wait(timeout_ns)
        return self.take_all([entry for i, entry in enumerate(waiting) if not wait_set.is_ready('subscription', i)])

    def take_all(self, empty: Sequence[Entry] = ()) -> bool:
        """Handle the newest message of each topic that has one; returns whether there was any.

        One each, so that a topic that is flooded cannot keep the others waiting.

        Args:
            empty: topics that are known to have none; to ask costs 10 us each.
        """
        any_message = False
        for entry in self._subscriptions:
            if entry in empty:
                continue
            take = entry.subscription.handle.take_message
            if (taken := take(entry.subscription.msg_type, entry.raw)) is not None:
                any_message = True
                entry.handler(taken[0])
        return any_message

    def _run(self) -> None:
        raise_thread(self._node)
        try:
            while not self._stop.is_set() and self._node.context.ok():
                if (pause := self._pause()) > 0:
                    time.sleep(min(pause, LONGEST_PAUSE_S))
                if pause <= 0 or not self.take_all():
                    self.wait(self._idle_ns)
                if self._idle is not None:
                    self._idle()
        except Exception as error:
            if self._node.context.ok():
                self._node.exit_code = 1  # a node without its loop is worse than none: end it
                self._node.get_logger().fatal(f'the control loop {self._name} failed: {error!r}')
                raise
