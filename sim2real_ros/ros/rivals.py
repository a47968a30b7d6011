# SPDX-License-Identifier: Apache-2.0
"""Who else commands the motors: other publishers of the command topic, other controllers that hold the same joints.

Two sources of torque on one topic take turns at 500 Hz; robots have been broken by that. The safety node refuses to arm
while there is another one and trips when one appears. Only the watchdog of its own namespace may publish there as well.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.node import Node

WATCHDOG_NODE = 'watchdog_node'
NAMESAKE = ' (one that was killed is listed for up to 20 s after its death: wait, then reset)'  # participant lease of DDS
LIST_CONTROLLERS = 'controller_manager/list_controllers'  # of our namespace


class Rivals:
    """Watches the graph for one node and its command topic."""

    def __init__(self, node: Node, topic: str, joints: Iterable[str], found: Callable[[str], None]) -> None:
        """Prepare; `look` does the looking, from an executor thread.

        Args:
            node: that may publish.
            topic: resolved name of the command topic.
            joints: that the node commands.
            found: told the sentence about the rivals, '' when there are none; also later, when ros2_control has answered.
        """
        self._node, self._topic, self._joints, self._found = node, topic, tuple(joints), found
        self._own = (node.get_name(), node.get_namespace())
        self._publishers = self._controllers = ''
        self._client = _controller_client(node)

    def look(self) -> None:
        """Look once and tell what was found."""
        endpoints = self._node.get_publishers_info_by_topic(self._topic)
        ends = [(end.node_name, end.node_namespace) for end in endpoints]
        self._publishers = foreign_publishers(ends, self._own, self._topic)
        if self._client is not None and self._client.service_is_ready():
            self._client.call_async(_list_request()).add_done_callback(self._on_controllers)
        else:
            self._controllers = ''  # nobody tells any more: what was told last must not block arming for ever
        self._tell()

    def _on_controllers(self, future: Any) -> None:
        if future.exception() is None:
            self._controllers = holders(future.result().controller, self._joints, self._topic)
            self._tell()

    def _tell(self) -> None:
        self._found('; '.join(part for part in (self._publishers, self._controllers) if part))


def foreign_publishers(publishers: Iterable[tuple[str, str]], own: tuple[str, str], topic: str) -> str:
    """Return a sentence about publishers of a topic that should not be there, or ''.

    Args:
        publishers: node name and namespace of each.
        own: node name and namespace of the one that may publish; the watchdog of its namespace may too, once.
        topic: for the sentence.
    """
    allowed = Counter((own, (WATCHDOG_NODE, own[1])))
    others = Counter(publishers) - allowed
    if not others:
        return ''
    names = ', '.join(f'{namespace.rstrip("/")}/{name}' for name, namespace in others)
    text = f'{names} publishes on {topic} as well: only one node may command the motors, stop the other one'
    return text + (NAMESAKE if set(others) & set(allowed) else '')


def holders(controllers: Iterable[Any], joints: Iterable[str], topic: str) -> str:
    """Return a sentence about active ros2_control controllers that hold effort interfaces of our joints, or ''.

    Args:
        controllers: controller_manager_msgs/ControllerState: name, state, claimed_interfaces.
        joints: ours.
        topic: of our commands, `<namespace>/<controller>/commands`: that controller is ours.
    """
    ours = topic.split('/')[-2]
    wanted = {f'{joint}/{kind}' for joint in joints for kind in ('effort', 'position', 'velocity')}
    rivals = [c.name for c in controllers if c.state == 'active' and c.name != ours and wanted & set(c.claimed_interfaces)]
    if not rivals:
        return ''
    return f'the controllers {", ".join(rivals)} of ros2_control hold the same joints: deactivate them'


def can_ask() -> bool:
    """Return whether ros2_control can be asked from here: its messages come with it, and are in no wheel."""
    return importlib.util.find_spec('controller_manager_msgs') is not None


def _controller_client(node: Node) -> Any:
    try:
        from controller_manager_msgs.srv import ListControllers  # noqa: PLC0415 - only where ros2_control is installed
    except ImportError:
        return None
    return node.create_client(ListControllers, LIST_CONTROLLERS)


def _list_request() -> Any:
    from controller_manager_msgs.srv import ListControllers  # noqa: PLC0415

    return ListControllers.Request()


def controller_list(node: Node, wait: Callable[[Callable[[], bool], float], bool], timeout_s: float = 2.0) -> Any:
    """Return the controllers of ros2_control as `holders` takes them, None where nobody tells.

    Args:
        node: that asks.
        wait: serves it until a condition holds, at most for so long; returns whether it does.
        timeout_s: longest wait, s.
    """
    client = _controller_client(node)
    if client is None:
        return None
    try:
        if not wait(client.service_is_ready, timeout_s):
            return None
        future = client.call_async(_list_request())
        return future.result().controller if wait(future.done, timeout_s) else None
    finally:
        node.destroy_client(client)
