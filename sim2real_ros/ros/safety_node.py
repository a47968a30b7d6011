# SPDX-License-Identifier: Apache-2.0
"""`safety_node`: the only publisher of motor commands. Joint targets -> PD -> torque -> filter -> command, per joint state.

It imports neither onnxruntime nor the policy. Services set the mode; the loop thread does the rest. A read-only node has no
publisher of commands at all: it shows what it would command on `safety/preview`.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty, Float64MultiArray, String
from std_srvs.srv import Trigger

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import JointError, Sim2RealError
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import policy_trace_from, seconds, targets_from
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.motor_output import MotorOutput
from sim2real_ros.ros.parameters import command_joints, declare, sensor_noise
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.sensors import Sensors
from sim2real_ros.ros.surroundings import Surroundings
from sim2real_ros.ros.turns import Turns
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.modes import Event
from sim2real_ros.safety.observer import Observer
from sim2real_ros.safety.recorder import FlightRecorder
from sim2real_ros.signals import SafeTorque

SERVICES = {
    'damp': Event.DAMP,
    'pose': Event.POSE,
    'activate': Event.ACTIVATE,
    'wiggle': Event.WIGGLE,
    'estop': Event.ESTOP,
    'reset': Event.RESET,
}
ARMING = (Event.DAMP, Event.POSE, Event.ACTIVATE, Event.WIGGLE)
STANDING = 10  # joint states of one stamp
FAREWELL_S, FAREWELL_LIMIT_S = 0.25, 2.0  # damping on the way out: at least, and at most until the robot is at rest


class SafetyNode(Node):
    """Runs the safety filter of one robot."""

    def __init__(self) -> None:
        super().__init__('safety_node')
        self.exit_code: int | None = None
        profile = declare(self, 'profile', '', 'A profile of the robot file that makes it milder, as first_steps; empty: none.')
        robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'), profile)
        robot = sensor_noise(self, robot)
        order = command_joints(self, robot)
        self._sim_time = declare(
            self,
            'sim_time',
            False,
            "Stamps are simulated: a pause of the stream is not a fault. rclpy's use_sim_time is not needed.",
        )
        self._read_only = declare(self, 'read_only', False, 'Observe and compute, command nothing.')
        self._lockstep = declare(self, 'lockstep', False, 'The simulator waits for every answer: pair sensor samples by stamp.')
        trips = declare(self, 'trips_folder', '', 'Where trips are recorded; empty: sim2real_trips in the ROS log folder.')
        self._recorder = FlightRecorder(
            robot.joints, robot=robot.name, rate_hz=robot.sensors.rate_hz, folder=Path(trips).expanduser() if trips else None,
            decode=policy_trace_from, saved=self._on_saved, warn=self.get_logger().warning,
        )  # fmt: skip
        self._filter = (Observer if self._read_only else SafetyFilter)(robot, recorder=self._recorder)
        self._lock = threading.Lock()
        self._motors = MotorOutput(self, robot, order, read_only=self._read_only)  # of a robot that was accepted
        self._mode_out = self.create_publisher(String, 'safety/mode', qos.LATCHED)
        self._answer_out = self.create_publisher(String, 'safety/candidate', qos.COMMAND)
        self.create_subscription(String, 'policy/contract', self._on_contract, qos.LATCHED)
        self.create_subscription(String, 'policy/candidate', self._on_candidate, qos.COMMAND)
        if robot.monitors.operator_timeout_s is not None:
            self.create_subscription(Empty, 'operator/heartbeat', self._on_heartbeat, qos.COMMAND)
        self._around = Surroundings(self, self._motors, order, self._on_obstacle, read_only=self._read_only)
        self._turns = Turns(self, self._filter)
        for name, event in SERVICES.items():
            self.create_service(Trigger, f'~/{name}', lambda _, reply, event=event: self._serve(event, reply))
        self._shown: tuple[Mode, Fault | None] = (Mode.FAULT, None)
        self._last_arrival = time.monotonic()
        self._last_stamp_ns = self._same_stamp = 0
        self._ticks = self._worst_us = 0
        self._limited = {str(limit.name): 0 for limit in Limit if limit}  # all keys now: another thread iterates
        self._refused = ''
        self._loop = ControlLoop(self, 'safety', idle=self._on_silence, idle_s=robot.sensors.joint_timeout_s)
        self._loop.add(JointState, 'policy/targets', self._on_targets, qos.COMMAND)
        self._take_trace = self._loop.tap(Float64MultiArray, 'policy/trace', qos.WATCHED)
        self._sensors = Sensors(
            self._loop, robot, robot.joints, f'robot {robot.name}', self._on_joint_state,
            imu=robot.floating, lockstep=self._lockstep, awaits=self._filter.awaits_targets,
        )  # fmt: skip
        self._diagnostics = Diagnostics(self, 'safety filter', robot.name, self._report)

    def begin(self) -> None:
        """Start the loop in the mode `off`."""
        self._show_mode()
        self._say_certificate()
        self._loop.start()

    def _say_certificate(self) -> None:
        own, log = self._filter, self.get_logger()
        log.info(
            f'barrier: {"coupled" if own.coupled else "per joint"}; sim2real certify {own.robot.name} shows the certificate'
        )
        if own.certificate.weak:
            log.warning(f'joints with a weaker promise: {"; ".join(f"{j}: {why}" for j, why in own.certificate.weak.items())}')

    def close(self) -> None:
        """Damp until the robot is at rest, then leave no torque behind: controllers hold the last command for ever."""
        with self._lock:
            commanding = self._filter.mode not in (Mode.OFF, Mode.WIGGLE)  # signs may be wrong then: leave it slack
            if commanding and self._filter.mode is not Mode.FAULT:
                self._filter.request(Event.DAMP)
            self._show_mode()
        begin = time.monotonic()
        while commanding and (waited := time.monotonic() - begin) < FAREWELL_LIMIT_S:
            if waited > FAREWELL_S and self._filter.at_rest:
                break
            time.sleep(0.02)
        self._loop.stop()
        self._send_rest(Mode.DAMPING)
        self._recorder.finish()

    # --- executor thread

    def _serve(self, event: Event, reply: Trigger.Response) -> Trigger.Response:
        if event in ARMING:
            self._around.look()
        waits = event in ARMING and self._around.pending
        with self._lock:
            refusal = 'wait: the controller has not told its joints yet' if waits else self._filter.request(event)
            self._show_mode()
            if refusal is not None and self._sensors.problem:
                refusal = f'{refusal}; {self._paused() or self._sensors.problem}'
            if refusal is not None and event is Event.ACTIVATE and self._refused:
                refusal = f'{refusal}; {self._refused}'
            reply.success, reply.message = refusal is None, refusal or self._filter.mode.value
        if refusal is not None:
            self.get_logger().info(f'{event.value} refused: {refusal}')
        return reply

    def _paused(self) -> str:
        """Return that the simulation is paused, where its joint states repeat one stamp and nothing else comes; else ''."""
        if not self._sim_time or self._same_stamp < STANDING:
            return ''
        return f'time stands still at {1e-9 * self._last_stamp_ns:.3f} s: the simulation is paused, let it go on'

    def _on_contract(self, message: String) -> None:
        try:
            contract = Contract.from_json(message.data, 'policy/contract')
            with self._lock:
                self._filter.accept(contract)
        except Sim2RealError as error:
            self._refused = f'policy refused: {error}'
            self.get_logger().error(self._refused)
            return
        self._refused = ''
        self.get_logger().info(f'accepted policy {contract.file.name} [{contract.id}]')

    def _on_candidate(self, message: String) -> None:
        reason, contract_id = '', ''
        try:
            contract = Contract.from_json(message.data, 'policy/candidate')
            contract_id = contract.id
            with self._lock:
                self._filter.propose(contract)
        except Sim2RealError as error:
            reason = str(error)
        self._answer_out.publish(String(data=json.dumps({'candidate': contract_id, 'reason': reason})))

    def _on_heartbeat(self, _: Empty) -> None:
        with self._lock:
            self._filter.operator_alive()

    def _on_obstacle(self, name: str, text: str) -> None:
        """Take note of a reason from outside not to arm, '' when it is gone; what is armed already stops."""
        with self._lock:
            if text:
                self._filter.obstacles[name] = text
                self._filter.trip(Fault(name, text))
            else:
                self._filter.obstacles.pop(name, None)
            self._show_mode()

    def _on_saved(self, path: Path) -> None:
        self.get_logger().info(f'what happened is in {path}; print it with: sim2real trips')

    def _report(self) -> Report:
        with self._lock:
            mode, fault, warnings = self._filter.mode, self._filter.fault, '; '.join(self._filter.warnings.values())
        text = f'{fault.name}: {fault.message}' if fault is not None else self._refused or self._sensors.problem or warnings
        if not text and isinstance(self._filter, Observer) and self._filter.finding is not None:
            text = f'would have stopped: {self._filter.finding.name}: {self._filter.finding.message}'
        text = text or mode.value
        level = 'error' if fault is not None else 'ok' if text == mode.value else 'warn'
        values = {
            'mode': mode.value,
            'ticks': self._ticks,
            'worst tick us': self._worst_us,
            'last change': self._filter.last_change,
            'barrier': 'coupled' if self._filter.coupled else 'per joint',
            'profile': self._filter.robot.profile or 'none',
            'read only': self._read_only,
        }
        values |= {f'limited by {name}': count for name, count in self._limited.items()}
        self._worst_us = 0
        return level, text, values

    # --- loop thread

    def _on_targets(self, message: JointState) -> None:
        try:
            targets = targets_from(message)
            if tuple(message.name) != self._filter.joints_of(message.header.frame_id):
                return  # of a policy that was not accepted
            trace = self._take_trace()
            with self._lock:
                if trace is not None:
                    self._recorder.note(seconds(message.header.stamp), trace)
                self._filter.set_targets(message.header.frame_id, targets)
                self._show_mode()
            self._sensors.release()
        except JointError as error:
            self.get_logger().error(str(error), throttle_duration_sec=1.0)

    def _on_joint_state(self, sample: Sample) -> None:
        start = time.perf_counter()
        self._same_stamp = self._same_stamp + 1 if sample.stamp_ns == self._last_stamp_ns else 0
        self._last_arrival, self._last_stamp_ns = time.monotonic(), sample.stamp_ns
        try:
            state = self._sensors.state(sample)
        except JointError as error:
            self._trip(Fault('incomplete_joint_state', str(error)))
            self.get_logger().error(str(error), throttle_duration_sec=1.0)
            self._send_rest(Mode.FAULT)
            return
        if state is None:
            if self._filter.mode is not Mode.OFF:
                self._trip(Fault('stale_imu', self._sensors.problem))
                self._send_rest(Mode.FAULT)
            return
        with self._lock:
            safe = self._filter.step(state, None if self._sim_time else self._last_arrival)
            if safe is not None:
                self._send(safe, self._filter.mode)
            took = time.perf_counter() - start
            if not self._sim_time:  # a simulator may be slower than the clock on the wall
                self._filter.took(took)
            self._show_mode()
        if isinstance(self._filter, Observer):
            self._motors.show(self._filter, self._last_stamp_ns)
        if safe is None:
            return
        self._turns.tell(sample.stamp_ns)
        self._ticks += 1
        self._worst_us = max(self._worst_us, round(1e6 * took))
        for mask in safe.limited[safe.limited > 0].tolist():
            for limit in Limit:
                if limit & mask:
                    self._limited[str(limit.name)] += 1

    def _on_silence(self) -> None:
        """No joint state for the time-out: on hardware a fault, in a simulator perhaps a pause."""
        silent = time.monotonic() - self._last_arrival
        if not self._sim_time and silent > self._filter.robot.sensors.joint_timeout_s:
            self._trip(Fault('stale_joint_state', f'no joint state has arrived for {1e3 * silent:.0f} ms'))
            self._send_rest(Mode.FAULT)

    def _send_rest(self, mode: Mode) -> None:
        with self._lock:
            rest = self._filter.rest()
            if rest is not None:
                self._send(rest, mode)

    def _send(self, safe: SafeTorque, mode: Mode) -> None:
        """Publish a command; called with the lock held."""
        self._motors.send(self._filter, safe, self._last_stamp_ns, mode.value)

    def _trip(self, fault: Fault) -> None:
        with self._lock:
            self._filter.trip(fault)
            self._show_mode()

    def _show_mode(self) -> None:
        """Publish and log a change of mode; called with the lock held."""
        mode, fault = self._filter.mode, self._filter.fault
        if (mode, fault) == self._shown:
            return
        self._shown = (mode, fault)
        self._mode_out.publish(String(data=mode.value))
        if fault is not None:
            self.get_logger().error(f'FAULT {fault.name}: {fault.message}')
        elif mode is Mode.DAMPING and not self._filter.last_change.startswith('operator:'):
            self.get_logger().warning(f'damping: {self._filter.last_change}')
        else:
            self.get_logger().info(f'mode {mode.value}')


def main() -> int:
    """Run the node."""
    return run_node(SafetyNode)


if __name__ == '__main__':
    raise SystemExit(main())
