# SPDX-License-Identifier: Apache-2.0
"""`policy_node`: sensors -> observation -> ONNX -> joint targets, at the policy's rate. A lifecycle node.

configure loads and checks everything and announces the contract; activate starts the loop (`policy_loop.py`); targets
flow whenever the node is active. Setting the parameter `policy` while it is configured has another policy take over, see
`exchange.py`; `shadow_policy` runs one beside it that nobody follows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

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
from sim2real_ros.ros.commands import TWISTS
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.exchange import Exchange
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.passport_control import BACKENDS, PassportControl
from sim2real_ros.ros.policy_loop import PolicyLoop
from sim2real_ros.ros.shadow import Shadow


class PolicyNode(LifecycleNode):
    """Runs one policy, and has others take over from it."""

    def __init__(self) -> None:
        super().__init__('policy_node')
        self.exit_code: int | None = None
        self._declare()
        self._exchange: Exchange | None = None
        self._loop: PolicyLoop | None = None  # from configure to cleanup
        self._reason = 'not configured'
        self._contract_out = self.create_publisher(String, 'policy/contract', qos.LATCHED)
        self._outputs = (
            self.create_publisher(JointState, 'policy/targets', qos.COMMAND),
            self.create_publisher(Float64MultiArray, 'policy/trace', qos.COMMAND),
        )
        self._shadow = Shadow(self)
        self.create_service(Trigger, '~/rollback', self._on_rollback)
        self._renaming = False
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
        self._robot, self._exchange = robot, Exchange(self, robot, robot_name)
        self._loop = PolicyLoop(
            self, robot, pilot, self._exchange, self._shadow,
            outputs=self._outputs, twist=self._twist, lockstep=self._lockstep, announce=self._announce,
        )  # fmt: skip
        self._announce(pilot)
        self._reason = 'inactive'
        ms = pilot.runner.network.warm_up_ms
        self.get_logger().info(f'policy {pilot.name}: {pilot.contract.file.rate_hz:g} Hz, network {ms:.2f} ms')
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the loop, if the policy may go on this robot."""
        if self._loop is None:
            self._reason = 'activate before configure'
            return TransitionCallbackReturn.FAILURE
        try:
            self._passports.admit(self._loop.pilot.contract, self._robot)
        except Sim2RealError as error:
            self._reason = str(error)
            if not self._autostart:
                self.get_logger().error(self._reason)
            return TransitionCallbackReturn.FAILURE
        self._passports.announce(self._loop.pilot.contract)
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
        self._loop = self._exchange = None
        self._reason = 'not configured'

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()

    # --- executor thread

    def _report(self) -> Report:
        loop, reason = self._loop, self._reason
        values = {'profile': self._profile or 'none', 'passport': self._passports.text, 'shadow': self._shadow.name or 'none'}
        values |= {'policy': 'none', 'ticks': 0, 'last tick ms': '0.00', 'followed': False}
        if loop is not None:
            values |= {'policy': loop.pilot.name, 'ticks': loop.ticks, 'last tick ms': f'{loop.tick_ms:.2f}'}
            values['followed'] = loop.followed
            reason = self._progress(loop) if loop.running else reason
        return 'ok' if reason == 'running' else 'warn', reason, values

    def _progress(self, loop: PolicyLoop) -> str:
        """Return `running`, or what is wrong with the loop, which goes on meanwhile."""
        reason, unfamiliar = loop.reason, loop.pilot.unfamiliar
        slow, loop.slow = loop.slow, 0
        if reason == 'running' and unfamiliar:
            return unfamiliar
        if reason == 'running' and slow:
            return f'joint states come slower than the policy rate: {slow} gaps in the last second'
        return reason

    def _announce(self, pilot: Pilot) -> None:
        """Tell everybody which policy is at the controls; called by the loop's thread as well."""
        self._contract_out.publish(String(data=pilot.contract.to_json()))
        self._passports.announce(pilot.contract)

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
        if self._exchange is None or self._loop is None or name not in ('policy', 'shadow_policy'):
            return lambda: None  # read at configure
        if not text:
            return partial(self._shadow.take, None)
        pilot = self._exchange.load(self._place(text))
        _refuse_missing(self._robot, pilot)
        self._loop.listen(pilot)
        return partial(self._bring_in if name == 'policy' else self._shadow.take, pilot)

    def _bring_in(self, pilot: Pilot) -> None:
        """Have a loaded policy take over."""
        loop, exchange = self._loop, self._exchange
        assert loop is not None
        assert exchange is not None
        self._passports.admit(pilot.contract, self._robot)
        if loop.running:
            exchange.bring_in(pilot)
        else:  # nobody is driving
            exchange.previous = self.get_parameter('policy').value, loop.pilot
            loop.install(pilot)
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
