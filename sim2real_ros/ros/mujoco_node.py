# SPDX-License-Identifier: Apache-2.0
"""`mujoco_node`: the embedded simulator as a driver: torque in, joint states, IMU, odometry and clock out.

Free running it keeps real time and applies whatever command came last, as hardware does. In lockstep it steps only
when the command that answers the last state has come (and, at a policy tick, the targets too), so a machine that
stalls cannot make the robot fall; an answer that does not come within `lockstep_timeout_s` is no longer waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from sim2real_ros.errors import ParameterError
from sim2real_ros.joints import JointMap
from sim2real_ros.paths import writable_file
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import (
    OUTPUTS,
    WATCHDOG,
    command_origin,
    impedance_from,
    imu_message,
    odometry_message,
    time_message,
)
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.lockstep import Answers
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import command_joints, declare, output
from sim2real_ros.sim.drive import Drive
from sim2real_ros.sim.trace import Row, Source, Trace
from sim2real_ros.sim.viewer import open_viewer
from sim2real_ros.sim.world import World
from sim2real_ros.timing import Pacer

MAX_PUSH = 5.0  # m/s


class MujocoNode(Node):
    """Simulates one robot."""

    def __init__(self) -> None:
        super().__init__('mujoco_node')
        self.exit_code: int | None = None
        robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'))
        model = declare(self, 'model', '', "URDF or MJCF to simulate instead of the robot's URDF.")
        order = command_joints(self, robot)
        timestep = declare(self, 'timestep_s', 0.002, 'Physics step and period of the joint states, s.', low=0.0005, high=0.01)
        self._lockstep = declare(self, 'lockstep', False, 'Step only when the last state was answered.')
        timeout = declare(self, 'lockstep_timeout_s', 1.0, 'Longest wait for an answer, s.', low=0.01, high=60.0)
        self._factor = declare(
            self, 'real_time_factor', 1.0, 'Simulated s per real s; 0: as fast as possible.', low=0.0, high=100.0
        )
        self._pose = declare(self, 'start_pose', '', "Pose of the robot file to start in; empty: the robot file's start pose.")
        headless = declare(self, 'headless', True, 'Do not open a viewer.')
        self._trace_file = declare(
            self, 'trace_file', '', 'Write states, torques and command ages to this npz file at the end.'
        )
        if self._trace_file:
            writable_file(Path(self._trace_file), 'trace_file')
        text = 'Change of the base velocity by ~/push, m/s in the world frame.'
        fault = _push_fault(declare(self, 'push_velocity', [0.5, 0.0, 0.0], text, fixed=False))
        if fault:
            raise ParameterError(fault)
        self._world = World(robot, timestep=timestep, model_file=Path(model).expanduser() if model else None)
        self._world.reset(self._pose or None)
        self._robot = robot
        self._order = tuple(sorted(robot.joints))  # as joint_state_broadcaster: alphabetical, not the policy's
        self._to_wire = JointMap(robot.joints, self._order, source='robot', target='joint_states')
        self._from_command = JointMap(order, robot.joints, source='command_joints', target=f'robot {robot.name}', exact=True)
        self._drive_topic = OUTPUTS[kind := output(self)][0]
        self._drive = Drive(robot) if kind == 'impedance' else None
        self._torque = np.zeros(len(robot.joints))
        self._source, self._age, self._mode = Source.NONE, np.nan, ''
        self._command_ns: int | None = None  # state that the torque in force answers, whoever sent it
        self._trace = Trace(self._world) if self._trace_file else None
        self._tasks: list[str] = []
        self._lock = threading.Lock()
        self._viewer = None if headless else open_viewer(self._world, self.get_logger().warning)
        self._make_topics()
        self._answers = Answers(self._hot, timestep, timeout, self.get_logger().warning)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name='mujoco', daemon=True)
        self.add_on_set_parameters_callback(_refuse_bad_push)
        self._diagnostics = Diagnostics(self, 'simulation', robot.name, self._report)

    def _make_topics(self) -> None:
        self._clock_out = self.create_publisher(Clock, '/clock' if self.get_namespace() == '/' else 'clock', qos.COMMAND)
        self._odom_out = self.create_publisher(Odometry, 'odom', qos.SENSOR_OUT)
        self._imu_out = self.create_publisher(Imu, 'imu/data', qos.SENSOR_OUT)
        self._joints_out = self.create_publisher(JointState, 'joint_states', qos.SENSOR_OUT)
        self._hot = ControlLoop(self, 'mujoco')
        self._hot.add(Float64MultiArray, self._drive_topic, self._on_command, qos.COMMAND)
        self.create_service(Trigger, '~/push', lambda _, reply: self._later('push', reply))
        self.create_service(Trigger, '~/reset', lambda _, reply: self._later('reset', reply))

    def begin(self) -> None:
        """Start to simulate."""
        self._thread.start()

    def close(self) -> None:
        """Stop and write the trace."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._viewer is not None:
            self._viewer.close()
        if self._trace is not None:
            self._trace.save(Path(self._trace_file))

    # --- executor thread

    def _later(self, task: str, reply: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self._tasks.append(task)
        reply.success, reply.message = True, task
        return reply

    def _report(self) -> Report:
        age = f'{1e3 * self._age:.1f}' if np.isfinite(self._age) else 'none'
        return (
            'ok',
            f'{self._world.time:.1f} s simulated',
            {'command age ms': age, 'command source': self._source.name.lower()},
        )

    # --- simulation thread

    def _run(self) -> None:
        try:
            pacer, previous = Pacer(self._factor), self._world.time
            while not self._stop.is_set() and self.context.ok():
                self._do_tasks()
                stamp_ns = round(self._world.time * 1e9)
                self._publish(stamp_ns)
                if self._lockstep:
                    self._answers.wait(stamp_ns, previous, self._stop.is_set)
                self._hot.take_all()
                previous = self._world.time
                self._advance(stamp_ns)
                pacer.pace(self._world.time)
        except Exception as error:
            if self.context.ok() and not self._stop.is_set():
                self.get_logger().fatal(f'the simulation failed: {error!r}')
                self.exit_code = 1

    def _advance(self, stamp_ns: int) -> None:
        self._age = np.nan if self._command_ns is None else 1e-9 * (stamp_ns - self._command_ns)
        if self._drive is not None:
            self._torque = self._drive.torque(self._world.joint_pos, self._world.joint_vel, self._world.time)
        if self._trace is not None:
            self._trace.add(Row(self._torque, self._source, self._mode, self._age, 1e-9 * (self._answers.targets_ns or 0)))
        self._world.step(self._torque)
        if self._viewer is not None:
            self._viewer.update()

    def _do_tasks(self) -> None:
        with self._lock:
            tasks, self._tasks = self._tasks, []
        for task in tasks:
            if task == 'push':
                self._world.push(np.asarray(self.get_parameter('push_velocity').value))
            else:
                self._world.reset(self._pose or None)

    def _on_command(self, message: Float64MultiArray) -> None:
        expected = len(self._torque) if self._drive is None else 5 * len(self._torque) + 1
        if len(message.data) != expected:
            self.get_logger().error(
                f'a command of {len(message.data)} numbers was ignored; {len(self._torque)} joints need {expected}',
                throttle_duration_sec=1.0,
            )
            return
        numbers = np.array(message.data)
        if not np.isfinite(numbers).all():
            self.get_logger().error('a command with a non-finite number was ignored', throttle_duration_sec=1.0)
            return
        origin = command_origin(message)
        self._mode = origin.mode
        if self._drive is None:
            self._torque = self._from_command(numbers)
        else:
            self._drive.take(*impedance_from(numbers, self._from_command), self._world.time)
        self._source = Source.WATCHDOG if origin.who == WATCHDOG else Source.SAFETY
        if self._source is Source.SAFETY:
            self._answers.command_ns = origin.stamp_ns
        self._command_ns = origin.stamp_ns

    def _publish(self, stamp_ns: int) -> None:
        stamp, world = time_message(stamp_ns), self._world
        self._clock_out.publish(Clock(clock=stamp))
        if self._robot.floating:
            pose, twist = (world.base_position(), world.base_quat_xyzw()), (world.base_lin_vel(), world.base_ang_vel())
            self._odom_out.publish(odometry_message(*pose, *twist, stamp))
        self._imu_out.publish(imu_message(world.imu(), self._robot.sensors.imu_frame, stamp))
        joints = JointState(name=self._order)
        joints.header.stamp = stamp
        joints.position = self._to_wire(world.joint_pos).tolist()
        joints.velocity = self._to_wire(world.joint_vel).tolist()
        joints.effort = self._to_wire(self._torque).tolist()
        self._joints_out.publish(joints)


def _refuse_bad_push(parameters: list[Parameter]) -> SetParametersResult:
    faults = [_push_fault(parameter.value) for parameter in parameters if parameter.name == 'push_velocity']
    reason = ''.join(faults)
    return SetParametersResult(successful=not reason, reason=reason)


def _push_fault(velocity: Sequence[float] | None) -> str:
    """Return what is wrong with a push, '' if nothing is; rclpy makes None of an empty list."""
    given = list(velocity or ())
    if len(given) == 3 and np.abs(given).max() <= MAX_PUSH:
        return ''
    return f'parameter push_velocity: three numbers of at most {MAX_PUSH:g} m/s are possible, {given} given'


def main() -> int:
    """Run the node."""
    return run_node(MujocoNode)


if __name__ == '__main__':
    raise SystemExit(main())
