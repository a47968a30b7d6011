# SPDX-License-Identifier: Apache-2.0
"""The nodes over ROS on this machine: how old commands are at the driver, and what the stack costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import rclpy
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from bench.result import Result
from sim2real_ros import bringup
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import time_message
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.operator import Operator
from sim2real_ros.tools.processes import Stack, command_line

RATE_HZ, SECONDS = 500, 6.0
AGE_BUDGET, CPU_BUDGET = 1.5, 0.40


class Driver:
    """Publishes joint states at 500 Hz and takes the time until the command that follows."""

    def __init__(self) -> None:
        self._node = rclpy.create_node('bench_driver')
        robot = load_robot('go2')
        self._imu, self._joints = Imu(), JointState(name=list(robot.joints))
        self._imu.orientation.w = 1.0
        self._joints.position = robot.pose('stand').tolist()
        self._joints.velocity = [0.0] * len(robot.joints)
        self._imu_out = self._node.create_publisher(Imu, 'imu/data', qos.SENSOR_OUT)
        self._joints_out = self._node.create_publisher(JointState, 'joint_states', qos.SENSOR_OUT)
        self._loop = ControlLoop(self._node, 'bench')
        self._loop.add(Float64MultiArray, 'effort_controller/commands', self._on_command, qos.COMMAND)
        self._sent, self.ages = 0.0, []

    def run(self, seconds: float) -> np.ndarray:
        """Publish for a while; returns the ages in s."""
        self.ages = []
        begin = time.monotonic()
        for k in range(int(seconds * RATE_HZ)):
            while (left := begin + k / RATE_HZ - time.monotonic()) > 0:
                self._loop.wait(int(left * 1e9))
            stamp = time_message(time.time_ns())
            self._imu.header.stamp = self._joints.header.stamp = stamp
            self._imu.angular_velocity.x = self._joints.velocity[0] = 1e-6 * (k % 7)  # sensors that never change are broken
            self._imu_out.publish(self._imu)
            self._sent = time.perf_counter()
            self._joints_out.publish(self._joints)
        return np.array(self.ages)

    def close(self) -> None:
        """Destroy the node."""
        self._loop.destroy()
        self._node.destroy_node()

    def _on_command(self, _: Float64MultiArray) -> None:
        self.ages.append(time.perf_counter() - self._sent)


def command_age() -> Result:
    """State to command through safety_node against a minimal rclpy relay, both at 500 Hz."""
    os.environ['ROS_DOMAIN_ID'] = '78'
    relay = _age([sys.executable, '-m', 'bench.relay'], None)
    os.environ['ROS_DOMAIN_ID'] = '79'
    options = bringup.Options(log_level='error')
    process = next(p for p in bringup.control(options) if p.executable == 'safety_node')
    ours = _age(command_line(process, options), 'damp')
    age, reference, tail = 1e3 * np.median(ours), 1e3 * np.median(relay), 1e3 * np.quantile(ours, 0.99)
    return Result(
        'command age, state -> command, p50 against a minimal relay',
        f'{age:.2f} ms / {reference:.2f} ms = {age / reference:.2f}, p99 {tail:.1f} ms',
        f'at most {AGE_BUDGET:g}',
        bool(age / reference <= AGE_BUDGET),
    )


def _age(command: list[str], service: str | None) -> np.ndarray:
    child = subprocess.Popen(command)
    rclpy.init()
    driver = Driver()
    try:
        driver.run(2.0)  # discovery
        if service is not None:
            with Operator() as operator:
                while operator.request(service) is not None:  # until the node has heard the driver
                    driver.run(0.5)
        driver.run(0.5)
        return driver.run(SECONDS)
    finally:
        driver.close()
        rclpy.try_shutdown()
        child.send_signal(signal.SIGINT)
        child.wait()


def cpu_share() -> Result:
    """CPU time of policy, safety and watchdog node while the robot walks in real time; the simulator is not counted."""
    os.environ['ROS_DOMAIN_ID'] = '80'
    options = bringup.Options(log_level='error', lockstep=True)
    with Stack(bringup.simulation(options), options) as stack, Operator('', stack.check) as operator:
        operator.command = np.array([0.5, 0.0, 0.0])
        operator.wait(lambda: operator.time > 0, 30, 'no clock')
        operator.insist('damp', 20)
        operator.insist('pose', 10)
        operator.insist('activate', 60)
        nodes = [child.pid for name, child in stack.children.items() if name != 'mujoco_node']
        before, begin, sim_begin = sum(map(_cpu_s, nodes)), time.monotonic(), operator.time
        operator.spin(SECONDS)
        used, elapsed, simulated = sum(map(_cpu_s, nodes)) - before, time.monotonic() - begin, operator.time - sim_begin
    share = used / simulated
    return Result(
        'CPU of policy (50 Hz), safety (500 Hz) and watchdog node',
        f'{share:.0%} of a core per simulated s (real-time factor {simulated / elapsed:.2f})',
        f'{CPU_BUDGET:.0%}',
        share <= CPU_BUDGET,
    )


def _cpu_s(pid: int) -> float:
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
