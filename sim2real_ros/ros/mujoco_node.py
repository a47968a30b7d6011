# SPDX-License-Identifier: Apache-2.0
"""`mujoco_node`: the embedded simulator as a driver: torque in, joint states, IMU, odometry and clock out.

Free running it keeps real time and applies whatever command came last, as hardware does. In lockstep it steps only
when the command that answers the last state has come (and, at a policy tick, the targets too), so a machine that
stalls cannot make the robot fall; an answer that does not come within `lockstep_timeout_s` is no longer waited for.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.joints import JointMap
from sim2real_ros.robot import load_robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import WATCHDOG, command_origin, nanoseconds, time_message
from sim2real_ros.ros.diagnostics import Diagnostics, Report
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.sim.trace import Row, Source, Trace
from sim2real_ros.sim.viewer import open_viewer
from sim2real_ros.sim.world import World
from sim2real_ros.timing import tick_due

MAX_LAG_S = 0.1  # a slower machine is caught up by at most this much; beyond it simulated time is simply slower


class MujocoNode(Node):
    """Simulates one robot."""

    def __init__(self) -> None:
        super().__init__('mujoco_node')
        self.exit_code: int | None = None
        robot = load_robot(declare(self, 'robot', 'go2', 'Robot: shipped name or YAML file.'))
        model = declare(self, 'model', '', "URDF or MJCF to simulate instead of the robot's URDF.")
        timestep = declare(self, 'timestep_s', 0.002, 'Physics step and period of the joint states, s.', low=0.0005, high=0.01)
        self._lockstep = declare(self, 'lockstep', False, 'Step only when the last state was answered.')
        self._lockstep_timeout = declare(self, 'lockstep_timeout_s', 1.0, 'Longest wait for an answer, s.', low=0.01, high=60.0)
        self._factor = declare(
            self, 'real_time_factor', 1.0, 'Simulated s per real s; 0: as fast as possible.', low=0.0, high=100.0
        )
        self._pose = declare(self, 'start_pose', '', "Pose of the robot file to start in; empty: the robot file's start pose.")
        headless = declare(self, 'headless', True, 'Do not open a viewer.')
        self._trace_file = declare(
            self, 'trace_file', '', 'Write states, torques and command ages to this npz file at the end.'
        )
        declare(
            self,
            'push_velocity',
            [0.5, 0.0, 0.0],
            'Change of the base velocity by ~/push, m/s in the world frame.',
            fixed=False,
        )
        self._world = World(robot, timestep=timestep, model_file=Path(model).expanduser() if model else None)
        self._world.reset(self._pose or None)
        self._robot = robot
        self._order = tuple(sorted(robot.joints))  # as joint_state_broadcaster: alphabetical, not the policy's
        self._to_wire = JointMap(robot.joints, self._order, source='robot', target='joint_states')
        self._torque = np.zeros(len(robot.joints))
        self._source, self._age, self._mode = Source.NONE, np.nan, ''
        self._answered_ns: int | None = None  # newest state that the safety node answered
        self._command_ns: int | None = None  # state that the torque in force answers, whoever sent it
        self._targets_ns: int | None = None
        self._period: float | None = None
        self._trace = Trace(self._world) if self._trace_file else None
        self._tasks: list[str] = []
        self._lock = threading.Lock()
        self._viewer = None if headless else open_viewer(self._world, self.get_logger().warning)
        self._make_topics()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name='mujoco', daemon=True)
        self._diagnostics = Diagnostics(self, 'simulation', robot.name, self._report)

    def _make_topics(self) -> None:
        self._clock_out = self.create_publisher(Clock, '/clock' if self.get_namespace() == '/' else 'clock', qos.COMMAND)
        self._odom_out = self.create_publisher(Odometry, 'odom', qos.SENSOR_OUT)
        self._imu_out = self.create_publisher(Imu, 'imu/data', qos.SENSOR_OUT)
        self._joints_out = self.create_publisher(JointState, 'joint_states', qos.SENSOR_OUT)
        self._hot = ControlLoop(self, 'mujoco')
        self._hot.add(String, 'policy/contract', self._on_contract, qos.LATCHED)
        self._hot.add(JointState, 'policy/targets', self._on_targets, qos.COMMAND)
        self._hot.add(Float64MultiArray, 'effort_controller/commands', self._on_command, qos.COMMAND)
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
            begin, origin, previous = time.monotonic(), self._world.time, self._world.time
            while not self._stop.is_set() and self.context.ok():
                self._do_tasks()
                stamp_ns = round(self._world.time * 1e9)
                self._publish(stamp_ns)
                if self._lockstep:
                    self._await_answers(stamp_ns, previous)
                self._hot.take_all()
                previous = self._world.time
                self._advance(stamp_ns)
                if self._factor > 0:
                    late = time.monotonic() - (begin + (self._world.time - origin) / self._factor)
                    if late < 0:
                        time.sleep(-late)
                    elif late > MAX_LAG_S:
                        begin += late - MAX_LAG_S
        except Exception as error:
            if self.context.ok() and not self._stop.is_set():
                self.get_logger().fatal(f'the simulation failed: {error!r}')
                self.exit_code = 1

    def _advance(self, stamp_ns: int) -> None:
        self._age = np.nan if self._command_ns is None else 1e-9 * (stamp_ns - self._command_ns)
        if self._trace is not None:
            self._trace.add(Row(self._torque, self._source, self._mode, self._age, 1e-9 * (self._targets_ns or 0)))
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

    def _await_answers(self, stamp_ns: int, previous: float) -> None:
        """Wait for the command that answers this state, and at a policy tick for the targets, where those streams flow."""
        deadline = time.monotonic() + self._lockstep_timeout
        step_ns = round(self._world.model.opt.timestep * 1e9)
        wants_command = self._answered_ns is not None and self._answered_ns >= stamp_ns - step_ns
        due = self._period is not None and tick_due(stamp_ns * 1e-9, previous, self._period)
        wants_targets = due and self._targets_ns is not None and stamp_ns - self._targets_ns < 1.5e9 * (self._period or 0)
        while not self._stop.is_set():
            missing = [
                name
                for name, wanted, got in (
                    ('command', wants_command, self._answered_ns),
                    ('targets', wants_targets, self._targets_ns),
                )
                if wanted and (got is None or got < stamp_ns)
            ]
            left = deadline - time.monotonic()
            if not missing:
                return
            if left <= 0:
                self.get_logger().warning(
                    f'lockstep: no {" and no ".join(missing)} within {self._lockstep_timeout:g} s; going on without'
                )
                return
            self._hot.wait(int(min(left, 0.1) * 1e9))

    def _on_contract(self, message: String) -> None:
        try:
            self._period = Contract.from_json(message.data, 'policy/contract').period_s
        except Sim2RealError as error:
            self.get_logger().error(str(error))

    def _on_targets(self, message: JointState) -> None:
        self._targets_ns = nanoseconds(message.header.stamp)

    def _on_command(self, message: Float64MultiArray) -> None:
        if len(message.data) != len(self._torque):
            self.get_logger().error(
                f'a command of {len(message.data)} torques for {len(self._torque)} joints was ignored',
                throttle_duration_sec=1.0,
            )
            return
        torque = np.array(message.data)
        if not np.isfinite(torque).all():
            self.get_logger().error('a command with a non-finite torque was ignored', throttle_duration_sec=1.0)
            return
        origin = command_origin(message)
        self._torque, self._mode = torque, origin.mode
        self._source = Source.WATCHDOG if origin.who == WATCHDOG else Source.SAFETY
        if self._source is Source.SAFETY:
            self._answered_ns = origin.stamp_ns
        self._command_ns = origin.stamp_ns

    def _publish(self, stamp_ns: int) -> None:
        stamp, world = time_message(stamp_ns), self._world
        self._clock_out.publish(Clock(clock=stamp))
        if self._robot.floating:
            self._odom_out.publish(_odometry(world, stamp))
        self._imu_out.publish(_imu(world, stamp))
        joints = JointState(name=self._order)
        joints.header.stamp = stamp
        joints.position = self._to_wire(world.joint_pos).tolist()
        joints.velocity = self._to_wire(world.joint_vel).tolist()
        joints.effort = self._to_wire(self._torque).tolist()
        self._joints_out.publish(joints)


def _imu(world: World, stamp: Time) -> Imu:
    sample, message = world.imu(), Imu()
    message.header.stamp, message.header.frame_id = stamp, world.robot.sensors.imu_frame
    q, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
    q.x, q.y, q.z, q.w = sample.quat_xyzw.tolist()
    w.x, w.y, w.z = sample.ang_vel.tolist()
    a.x, a.y, a.z = sample.lin_acc.tolist()
    return message


def _odometry(world: World, stamp: Time) -> Odometry:
    message = Odometry(child_frame_id='base_link')
    message.header.stamp, message.header.frame_id = stamp, 'odom'
    p, q, v = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist.linear
    p.x, p.y, p.z = world.base_position().tolist()
    q.x, q.y, q.z, q.w = world.base_quat_xyzw().tolist()
    v.x, v.y, v.z = world.base_lin_vel().tolist()
    return message


def main() -> int:
    """Run the node."""
    return run_node(MujocoNode)


if __name__ == '__main__':
    raise SystemExit(main())
