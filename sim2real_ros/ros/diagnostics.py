# SPDX-License-Identifier: Apache-2.0
"""One `DiagnosticArray` a second on `diagnostics`, named `node: subject`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from sim2real_ros.ros.qos import DIAGNOSTICS

Report = tuple[str, str, Mapping[str, object]]  # level: ok | warn | error; message; values
LEVELS = {'ok': DiagnosticStatus.OK, 'warn': DiagnosticStatus.WARN, 'error': DiagnosticStatus.ERROR}


class Diagnostics:
    """Publishes what a node reports of itself, at 1 Hz of the machine's time."""

    def __init__(self, node: Node, subject: str, hardware: str, report: Callable[[], Report]) -> None:
        self._node, self._report = node, report
        self._name, self._hardware = f'{node.get_name()}: {subject}', hardware
        self._publisher = node.create_publisher(DiagnosticArray, 'diagnostics', DIAGNOSTICS)
        node.create_timer(1.0, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        level, text, values = self._report()
        status = DiagnosticStatus(level=LEVELS[level], name=self._name, message=text, hardware_id=self._hardware)
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)
