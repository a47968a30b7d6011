# SPDX-License-Identifier: Apache-2.0
"""`preflight_node`: the pre-flight as a service, for launch files and operators: looks when it is asked, commands nothing."""

from __future__ import annotations

import os

from rclpy.node import Node
from std_srvs.srv import Trigger

from sim2real_ros.errors import Sim2RealError
from sim2real_ros.preflight.checks import examine, may_arm
from sim2real_ros.preflight.finding import Level
from sim2real_ros.robot import load_robot
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.preflight import Look


class PreflightNode(Node):
    """Answers whether the stack of its namespace may be armed."""

    def __init__(self) -> None:
        super().__init__('preflight_node')
        self.exit_code: int | None = None
        profile = declare(self, 'profile', '', 'Profile of the robot file, as for safety_node; empty: none.')
        self._robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'), profile)
        self._seconds = declare(self, 'seconds', 2.0, 'Time to watch at each call, s.', low=0.5, high=60.0)
        self.create_service(Trigger, '~/preflight', self._on_request)

    def begin(self) -> None:
        """Let the robot's own nodes go first."""
        os.nice(10)

    def close(self) -> None:
        """Nothing to stop."""

    def _on_request(self, _: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        """Look at the stack; the message has a line for each finding that is not ok."""
        try:
            with Look(self.get_namespace()) as look:
                findings = examine(look.watch(self._robot, self._seconds))
        except Sim2RealError as error:
            reply.success, reply.message = False, str(error)
            return reply
        told = [f for f in findings if f.level in (Level.REFUSED, Level.WARNING)]
        reply.success = may_arm(findings)
        reply.message = '\n'.join(f'{f.level.value}: {f.check}: {f.text}' for f in told) or 'nothing speaks against arming'
        for finding in told:
            if finding.level is Level.REFUSED:  # rclpy wants one severity for each line of code
                self.get_logger().error(f'{finding.check}: {finding.text}')
            else:
                self.get_logger().warning(f'{finding.check}: {finding.text}')
        return reply


def main() -> int:
    """Run the node."""
    return run_node(PreflightNode)


if __name__ == '__main__':
    raise SystemExit(main())
