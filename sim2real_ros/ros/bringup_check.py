# SPDX-License-Identifier: Apache-2.0
"""`bringup_check`: the gate between two steps of a launch. Ends with code 0 when a step has succeeded, else says why not.

It runs in the namespace, with the remappings of our nodes. What it waits for is in `bringup_steps.py`.
"""

from __future__ import annotations

import threading

from rclpy.node import Node

from sim2real_ros.errors import ParameterError, Sim2RealError
from sim2real_ros.robot import load_robot
from sim2real_ros.ros.bringup_steps import STEPS
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.starting import Start


class BringupCheck(Node):
    """Waits for one step."""

    def __init__(self) -> None:
        super().__init__('bringup_check')
        self.exit_code: int | None = None
        self._step = declare(self, 'step', '', f'What to wait for: {", ".join(STEPS)}.')
        if self._step not in STEPS:
            raise ParameterError(f'parameter step: "{self._step}" given, {", ".join(STEPS)} possible')
        profile = declare(self, 'profile', '', 'Profile of the robot file, as for safety_node; empty: none.')
        robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'), profile)
        backend = declare(self, 'backend', 'hardware', 'gazebo or hardware, for the words of a diagnosis.')
        controller = declare(self, 'controller', 'effort_controller', 'Name of the effort controller.')
        arm = declare(self, 'arm', True, 'Call ~/damp of safety_node in the step armed.')
        timeout = declare(self, 'timeout_s', 30.0, 'Longest wait for one thing, s.', low=0.1, high=3600.0)
        self._start = Start(self, robot, backend, controller, arm=arm, timeout_s=timeout)

    def begin(self) -> None:
        """Begin to wait, in a thread of its own: this one serves the node."""
        threading.Thread(target=self._wait, daemon=True).start()

    def close(self) -> None:
        """Nothing to leave behind."""

    def _wait(self) -> None:
        try:
            done = STEPS[self._step](self._start)
            self.get_logger().info(f'{self._step}: {done}')
            self.exit_code = 0
        except Sim2RealError as error:
            self.get_logger().fatal(f'{self._step}: {error}')
            self.exit_code = 1


def main() -> int:
    """Run the node."""
    return run_node(BringupCheck)


if __name__ == '__main__':
    raise SystemExit(main())
