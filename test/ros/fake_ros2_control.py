# SPDX-License-Identifier: Apache-2.0
"""A ros2_control under Gazebo, faked on the embedded simulator: one process with the nodes and topics of the real one.

    controller_manager         services, all std_srvs/Trigger: controller_manager_msgs is in no wheel
    joint_state_broadcaster    joint_states: shuffled, effort 0, NaN for an interface that is missing
    imu_sensor_broadcaster     imu_sensor_broadcaster/imu
    effort_controller          effort_controller/commands, parameters `joints` and `interface_name`
    ros_gz_bridge              /clock, each time before the joint states of that time

Run it as a script with --ros-args -p name:=value. In lockstep it waits for the answers of the stack, as mujoco_node does.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from fake_controllers import EffortController, Plant
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from sim2real_ros.robot import load_robot
from sim2real_ros.ros.conversions import WATCHDOG, command_origin, imu_message, time_message
from sim2real_ros.ros.lockstep import Answers
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.sim.trace import Row, Source, Trace
from sim2real_ros.timing import Pacer

SYSTEM_DEFAULT = QoSProfile(depth=10)  # reliable, volatile
PAUSED_S = 1 / 600  # between two repetitions of the last state
OTHERS = ('joint_state_broadcaster', 'imu_sensor_broadcaster', 'effort_controller', 'ros_gz_bridge')


class FakeRos2Control:
    """The simulation and its nodes."""

    def __init__(self) -> None:
        self.manager = Node('controller_manager')
        self.nodes = {name: Node(name) for name in OTHERS}
        robot = load_robot(self._given('robot', 'go2'))
        order = tuple(self._given('joints', list(robot.joints), of='effort_controller'))
        self._given('interface_name', 'effort', of='effort_controller')
        self.controller = EffortController(robot, order)
        self.plant = Plant(
            robot, self._given('start_pose', 'stand'), hangs=self._given('hangs', False),
            swapped=tuple(name for name in self._given('swapped', ['']) if name), flipped=self._given('flipped', ''),
        )  # fmt: skip
        self._robot, self._world = robot, self.plant.world
        self._shuffled = np.random.default_rng(self._given('seed', 0)).permutation(len(robot.joints))
        self._missing = self._given('missing', '')  # joint/position or joint/velocity
        self._lockstep, factor = self._given('lockstep', True), self._given('real_time_factor', 1.0)
        self._pacer = Pacer(0.0 if self._lockstep and factor >= 1 else factor)
        self._clock_every = round(self._given('clock_period_s', 0.0) * 500) or 1
        self._paused, self._imu_silent = self._given('paused', False), self._given('imu_silent', False)
        self._rival = self._given('rival', False)
        trace_file = self._given('trace_file', '')
        self._trace, self._file = (Trace(self._world) if trace_file else None), Path(trace_file)
        self._state = self.plant.state()
        self.events: list[tuple[float, str]] = []
        self._who, self._mode, self._answered_ns = Source.NONE, '', None
        self._tasks: list[Callable[[], None]] = []
        self._make_topics()
        self._answers = Answers(self._loop, 0.002, 2.0, self.manager.get_logger().warning)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _given(self, name: str, default: Any, of: str = '') -> Any:
        return (self.nodes[of] if of else self.manager).declare_parameter(name, default).value

    def _make_topics(self) -> None:
        joints, imu, effort, bridge = (self.nodes[name] for name in OTHERS)
        self._joints_out = joints.create_publisher(JointState, 'joint_states', SYSTEM_DEFAULT)
        self._imu_out = imu.create_publisher(Imu, '~/imu', SYSTEM_DEFAULT)
        self._clock_out = bridge.create_publisher(Clock, '/clock', SYSTEM_DEFAULT)
        self._loop = ControlLoop(effort, 'fake')
        self._loop.add(Float64MultiArray, '~/commands', self._on_command, SYSTEM_DEFAULT)
        for name, task in (
            ('activate', self._activate), ('deactivate', self._deactivate), ('pause', lambda: self._pause(True)),
            ('resume', lambda: self._pause(False)), ('silence_imu', self._silence_imu),
        ):  # fmt: skip
            self.manager.create_service(Trigger, f'~/{name}', lambda _, reply, task=task: self._later(task, reply))
        self.manager.create_service(Trigger, '~/controllers_as_json', self._list)

    def begin(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._trace is not None:
            self._trace.save(self._file)
            self._file.with_suffix('.json').write_text(json.dumps(self.events))

    # --- services

    def _later(self, task: Callable[[], None], reply: Trigger.Response) -> Trigger.Response:
        self._tasks.append(task)
        while task in self._tasks and not self._stop.is_set():
            time.sleep(0.001)
        reply.success = True
        return reply

    def _list(self, _: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        effort = [f'{joint}/effort' for joint in self._robot.joints]
        listed = [('joint_state_broadcaster', True, []), ('effort_controller', self.controller.active, effort)]
        listed += [('trajectory_controller', True, effort[:3])] if self._rival else []
        reply.success = True
        reply.message = json.dumps(
            [{'name': n, 'state': 'active' if a else 'inactive', 'claimed_interfaces': c if a else []} for n, a, c in listed]
        )
        return reply

    def _activate(self) -> None:
        self.events.append((self._world.time, f'activated after {self.controller.received} commands'))
        self.controller.activate()

    def _deactivate(self) -> None:
        self.events.append((self._world.time, 'deactivated'))
        self.controller.deactivate()

    def _pause(self, paused: bool) -> None:
        self._paused = paused

    def _silence_imu(self) -> None:
        self._imu_silent = True

    # --- simulation thread

    def _run(self) -> None:
        previous = self._world.time
        while not self._stop.is_set():
            while self._tasks:
                self._tasks[0]()
                self._tasks.pop(0)
            stamp_ns = round(self._world.time * 1e9)
            self._publish(stamp_ns)
            if self._paused:
                time.sleep(PAUSED_S)
                self._pacer = Pacer(self._pacer._factor)
                while self._loop.take_all():
                    pass
                continue
            if self._lockstep:
                self._answers.wait(stamp_ns, previous, self._stop.is_set)
            while self._loop.take_all():
                pass
            previous = self._world.time
            self._advance(stamp_ns)
            self._pacer.pace(self._world.time)

    def _advance(self, stamp_ns: int) -> None:
        self._log(self.controller.update())
        torque = self.controller.torque
        age = np.nan if self._answered_ns is None else 1e-9 * (stamp_ns - self._answered_ns)
        if self._trace is not None:
            self._trace.add(Row(torque, self._who, self._mode, age, 1e-9 * (self._answers.targets_ns or 0)))
        self.plant.step(torque, rigid=not self.controller.ever)

    def _on_command(self, message: Float64MultiArray) -> None:
        self._log(self.controller.take(np.array(message.data)))
        origin = command_origin(message)
        self._who = Source.WATCHDOG if origin.who == WATCHDOG else Source.SAFETY if origin.who else Source.NONE
        self._mode, self._answered_ns = origin.mode, origin.stamp_ns
        if self._who is Source.SAFETY:
            self._answers.command_ns = origin.stamp_ns

    def _log(self, text: str) -> None:
        if text:
            self.events.append((self._world.time, text))
            self.manager.get_logger().error(text)

    def _publish(self, stamp_ns: int) -> None:
        stamp, robot = time_message(stamp_ns), self._robot
        if self._world.steps % self._clock_every == 0:
            self._clock_out.publish(Clock(clock=stamp))
        state = self._state = self._state if self._paused else self.plant.state()
        if not self._imu_silent and not self._paused:
            self._imu_out.publish(imu_message(self.plant.imu(state), robot.sensors.imu_frame, stamp))
        message = JointState(name=[robot.joints[i] for i in self._shuffled])
        message.header.stamp = stamp
        values = {'position': state.joint_pos.copy(), 'velocity': state.joint_vel.copy()}
        joint, _, interface = self._missing.partition('/')
        if interface:
            values[interface][robot.joints.index(joint)] = np.nan
        message.position, message.velocity = (values[kind][self._shuffled].tolist() for kind in ('position', 'velocity'))
        message.effort = [0.0] * len(robot.joints)  # as gz_ros2_control until mid-2025
        self._joints_out.publish(message)


def main() -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    fake = FakeRos2Control()
    executor = SingleThreadedExecutor()
    for node in (fake.manager, *fake.nodes.values()):
        executor.add_node(node)
    fake.begin()
    while not stop.is_set() and fake._thread.is_alive():
        executor.spin_once(timeout_sec=0.2)
    fake.close()


if __name__ == '__main__':
    main()
