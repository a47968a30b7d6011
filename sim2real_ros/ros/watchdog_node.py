# SPDX-License-Identifier: Apache-2.0
"""`watchdog_node`: sends the safe command when the command stream stops, from a process of its own.

Effort controllers hold the last torque for ever. This node watches the commands and the joint states; when joint
states go on and commands do not, it damps every joint until commands come back. It starts to watch with the first
command, so a robot that was never commanded is left alone.
"""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from sim2real_ros.errors import JointError
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import OUTPUTS, WATCHDOG
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import command_joints, declare, output
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.sensors import Sensors
from sim2real_ros.safety.modes import Mode
from sim2real_ros.safety.response import last_resort, last_resort_impedance

LABEL_END = 64  # bytes of a serialised command that hold the beginning of its label
SLACK = f':{Mode.WIGGLE.value}'.encode()  # at the end of the label of such a command
UNANSWERED = 3  # looks at new joint states without a command, whatever their stamps: one late message is no silence
LOOK_S = 0.004  # between two looks; not every joint state need be seen


class WatchdogNode(Node):
    """Watches one command topic."""

    def __init__(self) -> None:
        super().__init__('watchdog_node')
        self.exit_code: int | None = None
        robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'))
        order = command_joints(self, robot)
        self._timeout_s = declare(
            self,
            'timeout_s',
            0.01,
            'Time of joint states without a command after which this node commands, s.',
            low=0.002,
            high=1.0,
        )
        self._sim_time = declare(self, 'sim_time', False, 'Stamps are simulated: when joint states stop too, do nothing.')
        self._robot = robot
        topic, writer = OUTPUTS[kind := output(self)]
        self._impedance = kind == 'impedance'
        self._writer = writer(robot, order, WATCHDOG)
        self._out = self.create_publisher(Float64MultiArray, topic, qos.COMMAND)
        self._watching = False
        self._fresh = False  # a command came since the last joint state
        self._silent_since = 0.0  # stamp of the last joint state that had a command
        self._unanswered = 0  # joint states since then
        self._commanding = self._warm = self._slack = False
        self._last_stamp_ns, self._last_arrival = 0, time.monotonic()
        self._times = 0
        self._loop = ControlLoop(self, 'watchdog', idle=self._on_silence, idle_s=0.02, pause=lambda: LOOK_S)
        self._loop.add(Float64MultiArray, topic, self._on_command, qos.WATCHED, raw=True, wakes=lambda: False)
        self._sensors = Sensors(self._loop, robot, robot.joints, f'robot {robot.name}', self._on_joint_state, imu=False)
        self._diagnostics = Diagnostics(self, 'command stream', robot.name, self._report)

    def begin(self) -> None:
        """Start to watch."""
        self._loop.start()

    def close(self) -> None:
        """Stop watching; where this node was the last to command, leave no torque behind."""
        self._loop.stop()
        if self._commanding:
            self._publish(0.0, np.full(len(self._robot.joints), np.nan))

    def _report(self) -> Report:
        if self._commanding:
            return 'error', 'the command stream stopped; damping', {'interventions': self._times}
        return 'ok', 'watching' if self._watching else 'no command yet', {'interventions': self._times}

    def _on_command(self, data: bytes) -> None:
        label = data[:LABEL_END]
        if WATCHDOG.encode() not in label:
            self._watching = self._fresh = True
            self._slack = SLACK in label

    def _on_joint_state(self, sample: Sample) -> None:
        self._last_stamp_ns, self._last_arrival = sample.stamp_ns, time.monotonic()
        if not self._watching:
            return
        stamp = self._last_stamp_ns * 1e-9
        if not self._warm:  # what is done for the first time is slow: do it while nothing depends on it
            self._warm = True
            self._command(stamp, self._velocities(sample))
        if self._fresh:
            self._fresh, self._silent_since, self._unanswered = False, stamp, 0
            if self._commanding:
                self._commanding = False
                self.get_logger().warning('commands are back')
            return
        self._silent_since = min(self._silent_since, stamp)  # a clock that went back starts afresh
        self._unanswered += 1
        if self._unanswered < UNANSWERED or stamp - self._silent_since < self._timeout_s:
            return
        self._publish(stamp, self._velocities(sample))
        self._announce('joint states go on, commands do not')  # after the command: the first line of a log is slow

    def _velocities(self, sample: Sample) -> np.ndarray:
        """Return the joint speeds, NaN where the message does not tell them."""
        try:
            return self._sensors.velocities(sample)
        except JointError as error:
            self.get_logger().error(str(error), throttle_duration_sec=1.0)
            return np.full(len(self._robot.joints), np.nan)

    def _on_silence(self) -> None:
        """Neither commands nor joint states: without a measured speed no torque is the only safe one."""
        if self._watching and not self._sim_time and time.monotonic() - self._last_arrival > max(0.1, self._timeout_s):
            self._publish(self._last_stamp_ns * 1e-9, np.full(len(self._robot.joints), np.nan))
            self._announce('neither commands nor joint states arrive')

    def _publish(self, stamp: float, joint_vel: np.ndarray) -> None:
        self._out.publish(self._command(stamp, joint_vel))

    def _command(self, stamp: float, joint_vel: np.ndarray) -> bytes:
        robot = self._robot
        if self._slack:
            joint_vel = np.full(len(robot.joints), np.nan)  # no damping with signs that may be wrong
        command = last_resort_impedance(robot, stamp) if self._impedance else last_resort(robot, stamp, joint_vel)
        return self._writer.write(command, self._last_stamp_ns, Mode.DAMPING.value)  # type: ignore[arg-type]

    def _announce(self, why: str) -> None:
        if not self._commanding:
            self._commanding = True
            self._times += 1
            self.get_logger().error(f'{why}: damping every joint')


def main() -> int:
    """Run the node."""
    return run_node(WatchdogNode)


if __name__ == '__main__':
    raise SystemExit(main())
