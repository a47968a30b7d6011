# SPDX-License-Identifier: Apache-2.0
"""`Watcher`: an operator that listens to the diagnostics instead of the clock, so that it costs next to nothing itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import String

from sim2real_ros.ros.diagnostics import DIAGNOSTICS
from sim2real_ros.ros.operator import Operator


class Watcher(Operator):
    """Keeps what the nodes say of themselves once a second.

    Attributes:
        values: newest diagnostics by node: their values, `message`, and `at`, s on the steady clock.
        changes: modes as they were announced, with the steady time.
        history: called with the node's name for every message.
    """

    def __init__(self, namespace: str, alive: Callable[[], None]) -> None:
        """Connect; see `Operator`."""
        self.values: dict[str, dict[str, str | float]] = {}
        self.changes: list[tuple[float, str]] = []
        self.history: Callable[[str], None] = lambda _: None
        super().__init__(namespace, alive)
        for subscription in list(self._node.subscriptions):
            if subscription.topic_name.endswith('clock'):  # 500 messages a second in Python: a third of a core
                self._node.destroy_subscription(subscription)
        self._node.create_subscription(DiagnosticArray, 'diagnostics', self._on_diagnostics, DIAGNOSTICS)

    def number(self, node: str, key: str, default: float = 0.0) -> float:
        """Return a number of a node's newest diagnostics."""
        try:
            return float(self.values[node][key])
        except (KeyError, ValueError):
            return default

    def _on_mode(self, message: String) -> None:
        super()._on_mode(message)
        self.changes.append((time.monotonic(), message.data))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            node = status.name.partition(':')[0]
            values: dict[str, str | float] = {value.key: value.value for value in status.values}
            self.values[node] = values | {'message': status.message, 'at': time.monotonic()}
            self.history(node)
