# SPDX-License-Identifier: Apache-2.0
"""In which order the controller takes the torques: read back from its own parameters and compared by name.

A command carries no names. A `forward_command_controller` says its order in the parameter `joints` and what it commands in
`interface_name`; both are asked for here, without any package of ros2_control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node

CONTROLLER = 'effort_controller'
PARAMETERS = ['joints', 'interface_name']


class ControllerOrder:
    """Asks one controller, as soon as it is there and again when it has been away.

    Attributes:
        answered: whether the controller has told its order since it was last missing.
        problem: the sentence about what differs, '' where nothing does or nothing was told yet.
    """

    def __init__(self, node: Node, controller: str, joints: Sequence[str], found: Callable[[str], None]) -> None:
        """Prepare; `look` does the asking, from an executor thread.

        Args:
            node: that commands; a relative controller is one of its namespace.
            controller: name of the controller's node.
            joints: order in which `node` sends torques.
            found: told the sentence about what differs, '' when nothing does; only when the controller has answered.
        """
        self._controller, self._joints, self._found = controller, tuple(joints), found
        self._client = node.create_client(GetParameters, f'{controller}/get_parameters')
        self._asking = False
        self.answered, self.problem = False, ''

    @property
    def pending(self) -> bool:
        """Whether the controller is there and has not told its order."""
        return not self.answered and self._client.service_is_ready()

    def look(self) -> None:
        """Ask, unless the controller has answered already or is not there."""
        if not self._client.service_is_ready():
            self.answered = self._asking = False
        elif not (self.answered or self._asking):
            self._asking = True
            self._client.call_async(GetParameters.Request(names=PARAMETERS)).add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        self._asking = False
        if future.exception() is None:
            self.answered = True
            self.problem = difference(self._controller, *told(future.result().values), self._joints)
            self._found(self.problem)


def told(values: Sequence[ParameterValue]) -> tuple[tuple[str, ...], str]:
    """Return joints and interface of an answer; empty where the controller has no such parameter."""
    by_name = dict(zip(PARAMETERS, values, strict=False))  # no values at all: a node that knows neither
    joints, interface = by_name.get('joints'), by_name.get('interface_name')
    names = joints.string_array_value if joints and joints.type == ParameterType.PARAMETER_STRING_ARRAY else ()
    kind = interface.string_value if interface and interface.type == ParameterType.PARAMETER_STRING else ''
    return tuple(names), kind


def difference(controller: str, joints: Sequence[str], interface: str, expected: Sequence[str]) -> str:
    """Return a sentence about what a controller does with commands that it should not, or ''.

    Args:
        controller: its name, for the sentence.
        joints: its order; empty where it has no parameter `joints`.
        interface: what it commands; empty where it does not say.
        expected: order in which torques are sent.
    """
    if not joints:
        return f'{controller} has no joints among its parameters: it is no forward_command_controller, or was not configured'
    if interface and interface != 'effort':
        return f'{controller} commands {interface}, it would take torques for that: set its interface_name to effort'
    missing, extra = [j for j in expected if j not in joints], [j for j in joints if j not in expected]
    if missing or extra:
        parts = [f'lacks {", ".join(missing)}'] if missing else []
        parts += [f'has {", ".join(extra)} besides'] if extra else []
        return f'{controller} drives other joints than the robot has: it {" and ".join(parts)}'
    if len(joints) != len(expected):
        return f'{controller} lists a joint twice: {", ".join(joints)}'
    for place, (theirs, ours) in enumerate(zip(joints, expected, strict=True), 1):
        if theirs != ours:
            return (
                f'{controller} takes torque {place} for {theirs}, it is sent for {ours}: '
                f'give command_joints the order of {controller}, [{", ".join(joints)}]'
            )
    return ''
