# SPDX-License-Identifier: Apache-2.0
"""`Surroundings`: what is wrong around the safety node, looked at every second and before every arming."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from sim2real_ros.ros.controller_order import CONTROLLER, ControllerOrder
from sim2real_ros.ros.motor_output import MotorOutput
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.rivals import Rivals

PERIOD_S = 1.0


class Surroundings:
    """Declares `controller`; looks for rivals, and at the order in which the controller takes the torques."""

    def __init__(
        self, node: Node, motors: MotorOutput, order: tuple[str, ...], found: Callable[[str, str], None], *, read_only: bool
    ) -> None:
        """Begin to look.

        Args:
            node: that commands.
            motors: its way out.
            order: of the joints in its commands.
            found: told name and sentence of what is wrong, '' when it is no more; from an executor thread.
            read_only: look at nothing: others may command as they like then.
        """
        text = 'The controller that takes the commands. Where it is there, its joints must be ours; empty: there is none.'
        controller = declare(node, 'controller', CONTROLLER, text)
        self._order: ControllerOrder | None = None
        self._watches: list[Rivals | ControllerOrder] = []
        if read_only:
            return
        self._watches.append(Rivals(node, motors.topic, order, partial(found, 'second_publisher')))
        if controller and motors.kind == 'torque':
            self._order = ControllerOrder(node, controller, order, partial(found, 'command_order'))
            self._watches.append(self._order)
        node.create_timer(PERIOD_S, self.look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def pending(self) -> bool:
        """Whether the controller is there and has not told its joints yet; arming has to wait for that."""
        return self._order is not None and self._order.pending

    def look(self) -> None:
        """Look now; what needs an answer of others is told when it comes."""
        for watch in self._watches:
            watch.look()
