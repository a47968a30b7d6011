# SPDX-License-Identifier: Apache-2.0
"""Messages to signals and back; the only file that knows message fields. Quaternions are x, y, z, w in ROS."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.errors import JointError
from sim2real_ros.joints import JointMap
from sim2real_ros.labels import Origin, TickLabel
from sim2real_ros.robot import Robot
from sim2real_ros.ros.raw import array_message
from sim2real_ros.signals import Gains, Impedance, ImuSample, JointTargets, SafeImpedance, SafeTorque

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


def imu_message(sample: ImuSample, frame: str, stamp: Time) -> Imu:
    """Return an IMU sample as a message."""
    message = Imu()
    message.header.stamp, message.header.frame_id = stamp, frame
    q, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
    q.x, q.y, q.z, q.w = sample.quat_xyzw.tolist()
    w.x, w.y, w.z = sample.ang_vel.tolist()
    a.x, a.y, a.z = sample.lin_acc.tolist()
    return message


def odometry_message(
    position: np.ndarray, quat_xyzw: np.ndarray, lin_vel: np.ndarray, ang_vel: np.ndarray, stamp: Time
) -> Odometry:
    """Return the base's pose in `odom` and its velocity, m/s and rad/s in `base_link` (REP-105), as a message."""
    message = Odometry(child_frame_id='base_link')
    message.header.stamp, message.header.frame_id = stamp, 'odom'
    p, q = message.pose.pose.position, message.pose.pose.orientation
    v, w = message.twist.twist.linear, message.twist.twist.angular
    p.x, p.y, p.z = position.tolist()
    q.x, q.y, q.z, q.w = quat_xyzw.tolist()
    v.x, v.y, v.z = lin_vel.tolist()
    w.x, w.y, w.z = ang_vel.tolist()
    return message


def targets_message(targets: JointTargets, joints: tuple[str, ...], contract_id: str, stamp: Time) -> JointState:
    """Return targets as a message; the stamp is the very one of the joint state that they answer."""
    message = JointState()
    message.header.stamp = stamp
    message.header.frame_id = contract_id
    message.name = list(joints)
    # lists, because Humble's setters refuse arrays
    message.position, message.velocity = targets.position.tolist(), targets.velocity.tolist()
    message.effort = targets.effort.tolist()
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
    """Writes serialised command messages, ready to publish.

    The label of their dimension says whose command it is, which joint state it answers and in which mode it was computed; see
    `Origin`. Controllers ignore it; the simulator measures the command's age with it.
    """

    def __init__(self, robot: Robot, command_joints: tuple[str, ...], who: str) -> None:
        """Raises JointError when the command order is not exactly the robot's joints."""
        self._map = JointMap(robot.joints, command_joints, source=f'robot {robot.name}', target='command_joints', exact=True)
        self._who = who

    def write(self, torque: SafeTorque, stamp_ns: int, mode: str) -> bytes:
        """Return the command message of a torque in robot order."""
        return array_message(Origin(self._who, stamp_ns, mode).label, self._map(torque.torque))


class ImpedanceWriter:
    """Writes commands for drives with a PD law of their own, labelled as `CommandWriter` does.

    The 5 n + 1 numbers are positions, velocities, stiffness, damping and feed-forward torque, each in command order, and
    the time in s after which the command is void and the drive has to damp by itself.
    """

    def __init__(self, robot: Robot, command_joints: tuple[str, ...], who: str) -> None:
        """Raises JointError when the command order is not exactly the robot's joints."""
        self._map = JointMap(robot.joints, command_joints, source=f'robot {robot.name}', target='command_joints', exact=True)
        self._who = who

    def write(self, command: SafeImpedance, stamp_ns: int, mode: str) -> bytes:
        """Return the command message of an impedance in robot order."""
        targets, gains = command.impedance.targets, command.impedance.gains
        rows = np.stack((targets.position, targets.velocity, gains.stiffness, gains.damping, targets.effort))
        numbers = np.append(self._map(rows).ravel(), command.expires_s)
        return array_message(Origin(self._who, stamp_ns, mode).label, numbers)


def impedance_from(numbers: np.ndarray, joint_map: JointMap) -> tuple[Impedance, float]:
    """Return the impedance of a command in the order of the map's target, and the s after which it is void.

    Args:
        numbers: (5 n + 1,) as `ImpedanceWriter` writes them.
        joint_map: from the command order.
    """
    position, velocity, stiffness, damping, effort = joint_map(numbers[:-1].reshape(5, -1))
    return Impedance(JointTargets(0.0, position, velocity, effort), Gains(stiffness, damping)), float(numbers[-1])


def policy_trace_message(stamp_ns: int, observation: np.ndarray, action: np.ndarray, command: np.ndarray, first: bool) -> bytes:
    """Return what a policy saw, did and was told at a stamp, as a serialised Float64MultiArray; see `TickLabel`."""
    label = TickLabel(stamp_ns, observation.size, action.size, first).label
    return array_message(label, np.concatenate((observation.ravel(), action.ravel(), command)).astype(float))


def policy_trace_from(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return observation and action of a serialised trace message; raises ValueError when it is none."""
    message = deserialize_message(data, Float64MultiArray)
    if not message.layout.dim:
        raise ValueError('no label')
    tick = TickLabel.of(message.layout.dim[0].label)
    numbers = np.array(message.data)
    return numbers[: tick.observation], numbers[tick.observation : tick.observation + tick.action]


# what a driver may take: topic and writer
OUTPUTS: dict[str, tuple[str, type[CommandWriter] | type[ImpedanceWriter]]] = {
    'torque': ('effort_controller/commands', CommandWriter),
    'impedance': ('impedance_controller/commands', ImpedanceWriter),
}


def command_origin(message: Float64MultiArray) -> Origin:
    """Return what the label of a command says."""
    return Origin.of(message.layout.dim[0].label) if message.layout.dim else Origin()


def goal_from(message: PoseStamped) -> np.ndarray:
    """Return position in m and quaternion x, y, z, w (7,) of a goal; its frame is the contract's business."""
    p, q = message.pose.position, message.pose.orientation
    return np.array((p.x, p.y, p.z, q.x, q.y, q.z, q.w))


def velocity_from(message: Any) -> np.ndarray:
    """Return x, y velocity and yaw rate (3,) of a Twist or TwistStamped."""
    twist: Twist = message.twist if hasattr(message, 'twist') else message
    return np.array((twist.linear.x, twist.linear.y, twist.angular.z))
