# SPDX-License-Identifier: Apache-2.0
"""`policy_node`: sensors -> observation -> ONNX -> joint targets, at the policy's rate. A lifecycle node.

configure loads and checks everything and announces the contract; activate starts the loop; targets flow whenever the
node is active. Until the safety node follows (mode `active`) every tick is a first tick, so that history, clock and
last action begin when the robot does. Setting the parameter `policy` while it is configured has another policy take
over, see `exchange.py`; `shadow_policy` runs one beside it that nobody follows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from sim2real_ros.errors import NotFoundError, SignalError, Sim2RealError
from sim2real_ros.observation.needs import missing_signals
from sim2real_ros.paths import find_policy, find_robot
from sim2real_ros.policy.pilot import Pilot
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import goal_from, policy_trace_message, targets_message, time_message, velocity_from
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.exchange import Exchange
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.passport_control import BACKENDS, PassportControl
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.sensors import Sensors
from sim2real_ros.ros.shadow import Shadow
from sim2real_ros.safety.modes import Mode
from sim2real_ros.signals import JointTargets, RobotState
from sim2real_ros.timing import tick_due

SLEEP_SHARE = 0.9  # of the time between two ticks
TWISTS = {'twist': Twist, 'twist_stamped': TwistStamped}


class PolicyNode(LifecycleNode):
    """Runs one policy, and has others take over from it."""

    def __init__(self) -> None:
        super().__init__('policy_node')
        self.exit_code: int | None = None
        self._declare()
        self._pilot: Pilot | None = None
        self._exchange: Exchange | None = None
        self._loop: ControlLoop | None = None
        self._reason = 'not configured'
        self._contract_out = self.create_publisher(String, 'policy/contract', qos.LATCHED)
        self._targets_out = self.create_publisher(JointState, 'policy/targets', qos.COMMAND)
        self._trace_out = self.create_publisher(Float64MultiArray, 'policy/trace', qos.COMMAND)
        self._shadow = Shadow(self)
        self.create_service(Trigger, '~/rollback', self._on_rollback)
        self._followed = self._renaming = False
        self._stamp = 0.0
        self._command, self._command_stamp = np.zeros(3), -np.inf
        self._goal: np.ndarray | None = None
        self._takes_goals = False
        self._ticks, self._tick_ms, self._slow = 0, 0.0, 0
        self._tick_walls, self._shortest = deque([0.0], maxlen=6), 0.0  # s on the steady clock
        self.add_on_set_parameters_callback(self._on_parameters)
        self._diagnostics = Diagnostics(self, 'policy', 'onnxruntime', self._report)

    def _declare(self) -> None:
        text = 'Policy: shipped name, name in policies_folder, folder, contract YAML or ONNX file. Set it to swap policies.'
        declare(self, 'policy', '', text, fixed=False)
        declare(self, 'policies_folder', '', 'Folder in which policies are looked for by name first.', fixed=False)
        declare(self, 'shadow_policy', '', 'A policy that runs beside, published and never followed.', fixed=False)
        declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file. Read at configure.', fixed=False)
        self._profile = declare(
            self, 'profile', '', 'A profile of the robot file that makes it milder, as first_steps; empty: none.'
        )
        self._autostart = declare(self, 'autostart', True, 'Configure and activate at start, and end when that fails.')
        self._lockstep = declare(self, 'lockstep', False, 'The simulator waits for every answer: pair sensor samples by stamp.')
        twist = declare(self, 'cmd_vel_type', 'twist', f'Message type of cmd_vel: {" or ".join(TWISTS)}.')
        if twist not in TWISTS:
            raise NotFoundError(f'parameter cmd_vel_type is "{twist}"; valid are {", ".join(TWISTS)}')
        self._twist = TWISTS[twist]
        text = (
            'Send no more targets, so that the robot damps, when what the policy sees is unlike its training; else only warn.'
        )
        declare(self, 'stop_when_unfamiliar', False, text, fixed=False)
        backend = declare(self, 'backend', 'hardware', f'What the motors are: {" or ".join(BACKENDS)}.')
        require = declare(self, 'require_passport', True, 'On hardware, refuse policies without a passport that fits.')
        self._passports = PassportControl(self, backend, require)

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
            robot_name = self.get_parameter('robot').value
            robot = load_robot(robot_name, self._profile)
            pilot = Pilot.of(robot, self._place(self.get_parameter('policy').value))
            _refuse_missing(robot, pilot)
            self._passports.look(pilot.contract, robot)
            self._shadow.choose(robot, self._place(self.get_parameter('shadow_policy').value))
        except Exception as error:  # rclpy would swallow it and say nothing
            self._reason = str(error) if isinstance(error, Sim2RealError) else f'unexpected {error!r}'
            if not self._autostart:
                self.get_logger().error(self._reason)
            return TransitionCallbackReturn.FAILURE
        self._robot, self._pilot = robot, pilot
        self._exchange = exchange = Exchange(self, robot, robot_name)
        self._loop = ControlLoop(self, 'policy', pause=self._until_due)
        self._loop.add(String, 'safety/mode', self._on_mode, qos.LATCHED)
        self._loop.add(String, 'safety/candidate', exchange.on_answer, qos.COMMAND)
        self._loop.add(self._twist, 'cmd_vel', self._on_command, qos.COMMAND, wakes=lambda: False)
        if 'goal_pose' in pilot.needs:
            self._subscribe_goal()
        self._sensors = Sensors(
            self._loop, robot, robot.joints, f'robot {robot.name}', self._on_joint_state,
            imu=robot.floating or 'imu' in pilot.needs, odom='odom' in pilot.needs, contacts='contacts' in pilot.needs,
            lockstep=self._lockstep,
        )  # fmt: skip
        if self._shadow.pilot is not None:
            self._listen(self._shadow.pilot)
        self._contract_out.publish(String(data=pilot.contract.to_json()))
        self._passports.announce(pilot.contract)
        self._reason = 'inactive'
        ms = pilot.runner.network.warm_up_ms
        self.get_logger().info(f'policy {pilot.name}: {pilot.contract.file.rate_hz:g} Hz, network {ms:.2f} ms')
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the loop, if the policy may go on this robot."""
        if self._pilot is None or self._loop is None:
            self._reason = 'activate before configure'
            return TransitionCallbackReturn.FAILURE
        try:
            self._passports.admit(self._pilot.contract, self._robot)
        except Sim2RealError as error:
            self._reason = str(error)
            if not self._autostart:
                self.get_logger().error(self._reason)
            return TransitionCallbackReturn.FAILURE
        self._passports.announce(self._pilot.contract)
        self._pilot.reset()
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
        self._pilot = self._loop = self._exchange = None
        self._takes_goals = False
        self._reason = 'not configured'

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()

    # --- executor thread

    def _report(self) -> Report:
        reason, slow, self._slow, pilot = self._reason, self._slow, 0, self._pilot
        if reason == 'running' and pilot is not None and pilot.unfamiliar:
            reason = pilot.unfamiliar
        if reason == 'running' and slow:
            reason = f'joint states come slower than the policy rate: {slow} gaps in the last second'
        values = {'ticks': self._ticks, 'last tick ms': f'{self._tick_ms:.2f}', 'followed': self._followed}
        values |= {'profile': self._profile or 'none', 'passport': self._passports.text}
        values |= {'policy': pilot.name if pilot is not None else 'none', 'shadow': self._shadow.name or 'none'}
        return 'ok' if reason == 'running' else 'warn', reason, values

    def _place(self, policy: str) -> str:
        """Return a policy's path where it lies in `policies_folder`, else what the user called it."""
        folder = self.get_parameter('policies_folder').value
        inside = Path(folder).expanduser() / policy if folder and policy else None
        return str(inside) if inside is not None and inside.exists() else policy

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Swap policies, or refuse with the whole reason; the one that runs goes on then."""
        if self._renaming:
            return SetParametersResult(successful=True)
        asked = ', '.join(f'{parameter.name} {parameter.value}' for parameter in parameters)
        try:
            changes = [self._prepared(p) for p in sorted(parameters, key=lambda p: p.name)]  # policy first: it may fail
            for change in changes:
                change()
        except Exception as error:  # whatever is wrong with a file, the policy that runs must go on
            reason = str(error) if isinstance(error, Sim2RealError) else f'unexpected {error!r}'
            self.get_logger().warning(f'{asked} refused: {reason}')
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _prepared(self, parameter: Parameter) -> Callable[[], None]:
        """Check everything that can be checked of a parameter before anything changes; returns what puts it into effect."""
        name, text = parameter.name, str(parameter.value)
        if name == 'robot':
            find_robot(text)
        if name == 'policy':
            find_policy(self._place(text))
        if self._exchange is None or name not in ('policy', 'shadow_policy'):
            return lambda: None  # read at configure
        if not text:
            return partial(self._shadow.take, None)
        pilot = self._exchange.load(self._place(text))
        _refuse_missing(self._robot, pilot)
        self._listen(pilot)
        return partial(self._bring_in if name == 'policy' else self._shadow.take, pilot)

    def _bring_in(self, pilot: Pilot) -> None:
        """Have a loaded policy take over."""
        loop, exchange, old = self._loop, self._exchange, self._pilot
        assert loop is not None
        assert exchange is not None
        assert old is not None
        self._passports.admit(pilot.contract, self._robot)
        if loop.running:
            exchange.bring_in(pilot)
        else:  # nobody is driving
            exchange.previous = self.get_parameter('policy').value, old
            self._install(pilot)
        self.get_logger().info(f'policy {pilot.name} has taken over')

    def _on_rollback(self, _: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        """Return to the policy before."""
        try:
            if self._exchange is None or self._exchange.previous is None:
                raise Sim2RealError('there was no policy before this one')
            name, pilot = self._exchange.previous
            self._bring_in(pilot)
            self._renaming = True
            self.set_parameters([Parameter('policy', value=name)])
            reply.success, reply.message = True, pilot.name
        except Sim2RealError as error:
            reply.success, reply.message = False, str(error)
        finally:
            self._renaming = False
        return reply

    # --- loop thread

    def _until_due(self) -> float:
        """Return how long no tick can be due, s: most of the shortest time that lay between the last ones."""
        if self._shadow.pilot is not None or (self._exchange is not None and self._exchange.candidate is not None):
            return 0.0  # they keep rates of their own
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

    def _listen(self, pilot: Pilot) -> None:
        """Take the signals that a policy beside needs; the one at the controls goes on without them."""
        self._sensors.listen(pilot.needs)
        if 'goal_pose' in pilot.needs:
            self._subscribe_goal()

    def _subscribe_goal(self) -> None:
        if not self._takes_goals and self._loop is not None:
            self._loop.add(PoseStamped, 'goal_pose', self._on_goal, qos.COMMAND, wakes=lambda: False)
            self._takes_goals = True

    def _on_goal(self, message: PoseStamped) -> None:
        goal = goal_from(message)
        if not np.isfinite(goal).all():
            self.get_logger().error('goal_pose is not finite; ignored', throttle_duration_sec=1.0)
            return
        self._goal = goal

    def _on_joint_state(self, sample: Sample) -> None:
        pilot, exchange, shadow = self._pilot, self._exchange, self._shadow.pilot
        assert pilot is not None
        assert exchange is not None
        previous, self._stamp = self._stamp, sample.stamp
        self._slow += previous > 0 and self._stamp - previous > 1.5 * pilot.contract.period_s
        candidate = exchange.candidate
        due = [p for p in (pilot, candidate, shadow) if p is not None and tick_due(self._stamp, previous, p.contract.period_s)]
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
            self._reason = self._sensors.problem
            self.get_logger().warning(self._reason, throttle_duration_sec=2.0)
            return
        if candidate is not None and candidate in due:
            if exchange.take_over(candidate, self.get_parameter('policy').value, pilot, followed=self._followed):
                pilot = candidate
                self._install(pilot)
            else:
                self._try_out(exchange, candidate, state)
        if pilot in due:
            self._tick(pilot, state, sample.stamp_ns)
        if shadow is not None and shadow in due:
            self._shadow.compare(self._step_beside(shadow, state), sample.stamp_ns)
        self._tick_ms = 1e3 * (time.perf_counter() - start)

    def _tick(self, pilot: Pilot, state: RobotState, stamp_ns: int) -> None:
        first, command = not self._followed, pilot.runner.clamp_command(self._wanted(pilot))
        if first:
            pilot.reset()
        try:
            targets = pilot.step(state, command, self._goal)
        except Sim2RealError as error:
            self._complain(f'{error}. No targets this tick; the safety node will stop the robot.')
            return
        contract = pilot.contract
        self._trace_out.publish(policy_trace_message(stamp_ns, pilot.seen(), pilot.runner.action, command, first))
        if self._followed:
            pilot.judge()
            if pilot.unfamiliar:
                self.get_logger().warning(f'unlike the training: {pilot.unfamiliar}', throttle_duration_sec=1.0)
                if self.get_parameter('stop_when_unfamiliar').value:
                    return
        self._targets_out.publish(targets_message(targets, contract.joints, contract.id, time_message(stamp_ns)))
        self._shadow.followed(targets, contract.joints)
        self._reason = 'running'
        self._ticks += 1

    def _try_out(self, exchange: Exchange, candidate: Pilot, state: RobotState) -> None:
        try:
            candidate.step(state, self._wanted(candidate), self._goal)
        except Sim2RealError as error:
            exchange.ran(candidate, error)
        else:
            exchange.ran(candidate, None)

    def _step_beside(self, pilot: Pilot, state: RobotState) -> JointTargets | None:
        """Run a policy that nobody follows; what goes wrong in it is its own business."""
        try:
            return pilot.step(state, self._wanted(pilot), self._goal)
        except Sim2RealError as error:
            self.get_logger().warning(f'beside: {error}', throttle_duration_sec=1.0)
            return None

    def _install(self, pilot: Pilot) -> None:
        """Put a policy to the controls."""
        self._pilot = pilot
        self._sensors.require(pilot.needs)
        self._contract_out.publish(String(data=pilot.contract.to_json()))
        self._passports.announce(pilot.contract)

    def _wanted(self, pilot: Pilot) -> np.ndarray:
        """Return the operator's command, zero when it is too old for the policy."""
        velocity = pilot.contract.file.commands.velocity
        timeout = velocity.timeout_s if velocity is not None else np.inf
        fresh = 0 <= self._stamp - self._command_stamp <= timeout  # a clock may go back
        return self._command if fresh else np.zeros(3)

    def _complain(self, reason: str) -> None:
        self._reason = reason
        self.get_logger().error(reason, throttle_duration_sec=1.0)


def _refuse_missing(robot: Robot, pilot: Pilot) -> None:
    """Raise SignalError when the policy needs a signal that this robot does not give."""
    given = {'goal_pose'} | {name for name, there in (
        ('imu', robot.floating), ('odom', robot.sensors.odom), ('contacts', robot.sensors.contacts),
    ) if there}  # fmt: skip
    missing = missing_signals(pilot.contract, given)
    if missing:
        raise SignalError('; '.join(missing))


def main() -> int:
    """Run the node."""
    return run_node(PolicyNode)


if __name__ == '__main__':
    raise SystemExit(main())
