# SPDX-License-Identifier: Apache-2.0
"""`PolicyLoop`: the thread of `policy_node` in which policies tick: a joint state comes in, targets go out.

Until the safety node follows (mode `active`) every tick is a first tick, so that history, clock and last action begin
when the robot does. Beside the policy at the controls may run, each at its own rate, a candidate that is to take over
(see `exchange.py`) and a shadow that nobody follows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from sim2real_ros.errors import Sim2RealError
from sim2real_ros.policy.pilot import Pilot
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.commands import Commands
from sim2real_ros.ros.conversions import policy_trace_message, targets_message, time_message
from sim2real_ros.ros.exchange import Exchange
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.sensors import Sensors
from sim2real_ros.ros.shadow import Shadow
from sim2real_ros.safety.modes import Mode
from sim2real_ros.signals import JointTargets, RobotState
from sim2real_ros.timing import tick_due

SLEEP_SHARE = 0.9  # of the time between two ticks


class PolicyLoop:
    """Ticks policies at the stamps of the joint states.

    Attributes:
        pilot: at the controls.
        reason: `running`, or why no targets go out.
        followed: whether the safety node follows them.
        ticks: that the pilot has done.
        tick_ms: how long the last one took.
        slow: joint states, since this was last set to 0, that came later than the policy needs them.
    """

    def __init__(
        self, node: Node, robot: Robot, pilot: Pilot, exchange: Exchange, shadow: Shadow, *,
        outputs: tuple[Publisher, Publisher], twist: type, lockstep: bool, announce: Callable[[Pilot], None],
    ) -> None:  # fmt: skip
        """Subscribe, and tick from `start` on.

        Args:
            node: the owner; its parameters `policy` and `stop_when_unfamiliar` count as they are at each tick.
            robot: whose joint states come.
            pilot: at the controls.
            exchange: brings in others.
            shadow: runs beside.
            outputs: of `policy/targets` and `policy/trace`.
            twist: message type of `cmd_vel`.
            lockstep: whether to pair sensor samples by stamp.
            announce: told of each policy that comes to the controls, in the thread that put it there.
        """
        self._node, self._exchange, self._shadow, self._announce = node, exchange, shadow, announce
        self._targets_out, self._trace_out = outputs
        self._loop = ControlLoop(node, 'policy', pause=self._until_due)
        self._loop.add(String, 'safety/mode', self._on_mode, qos.LATCHED)
        self._loop.add(String, 'safety/candidate', exchange.on_answer, qos.COMMAND)
        self._commands = Commands(node, self._loop, twist)
        self._commands.listen(pilot.needs)
        self._sensors = Sensors(
            self._loop, robot, robot.joints, f'robot {robot.name}', self._on_joint_state,
            imu=robot.floating or 'imu' in pilot.needs, odom='odom' in pilot.needs, contacts='contacts' in pilot.needs,
            lockstep=lockstep,
        )  # fmt: skip
        if shadow.pilot is not None:
            self.listen(shadow.pilot)
        self._stamp = 0.0  # of the newest joint state, s
        self._tick_walls, self._shortest = deque([0.0], maxlen=6), 0.0  # s on the steady clock
        self.pilot, self.reason, self.followed = pilot, 'waiting for sensors', False
        self.ticks, self.tick_ms, self.slow = 0, 0.0, 0

    # --- executor thread

    @property
    def running(self) -> bool:
        """Whether it ticks."""
        return self._loop.running

    def start(self) -> None:
        """Begin to tick."""
        self.pilot.reset()
        self.reason, self.slow = 'waiting for sensors', 0
        self._loop.start()

    def stop(self) -> None:
        """Tick no more; the safety node notices that the targets end."""
        self._loop.stop()

    def destroy(self) -> None:
        """Stop for good, and give back what was subscribed."""
        self._loop.destroy()

    def listen(self, pilot: Pilot) -> None:
        """Take the signals that a policy beside needs; the one at the controls goes on without them."""
        self._sensors.listen(pilot.needs)
        self._commands.listen(pilot.needs)

    # --- both

    def install(self, pilot: Pilot) -> None:
        """Put a policy to the controls."""
        self.pilot = pilot
        self._sensors.require(pilot.needs)
        self._announce(pilot)

    # --- loop thread

    def _until_due(self) -> float:
        """Return how long no tick can be due, s: most of the shortest time that lay between the last ones."""
        if self._shadow.pilot is not None or self._exchange.candidate is not None:
            return 0.0  # they keep rates of their own
        return self._tick_walls[-1] + SLEEP_SHARE * self._shortest - time.monotonic()

    def _note_tick(self) -> None:
        walls = self._tick_walls
        walls.append(time.monotonic())
        self._shortest = min(later - earlier for earlier, later in pairwise(walls)) if walls[0] else 0.0

    def _on_mode(self, message: String) -> None:
        self.followed = message.data == Mode.ACTIVE.value

    def _on_joint_state(self, sample: Sample) -> None:
        pilot, candidate, shadow = self.pilot, self._exchange.candidate, self._shadow.pilot
        previous, self._stamp = self._stamp, sample.stamp
        self._commands.pass_time(sample.stamp)
        self.slow += previous > 0 and sample.stamp - previous > 1.5 * pilot.contract.period_s
        due = [p for p in (pilot, candidate, shadow) if p is not None and tick_due(sample.stamp, previous, p.contract.period_s)]
        if not due:
            return
        self._note_tick()
        start = time.perf_counter()
        try:
            state = self._sensors.state(sample)
        except Sim2RealError as error:
            self._complain(str(error))
            return
        if state is None:
            self.reason = self._sensors.problem
            self._node.get_logger().warning(self.reason, throttle_duration_sec=2.0)
            return
        if candidate is not None and candidate in due:
            pilot = self._try_out(candidate, state)
        if pilot in due:
            self._tick(pilot, state, sample.stamp_ns)
        if shadow is not None and shadow in due:
            self._shadow.compare(self._step_beside(shadow, state), sample.stamp_ns)
        self.tick_ms = 1e3 * (time.perf_counter() - start)

    def _tick(self, pilot: Pilot, state: RobotState, stamp_ns: int) -> None:
        contract, first = pilot.contract, not self.followed
        command = pilot.runner.clamp_command(self._commands.velocity(contract))
        if first:
            pilot.reset()
        try:
            targets = pilot.step(state, command, self._commands.goal)
        except Sim2RealError as error:
            self._complain(f'{error}. No targets this tick; the safety node will stop the robot.')
            return
        self._trace_out.publish(policy_trace_message(stamp_ns, pilot.seen(), pilot.runner.action, command, first))
        if self.followed and not self._familiar(pilot):
            return
        self._targets_out.publish(targets_message(targets, contract.joints, contract.id, time_message(stamp_ns)))
        self._shadow.followed(targets, contract.joints)
        self.reason = 'running'
        self.ticks += 1

    def _familiar(self, pilot: Pilot) -> bool:
        """Hold what the policy saw against its training; returns whether targets may go out."""
        pilot.judge()
        if not pilot.unfamiliar:
            return True
        self._node.get_logger().warning(f'unlike the training: {pilot.unfamiliar}', throttle_duration_sec=1.0)
        return not self._node.get_parameter('stop_when_unfamiliar').value

    def _try_out(self, candidate: Pilot, state: RobotState) -> Pilot:
        """Let the candidate take over, or run it beside; returns who is at the controls then."""
        exchange, name = self._exchange, self._node.get_parameter('policy').value
        if exchange.take_over(candidate, name, self.pilot, followed=self.followed):
            self.install(candidate)
            return candidate
        try:
            self._step(candidate, state)
        except Sim2RealError as error:
            exchange.ran(candidate, error)
        else:
            exchange.ran(candidate, None)
        return self.pilot

    def _step_beside(self, pilot: Pilot, state: RobotState) -> JointTargets | None:
        """Run a policy that nobody follows; what goes wrong in it is its own business."""
        try:
            return self._step(pilot, state)
        except Sim2RealError as error:
            self._node.get_logger().warning(f'beside: {error}', throttle_duration_sec=1.0)
            return None

    def _step(self, pilot: Pilot, state: RobotState) -> JointTargets:
        return pilot.step(state, self._commands.velocity(pilot.contract), self._commands.goal)

    def _complain(self, reason: str) -> None:
        self.reason = reason
        self._node.get_logger().error(reason, throttle_duration_sec=1.0)
