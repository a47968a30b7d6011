# SPDX-License-Identifier: Apache-2.0
"""`Bench`: the real safety, policy and watchdog nodes as processes, and a driver of the test's own that spoils what it says.

The driver steps a simulated robot with the commands that come back, in lockstep: it publishes a state, waits for the
command that answers it (and, at a policy tick, for the targets), and only then goes on. A cause of trouble is a function
that alters a `Tick` before it is published, or does something to a process.
"""

from __future__ import annotations

import itertools
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import rclpy.node
from geometry_msgs.msg import Twist
from rcl_interfaces.msg import Log
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Empty, Float64MultiArray, String
from std_srvs.srv import Trigger

from sim2real_ros import bringup
from sim2real_ros.contract.contract import Contract
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import WATCHDOG, command_origin, imu_message, nanoseconds, time_message
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.sim.world import World
from sim2real_ros.timing import tick_due
from sim2real_ros.tools.processes import Stack

DT_NS = 2_000_000
DT = 1e-9 * DT_NS
DOMAINS = itertools.cycle(range(91, 95))
EVERY = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
RECORDER_S = 1.5  # between two trips that get a file each, and some for writing the first
PATIENCE_S = 0.5  # of the driver, for an answer
WALK = 0.5  # m/s
SERVICES = ('damp', 'pose', 'activate', 'estop', 'reset')
REASON = re.compile(r'(?:FAULT|damping:) ?(\w+): (.*)')


@dataclass(frozen=True)
class Command:
    """A command that arrived at the driver: torque (n,) N m in robot order, wall in s on the steady clock."""

    who: str
    stamp_ns: int
    mode: str
    torque: np.ndarray
    wall: float

    @property
    def rescuing(self) -> bool:
        """Whether this is no longer the policy's doing."""
        return self.who == WATCHDOG or self.mode in ('damping', 'fault')


@dataclass
class Tick:
    """What the driver is about to publish.

    Attributes:
        bench: whose driver.
        k: states since the trouble began.
        joints, imu: the messages.
        copies, imu_copies: how often they are published; a second copy comes after the answer to the first.
    """

    bench: Bench
    k: int
    joints: JointState
    imu: Imu
    copies: int = 1
    imu_copies: int = 1

    def mark(self) -> None:
        """Say that the cause is there now, where it is not there from the first altered state on."""
        self.bench.mark()


class Bench:
    """One group of processes and its driver; a context manager.

    Attributes:
        stamp_ns: of the newest state.
        mode: of the safety node, as announced.
        commands: that arrived since the trouble began.
        reasons: (name, sentence) of faults and withdrawals that the safety node logged since then.
        seen, worst: number of all commands ever, and the largest share of an effort limit in them.
    """

    def __init__(self, folder: Path, robot: str = 'go2', *, sim_time: bool = True) -> None:
        self.robot = load_robot(robot)
        self.trips = folder / 'trips'
        options = bringup.Options(robot=robot, use_sim_time=sim_time, lockstep=True, log_level='info')
        self._options = options
        self._processes = {p.executable: p for p in bringup.control(options)}
        self._processes['safety_node'].parameters['trips_folder'] = str(self.trips)
        self._stacks: dict[str, Stack] = {}
        self.world = World(self.robot)
        self._rng = np.random.default_rng(1)
        self.stamp_ns, self._sent_ns, self.offset_ns = 100 * 10**9, 0, 0
        self.torque = np.zeros(len(self.robot.joints))
        self.alter: Callable[[Tick], None] | None = None
        self._k, self.held, self.patience, self.pace_s = 0, True, PATIENCE_S, 0.0
        self.heartbeat = True
        self.mode, self.contract_id, self.contract = '', '', None
        self.targets_ns: int | None = None
        self.commands: list[Command] = []
        self.reasons: list[tuple[str, str]] = []
        self.begin_ns: int | None = None
        self.begin_wall = 0.0
        self.seen, self.worst, self.bad = 0, 0.0, []
        self.newest: Command | None = None  # of the safety node
        self._intruder: rclpy.node.Node | None = None
        self.refusals: list[str] = []

    def __enter__(self) -> Bench:
        self._env = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_DOMAIN_ID': str(next(DOMAINS))}
        for name in self._processes:
            self.start(name)
        self._context = rclpy.Context()
        with pytest.MonkeyPatch.context() as patch:
            for key, value in self._env.items():
                patch.setenv(key, value)
            rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node('driver', context=self._context)
        self._joints_out = self.node.create_publisher(JointState, 'joint_states', qos.SENSOR_OUT)
        self._imu_out = self.node.create_publisher(Imu, 'imu/data', qos.SENSOR_OUT)
        self._velocity_out = self.node.create_publisher(Twist, 'cmd_vel', qos.COMMAND)
        self._heartbeat_out = self.node.create_publisher(Empty, 'operator/heartbeat', qos.COMMAND)
        self.targets_out = self.node.create_publisher(JointState, 'policy/targets', qos.COMMAND)
        self._loop = ControlLoop(self.node, 'driver')
        self._loop.add(String, 'safety/mode', self._on_mode, qos.LATCHED)
        self._loop.add(String, 'policy/contract', self._on_contract, qos.LATCHED)
        self._loop.add(Log, '/rosout', self._on_log, EVERY)
        self._loop.add(JointState, 'policy/targets', self._on_targets, EVERY)
        self._loop.add(Float64MultiArray, 'effort_controller/commands', self._on_command, EVERY)
        self._clients = {name: self.node.create_client(Trigger, f'safety_node/{name}') for name in SERVICES}
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.wait(lambda: self.mode and self.contract and self.targets_ns, 60)
        return self

    def __exit__(self, *_: object) -> None:
        for name in ('policy_node', 'safety_node', 'watchdog_node'):
            self.end(name)
        self._loop.destroy()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    # --- processes

    def start(self, name: str) -> None:
        """Start a node, if it does not run."""
        if name in self._stacks:
            return
        if name == 'safety_node':
            self.mode = ''
        if name == 'policy_node':
            self.targets_ns = None
        with pytest.MonkeyPatch.context() as patch:
            for key, value in self._env.items():
                patch.setenv(key, value)
            self._stacks[name] = Stack([self._processes[name]], self._options).__enter__()

    def end(self, name: str) -> None:
        """End a node in its own way."""
        stack = self._stacks.pop(name, None)
        if stack is not None:
            stack.children[name].send_signal(signal.SIGCONT)
            stack.__exit__()
            self.take()  # its last words

    def send(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a node."""
        self._stacks[name].children[name].send_signal(number)
        if number == signal.SIGKILL:
            self._stacks.pop(name).children[name].wait()

    # --- the driver

    def step(self) -> None:
        """Publish a state, wait for its answer, and move the robot."""
        wall = time.monotonic()
        self.stamp_ns += DT_NS
        tick = self._measure()
        if self.alter is not None:
            self.alter(tick)
            self._k += 1
        shift = self.offset_ns
        if shift:
            self.stamp_ns, self.offset_ns = self.stamp_ns + shift, 0
            for message in (tick.joints, tick.imu):
                message.header.stamp = time_message(nanoseconds(message.header.stamp) + shift)
        if self.stamp_ns // DT_NS % 50 == 0:
            self._velocity_out.publish(_forward(0.0 if self.held else WALK))
            if self.heartbeat:
                self._heartbeat_out.publish(Empty())
        if tick.imu_copies:
            self._imu_out.publish(tick.imu)
        for copy in range(tick.copies):
            self._joints_out.publish(tick.joints)
            if copy:
                self.linger(0.02)  # nobody answers a state twice
            else:
                self._await_answer()
        if tick.copies:
            self._sent_ns = self.stamp_ns
        self.take()
        if self.mode in ('pose', 'active'):
            self.held = False
        if not self.held:
            self.world.step(self.torque)
        if (left := self.pace_s - (time.monotonic() - wall)) > 0:
            self.linger(left)

    def run(self, seconds: float) -> None:
        """Let simulated time pass."""
        for _ in range(round(seconds / DT)):
            self.step()

    def wait(self, condition: Callable[[], object], timeout_s: float) -> None:
        """Step until a condition holds; at most so many real seconds."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f'in vain: mode {self.mode}, {self.reasons}, {self.refusals[-3:]}'
            self.step()

    def linger(self, seconds: float) -> None:
        """Take what comes for a real time; simulated time stands still."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._loop.wait(int(left * 1e9))

    def take(self) -> None:
        """Take all that has come."""
        while self._loop.take_all():
            pass

    def _measure(self) -> Tick:
        world, rng, n = self.world, self._rng, len(self.torque)
        joints = JointState(name=list(self.robot.joints), effort=self.torque.tolist())
        joints.position = (world.joint_pos + rng.normal(0, 1e-4, n)).tolist()
        joints.velocity = (world.joint_vel + rng.normal(0, 0.01, n)).tolist()
        joints.header.stamp = time_message(self.stamp_ns)
        imu = imu_message(world.imu(), self.robot.sensors.imu_frame, joints.header.stamp)
        imu.angular_velocity.x += float(rng.normal(0, 1e-3))
        return Tick(self, self._k, joints, imu)

    def _await_answer(self) -> None:
        deadline = time.monotonic() + self.patience
        command, targets = self.mode not in ('', 'off') and 'safety_node' in self._stacks, self._targets_due()
        while True:
            self.take()
            answered = self.newest is not None and self.newest.stamp_ns == self.stamp_ns
            if (not command or answered) and (not targets or self.targets_ns == self.stamp_ns):
                return
            if (left := deadline - time.monotonic()) <= 0:
                return
            self._loop.wait(int(left * 1e9))

    def _targets_due(self) -> bool:
        if self.contract is None or self.targets_ns is None or 'policy_node' not in self._stacks:
            return False
        period = self.contract.period_s
        due = tick_due(1e-9 * self.stamp_ns, 1e-9 * self._sent_ns, period)
        return due and 0 <= self.stamp_ns - self.targets_ns < 1.5e9 * period

    # --- what arrives

    def _on_command(self, message: Float64MultiArray) -> None:
        torque, origin = np.array(message.data), command_origin(message)
        if not origin.who:  # not from this stack: a hardware driver would obey, this one need not
            return
        command = Command(origin.who, origin.stamp_ns or 0, origin.mode, torque, time.monotonic())
        self.seen += 1
        share = float((np.abs(torque) / self.robot.limits.effort).max()) if np.isfinite(torque).all() else np.inf
        self.worst = max(self.worst, share)
        if share > 1 + 1e-9:
            self.bad.append(command)
        self.commands.append(command)
        self.torque = torque
        if command.who != WATCHDOG:
            self.newest = command

    def _on_mode(self, message: String) -> None:
        self.mode = message.data

    def _on_contract(self, message: String) -> None:
        self.contract = Contract.from_json(message.data, 'policy/contract')

    def _on_targets(self, message: JointState) -> None:
        if self.contract is not None and message.header.frame_id == self.contract.id:
            self.targets_ns = nanoseconds(message.header.stamp)

    def _on_log(self, message: Log) -> None:
        found = REASON.match(message.msg)
        if message.name == 'safety_node' and found:
            self.reasons.append((found[1], found[2]))

    # --- trouble

    def begin(self, alter: Callable[[Tick], None], patience: float, pace_s: float) -> None:
        """Make trouble from the next state on."""
        while time.monotonic() < self.begin_wall + RECORDER_S:  # so that it is a trip of its own
            self.step()
        self.take()
        self.commands, self.reasons = [], []
        self.alter, self.patience, self.pace_s = alter, patience, pace_s
        self._k, self.begin_ns = 0, None

    def mark(self) -> None:
        """The cause is there from the state on that is about to be published."""
        if self.begin_ns is None:
            self.begin_ns, self.begin_wall = self.stamp_ns + self.offset_ns, time.monotonic()

    def cease(self) -> None:
        """End the trouble and put the robot back on its feet, held by hand."""
        self.alter, self.patience, self.pace_s, self.heartbeat = None, PATIENCE_S, 0.0, True
        self.world.reset('stand')
        self.held = True
        if self._intruder is not None:
            self._intruder.destroy_node()
            self._intruder = None

    def intrude(self) -> None:
        """Have another node announce commands; until `cease`."""
        self._intruder = rclpy.create_node('intruder', context=self._context)
        self._intruder.create_publisher(Float64MultiArray, 'effort_controller/commands', qos.COMMAND)

    # --- the operator

    def ask(self, service: str) -> str | None:
        """Call a service of the safety node while the robot goes on; returns the reason of a refusal, or None."""
        client = self._clients[service]
        self.wait(client.service_is_ready, 30)
        future, deadline = client.call_async(Trigger.Request()), time.monotonic() + 20
        while not future.done():
            assert time.monotonic() < deadline, f'{service} was not answered'
            self._executor.spin_once(timeout_sec=0)
            if not future.done():
                self.step()
        self.step()
        answer = future.result()
        if not answer.success:
            self.refusals.append(f'{service}: {answer.message}')
        return None if answer.success else answer.message

    def insist(self, service: str) -> None:
        """Call a service until it is granted."""
        deadline = time.monotonic() + 60
        while (reason := self.ask(service)) is not None:
            assert time.monotonic() < deadline, f'{service} was refused for 60 s: {reason}'
            self.run(0.05)

    def activate(self) -> None:
        """From wherever it is: healthy processes, and the robot walking."""
        self.patience = PATIENCE_S
        for name in self._processes:
            self.start(name)
        self.wait(lambda: self.mode and self.targets_ns, 60)
        if self.mode == 'active' and self.alter is None:
            return
        self.cease()
        self.run(0.02)  # a robot that is carried about while it damps shows an encoder jump
        if self.mode == 'off':
            self.insist('damp')
        elif self.mode in ('pose', 'active'):
            self.insist('estop')
            self.wait(lambda: self.mode == 'fault', 10)
        if self.mode == 'fault':
            self.run(1.0)
            self.insist('reset')
        self.insist('pose')
        self.run(0.55)
        self.insist('activate')
        self.wait(lambda: self.mode == 'active', 10)
        self.run(0.5)


def _forward(speed: float) -> Twist:
    message = Twist()
    message.linear.x = speed
    return message
