# SPDX-License-Identifier: Apache-2.0
"""Messages to signals and back; the only file that knows message fields. Quaternions are x, y, z, w in ROS."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from sim2real_ros.errors import JointError
from sim2real_ros.joints import JointMap
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import multiply_xyzw, world_to_base
from sim2real_ros.signals import LEVEL_XYZW, JointTargets, RobotState, SafeTorque

WATCHDOG = 'watchdog'  # label of the commands that the watchdog sends


def seconds(stamp: Time) -> float:
    """Return a stamp in s."""
    return stamp.sec + stamp.nanosec * 1e-9


def nanoseconds(stamp: Time) -> int:
    """Return a stamp in ns."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def time_message(nanoseconds_: int) -> Time:
    """Return a stamp message."""
    return Time(sec=nanoseconds_ // 1_000_000_000, nanosec=nanoseconds_ % 1_000_000_000)


class StateAssembler:
    """Joins joint states, IMU and odometry into a `RobotState` in the joint order of whoever asks.

    Messages may list the joints in any order and change it; they are matched by name.
    """

    def __init__(self, robot: Robot, joints: tuple[str, ...], consumer: str) -> None:
        self._robot, self._joints, self._consumer = robot, joints, consumer
        self._names: list[str] = []
        self._map: JointMap | None = None
        self._mounting = robot.imu_mounting_xyzw
        self._aligned = bool(np.allclose(np.abs(self._mounting), LEVEL_XYZW))
        self._quat: np.ndarray | None = None
        self._ang_vel: np.ndarray | None = None
        self._imu_stamp = 0.0
        self._lin_vel: np.ndarray | None = None
        self.problem = 'no joint_states yet'

    def imu(self, message: Imu) -> None:
        """Take an IMU sample; one without orientation (REP-145: first covariance -1) counts as none."""
        if message.orientation_covariance[0] == -1.0:
            self.problem = 'imu/data carries no orientation (orientation_covariance[0] is -1)'
            return
        q, w = message.orientation, message.angular_velocity
        quat, ang_vel = np.array((q.x, q.y, q.z, q.w)), np.array((w.x, w.y, w.z))
        if not self._aligned:
            ang_vel = world_to_base(self._mounting * (-1, -1, -1, 1), ang_vel)
            quat = multiply_xyzw(quat, self._mounting * (-1, -1, -1, 1))
        norm = float(np.linalg.norm(quat))
        if abs(norm - 1.0) > 0.01:
            quat = np.full(4, np.nan)  # not a rotation; found as non_finite_sensor
        self._quat, self._ang_vel = quat, ang_vel
        self._imu_stamp = seconds(message.header.stamp)

    def odom(self, message: Odometry) -> None:
        """Take the base velocity; REP-105: a twist is in the child frame, the base."""
        v = message.twist.twist.linear
        self._lin_vel = np.array((v.x, v.y, v.z))

    @property
    def has_odom(self) -> bool:
        """Whether odometry has arrived."""
        return self._lin_vel is not None

    def joints(self, message: JointState) -> RobotState | None:
        """Return the state at a joint sample, or None (see `problem`) while the IMU is missing.

        Raises:
            JointError: the message lacks a joint or has no velocities.
        """
        joint_map = self._match(message)
        if self._robot.floating and self._quat is None:
            if 'orientation' not in self.problem:
                self.problem = 'no imu/data yet'
            return None
        stamp = seconds(message.header.stamp)
        self.problem = ''
        return RobotState(
            stamp,
            joint_map(np.array(message.position)),
            joint_map(np.array(message.velocity)),
            LEVEL_XYZW if self._quat is None else self._quat,
            self._ang_vel,
            self._lin_vel,
            stamp - self._imu_stamp if self._quat is not None else 0.0,
        )

    def velocities(self, message: JointState) -> np.ndarray:
        """Return the joint velocities alone, (n,) rad/s; raises JointError as `joints` does."""
        return self._match(message)(np.array(message.velocity))

    def _match(self, message: JointState) -> JointMap:
        if self._map is None or message.name != self._names:
            self._map = JointMap(message.name, self._joints, source='joint_states', target=self._consumer)
            self._names = list(message.name)
        if len(message.position) != len(self._names) or len(message.velocity) != len(self._names):
            raise JointError(
                f'joint_states has {len(self._names)} names, {len(message.position)} positions and {len(message.velocity)} '
                'velocities; each joint needs all three'
            )
        return self._map


def targets_message(targets: JointTargets, joints: tuple[str, ...], contract_id: str, stamp: Time) -> JointState:
    """Return targets as a message; the stamp is the very one of the joint state that they answer."""
    message = JointState()
    message.header.stamp = stamp
    message.header.frame_id = contract_id
    message.name = list(joints)
    message.position, message.velocity, message.effort = targets.position, targets.velocity, targets.effort
    return message


def targets_from(message: JointState) -> JointTargets:
    """Return the targets of a message, in the message's order.

    Raises:
        JointError: its arrays differ in length.
    """
    lengths = {len(message.name), len(message.position), len(message.velocity), len(message.effort)}
    if len(lengths) != 1:
        raise JointError('policy/targets: name, position, velocity and effort differ in length')
    return JointTargets(
        seconds(message.header.stamp), np.array(message.position), np.array(message.velocity), np.array(message.effort)
    )


class CommandWriter:
    """Fills one reused command message.

    The label of its dimension carries whose command it is and which joint state it answers, `<who>:<stamp in ns>`.
    Controllers ignore it; the simulator measures the command's age with it.
    """

    def __init__(self, robot: Robot, command_joints: tuple[str, ...], who: str) -> None:
        """Raises JointError when the command order is not exactly the robot's joints."""
        self._map = JointMap(robot.joints, command_joints, source=f'robot {robot.name}', target='command_joints', exact=True)
        size = len(command_joints)
        self._dimension = MultiArrayDimension(label='', size=size, stride=size)
        self._message = Float64MultiArray()
        self._message.layout.dim = [self._dimension]
        self._who = who

    def write(self, torque: SafeTorque, stamp_ns: int) -> Float64MultiArray:
        """Return the command message of a torque in robot order."""
        self._dimension.label = f'{self._who}:{stamp_ns}'
        self._message.data = self._map(torque.torque).tolist()
        return self._message


def command_origin(message: Float64MultiArray) -> tuple[str, int | None]:
    """Return who sent a command and the stamp in ns that it answers; ('', None) for foreign commands."""
    label = message.layout.dim[0].label if message.layout.dim else ''
    who, _, stamp = label.partition(':')
    return who, int(stamp) if stamp.isdigit() else None


def velocity_from(message: Any) -> np.ndarray:
    """Return x, y velocity and yaw rate (3,) of a Twist or TwistStamped."""
    twist: Twist = message.twist if hasattr(message, 'twist') else message
    return np.array((twist.linear.x, twist.linear.y, twist.angular.z))
