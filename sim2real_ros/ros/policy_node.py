# SPDX-License-Identifier: Apache-2.0
"""`policy_node`: sensors -> observation -> ONNX -> joint targets, at the policy's rate. A lifecycle node.

configure loads and checks everything and announces the contract; activate starts the loop; targets flow whenever the
node is active. Until the safety node follows (mode `active`) every tick is a first tick, so that history, clock and
last action begin when the robot does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import NotFoundError, Sim2RealError
from sim2real_ros.paths import find_policy, find_robot
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.novelty import NoveltyMonitor
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import policy_trace_message, targets_message, time_message, velocity_from
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.sensors import Sensors
from sim2real_ros.safety.adoption import adopt
from sim2real_ros.safety.modes import Mode
from sim2real_ros.timing import tick_due

SLEEP_SHARE = 0.85  # of the time between two ticks
TWISTS = {'twist': Twist, 'twist_stamped': TwistStamped}


class PolicyNode(LifecycleNode):
    """Runs one policy."""

    def __init__(self) -> None:
        super().__init__('policy_node')
        self.exit_code: int | None = None
        declare(
            self,
            'policy',
            '',
            'Policy: shipped name, folder, contract YAML or ONNX file. Read at configure.',
            fixed=False,
        )
        declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file. Read at configure.', fixed=False)
        self._autostart = declare(self, 'autostart', True, 'Configure and activate at start, and end when that fails.')
        self._lockstep = declare(self, 'lockstep', False, 'The simulator waits for every answer: pair sensor samples by stamp.')
        twist = declare(self, 'cmd_vel_type', 'twist', f'Message type of cmd_vel: {" or ".join(TWISTS)}.')
        if twist not in TWISTS:
            raise NotFoundError(f'parameter cmd_vel_type is "{twist}"; valid are {", ".join(TWISTS)}')
        declare(
            self,
            'stop_when_unfamiliar',
            False,
            'Send no more targets, so that the robot damps, when what the policy sees is unlike its training; else only warn.',
            fixed=False,
        )
        self._runner: PolicyRunner | None = None
        self._novelty: NoveltyMonitor | None = None
        self._unfamiliar = ''
        self._loop: ControlLoop | None = None
        self._reason = 'not configured'
        self._contract_out = self.create_publisher(String, 'policy/contract', qos.LATCHED)
        self._targets_out = self.create_publisher(JointState, 'policy/targets', qos.COMMAND)
        self._trace_out = self.create_publisher(Float64MultiArray, 'policy/trace', qos.COMMAND)
        self._twist = TWISTS[twist]
        self._followed = False
        self._stamp = 0.0
        self._command, self._command_stamp = np.zeros(3), -np.inf
        self._ticks, self._tick_ms, self._slow = 0, 0.0, 0
        self._tick_walls, self._shortest = deque([0.0], maxlen=6), 0.0  # s on the steady clock
        self.add_on_set_parameters_callback(_refuse_unknown)
        self._diagnostics = Diagnostics(self, 'policy', 'onnxruntime', self._report)

    # --- life

    def begin(self) -> None:
        """Configure and activate, where autostart is set."""
        if self._autostart:
            for step in (self.trigger_configure, self.trigger_activate):
                if step() != TransitionCallbackReturn.SUCCESS:
                    raise Sim2RealError(self._reason)

    def close(self) -> None:
        """Stop the loop; the safety node notices that the targets end."""
        self._stop()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load and check robot, contract and network; announce the contract."""
        try:
            robot, contract = load_robot(self.get_parameter('robot').value), load_contract(self.get_parameter('policy').value)
            adopt(robot, contract)  # what the safety node will say, before anything runs
            self._runner, self._novelty = PolicyRunner(contract), NoveltyMonitor.of(contract)
        except Exception as error:  # rclpy would swallow it and say nothing
            self._reason = str(error) if isinstance(error, Sim2RealError) else f'unexpected {error!r}'
            if not self._autostart:
                self.get_logger().error(self._reason)
            return TransitionCallbackReturn.FAILURE
        timeout = contract.file.commands.velocity
        self._command_timeout = timeout.timeout_s if timeout is not None else np.inf
        needs = self._runner.builder.needs
        self._loop = ControlLoop(self, 'policy', pause=self._until_due)
        self._loop.add(String, 'safety/mode', self._on_mode, qos.LATCHED)
        self._loop.add(self._twist, 'cmd_vel', self._on_command, qos.COMMAND, wakes=lambda: False)
        self._sensors = Sensors(
            self._loop, robot, contract.joints, f'policy {contract.file.name}', self._on_joint_state,
            imu='imu' in needs, odom='odom' in needs, lockstep=self._lockstep,
        )  # fmt: skip
        self._contract_out.publish(String(data=contract.to_json()))
        self._reason = 'inactive'
        self.get_logger().info(
            f'policy {contract.file.name} [{contract.id}]: {contract.file.rate_hz:g} Hz, '
            f'network {self._runner.network.warm_up_ms:.2f} ms'
        )
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the loop."""
        if self._runner is None or self._loop is None:
            self._reason = 'activate before configure'
            return TransitionCallbackReturn.FAILURE
        self._runner.reset()
        self._reason = 'waiting for sensors'
        self._loop.start()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the loop."""
        self._stop()
        self._reason = 'inactive'
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the policy, so that another can be configured."""
        self._forget()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop for good."""
        self._forget()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an error in a transition: stop, and be ready to be configured again."""
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def _forget(self) -> None:
        if self._loop is not None:
            self._loop.destroy()
        self._runner = self._loop = None
        self._reason = 'not configured'

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()

    # --- executor thread

    def _report(self) -> Report:
        reason, slow, self._slow = self._reason, self._slow, 0
        if reason == 'running' and self._unfamiliar:
            reason = self._unfamiliar
        if reason == 'running' and slow:
            reason = f'joint states come slower than the policy rate: {slow} gaps in the last second'
        values = {'ticks': self._ticks, 'last tick ms': f'{self._tick_ms:.2f}', 'followed': self._followed}
        return 'ok' if reason == 'running' else 'warn', reason, values

    # --- loop thread

    def _until_due(self) -> float:
        """Return how long no tick can be due, s: most of the shortest time that lay between the last ones."""
        return self._tick_walls[-1] + SLEEP_SHARE * self._shortest - time.monotonic()

    def _note_tick(self) -> None:
        walls = self._tick_walls
        walls.append(time.monotonic())
        self._shortest = min(later - earlier for earlier, later in pairwise(walls)) if walls[0] else 0.0

    def _on_mode(self, message: String) -> None:
        self._followed = message.data == Mode.ACTIVE.value

    def _on_command(self, message: Any) -> None:
        command = velocity_from(message)
        if not np.isfinite(command).all():
            self.get_logger().error('cmd_vel is not finite; ignored', throttle_duration_sec=1.0)
            return
        self._command, self._command_stamp = command, self._stamp

    def _on_joint_state(self, sample: Sample) -> None:
        runner = self._runner
        assert runner is not None
        previous, self._stamp = self._stamp, sample.stamp
        self._slow += previous > 0 and self._stamp - previous > 1.5 * runner.contract.period_s
        if not tick_due(self._stamp, previous, runner.contract.period_s):
            return
        self._note_tick()
        start = time.perf_counter()
        try:
            state = self._sensors.state(sample)
            if state is None:
                self._reason = self._sensors.problem
                self.get_logger().warning(self._reason, throttle_duration_sec=2.0)
                return
            if not self._followed:
                self._restart(runner)
            fresh = 0 <= self._stamp - self._command_stamp <= self._command_timeout  # a clock may go back
            targets = runner.step(state, self._command if fresh else np.zeros(3))
        except Sim2RealError as error:
            self._reason = str(error)
            self.get_logger().error(
                f'{error}. No targets this tick; the safety node will stop the robot.', throttle_duration_sec=1.0
            )
            return
        self._trace_out.publish(policy_trace_message(sample.stamp_ns, _flat(runner.observation), runner.action))
        if self._followed and self._is_unfamiliar(runner) and self.get_parameter('stop_when_unfamiliar').value:
            return
        self._targets_out.publish(
            targets_message(targets, runner.contract.joints, runner.contract.id, time_message(sample.stamp_ns))
        )
        self._reason = 'running'
        self._ticks += 1
        self._tick_ms = 1e3 * (time.perf_counter() - start)

    def _restart(self, runner: PolicyRunner) -> None:
        runner.reset()
        self._unfamiliar = ''
        if self._novelty is not None:
            self._novelty.reset()

    def _is_unfamiliar(self, runner: PolicyRunner) -> bool:
        """Hold what the policy sees against what it saw in training."""
        finding = self._novelty.update(runner.observation, runner.action) if self._novelty is not None else None
        self._unfamiliar = finding.message if finding is not None else ''
        if finding is not None:
            self.get_logger().warning(f'unlike the training: {finding.message}', throttle_duration_sec=1.0)
        return finding is not None


def _flat(observation: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([part.ravel() for part in observation.values()])


def _refuse_unknown(parameters: list[Parameter]) -> SetParametersResult:
    """Refuse a policy or robot that does not exist; everything else about it is checked at configure."""
    find = {'policy': find_policy, 'robot': find_robot}
    try:
        for parameter in parameters:
            if parameter.name in find:
                find[parameter.name](str(parameter.value))
    except NotFoundError as error:
        return SetParametersResult(successful=False, reason=str(error))
    return SetParametersResult(successful=True)


def main() -> int:
    """Run the node."""
    return run_node(PolicyNode)


if __name__ == '__main__':
    raise SystemExit(main())
