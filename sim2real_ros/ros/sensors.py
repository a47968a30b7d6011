# SPDX-License-Identifier: Apache-2.0
"""`Sensors`: the sensor topics of a control loop, joined into one `RobotState` per joint state."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.raw import ImuReader, JointReader, Sample
from sim2real_ros.rotations import multiply_xyzw, world_to_base
from sim2real_ros.signals import LEVEL_XYZW, RobotState

ODOM_TIMEOUT_S = 0.1  # estimators run at 50 Hz and more
QUATERNION_TOLERANCE = 0.01  # of its norm
# in what `ImuReader` reads
ORIENTATION, NO_ORIENTATION, ANGULAR_VELOCITY, ACCELERATION = slice(0, 4), 4, slice(13, 16), slice(25, 28)


class Sensors:
    """Subscribes joint states, IMU and odometry; hands on each joint state.

    Messages may list the joints in any order and change it; they are matched by name. Each joint state goes with the
    newest IMU sample. In lockstep it waits for the one of its own stamp, because threads of the middleware may deliver
    the two in either order and a lockstep run must not depend on that.

    Attributes:
        problem: why no state could be made, '' when one could.
    """

    def __init__(
        self,
        loop: ControlLoop,
        robot: Robot,
        joints: tuple[str, ...],
        consumer: str,
        on_joint_state: Callable[[Sample], None],
        *,
        imu: bool = True,
        odom: bool = False,
        contacts: bool = False,
        lockstep: bool = False,
        awaits: Callable[[float], bool] = lambda _: False,
    ) -> None:
        """Add the topics to a loop.

        Args:
            loop: takes the messages.
            robot: tells the mounting of the IMU.
            joints: order in which states are made.
            consumer: who needs them, for messages.
            on_joint_state: called for each joint state, in the loop's thread; calls `state` when it wants the numbers.
            imu: whether an IMU is needed.
            odom: whether odometry is needed.
            contacts: whether foot contacts are needed.
            lockstep: whether to wait for samples of the same stamp.
            awaits: in lockstep, whether something else must come before the state of a stamp; call `release` when it has.
        """
        self._consumer, self._on_joint_state = consumer, on_joint_state
        self._needs_imu, self._needs_odom, self._needs_contacts = imu, odom, contacts
        self._lockstep, self._awaits = lockstep, awaits
        self._mounting_inverse = robot.imu_mounting_xyzw * (-1, -1, -1, 1)
        self._aligned = bool(np.allclose(np.abs(robot.imu_mounting_xyzw), LEVEL_XYZW))
        self._joint_reader, self._imu_reader = JointReader(joints, consumer), ImuReader()
        self._pending: Sample | None = None
        self._imu: Sample | None = None
        self._odom: Sample | None = None
        self._contacts: np.ndarray | None = None
        self._heard: set[str] = set()
        self.problem = 'no joint_states yet'
        self._loop = loop
        if imu:
            loop.add(Imu, 'imu/data', self._on_imu, qos.SENSOR_IN, raw=True, wakes=self._waits)
        self.require([name for name, needed in (('odom', odom), ('contacts', contacts)) if needed])
        loop.add(JointState, 'joint_states', self._on_joints, qos.SENSOR_IN, raw=True)

    def listen(self, signals: Collection[str]) -> None:
        """Take signals (`odom`, `contacts`) from now on, where they come; states do without them until they are required."""
        if 'odom' in signals and 'odom' not in self._heard:
            self._heard.add('odom')
            self._loop.add(Odometry, 'odom', self._on_odom, qos.SENSOR_IN, raw=True, wakes=self._waits)
        if 'contacts' in signals and 'contacts' not in self._heard:
            self._heard.add('contacts')
            self._loop.add(Float64MultiArray, 'foot_contacts', self._on_contacts, qos.SENSOR_IN, wakes=lambda: False)

    def require(self, signals: Collection[str]) -> None:
        """Make no more states without these of `odom` and `contacts`, and do without the others."""
        self.listen(signals)
        self._needs_odom, self._needs_contacts = 'odom' in signals, 'contacts' in signals

    def _on_contacts(self, message: Float64MultiArray) -> None:
        self._contacts = np.array(message.data)

    # --- arrival

    def _waits(self) -> bool:
        return self._pending is not None

    def _on_imu(self, data: bytes) -> None:
        self._imu = Sample(data)
        self.release()

    def _on_odom(self, data: bytes) -> None:
        self._odom = Sample(data)
        self.release()

    def _on_joints(self, data: bytes) -> None:
        if self._pending is not None:  # its companions never came
            pending, self._pending = self._pending, None
            self._on_joint_state(pending)
        self._pending = Sample(data)
        self.release()

    def release(self) -> None:
        """Hand on the joint state that waits, if nothing is missing any more."""
        sample = self._pending
        if sample is None:
            return
        if self._lockstep:
            wanted = ((self._needs_imu, self._imu), (self._needs_odom, self._odom))
            late = any(needed and other is not None and other.stamp_ns < sample.stamp_ns for needed, other in wanted)
            if late or self._awaits(sample.stamp):
                return
        self._pending = None
        self._on_joint_state(sample)

    # --- conversion

    def state(self, sample: Sample) -> RobotState | None:
        """Return the state at a joint sample, or None (see `problem`) while another sensor is missing.

        Raises:
            JointError: the message lacks a joint, or a joint lacks its position or velocity.
        """
        joint_pos, joint_vel = self._joint_reader.read(sample.data)
        imu = self._imu_reader.read(self._imu.data) if self._imu is not None else None
        self.problem = self._missing(imu, sample)
        if self.problem:
            return None
        quat, ang_vel, lin_acc, imu_age = LEVEL_XYZW, None, None, 0.0
        if imu is not None and self._imu is not None:
            quat, ang_vel, lin_acc = self._base_motion(imu)
            imu_age = 1e-9 * (sample.stamp_ns - self._imu.stamp_ns)
        lin_vel, position = self._odometry() if self._odom_age(sample) <= ODOM_TIMEOUT_S else (None, None)
        return RobotState(
            sample.stamp, joint_pos, joint_vel, quat, ang_vel, lin_vel, imu_age,
            base_pos=position, base_lin_acc=lin_acc, foot_contacts=self._contacts,
        )  # fmt: skip

    def _odometry(self) -> tuple[np.ndarray, np.ndarray]:
        """Return velocity (3,) m/s in the base frame, which is the child frame of REP-105, and position (3,) m."""
        assert self._odom is not None
        message = deserialize_message(self._odom.data, Odometry)
        v, p = message.twist.twist.linear, message.pose.pose.position
        return np.array((v.x, v.y, v.z)), np.array((p.x, p.y, p.z))

    def _odom_age(self, sample: Sample) -> float:
        return 1e-9 * (sample.stamp_ns - self._odom.stamp_ns) if self._odom is not None else math.inf

    def velocities(self, sample: Sample) -> np.ndarray:
        """Return the joint velocities alone, (n,) rad/s; raises JointError as `state` does."""
        return self._joint_reader.read(sample.data)[1]

    def _missing(self, imu: np.ndarray | None, sample: Sample) -> str:
        if self._needs_imu and imu is None:
            return 'no imu/data yet'
        if self._needs_imu and imu is not None and imu[NO_ORIENTATION] == -1.0:
            return 'imu/data carries no orientation (orientation_covariance[0] is -1, REP-145)'
        if self._needs_odom and self._odom is None:
            return f'{self._consumer} needs odom, and none has arrived'
        if self._needs_odom and (age := self._odom_age(sample)) > ODOM_TIMEOUT_S:
            return f'odom is {age:.2f} s old, allowed {ODOM_TIMEOUT_S:g} s'
        if self._needs_contacts and self._contacts is None:
            return f'{self._consumer} needs foot_contacts, and none has arrived'
        return ''

    def _base_motion(self, imu: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return orientation (4,) xyzw, rate (3,) and acceleration (3,) of the base; NaN orientation when it is no rotation."""
        quat, ang_vel, lin_acc = imu[ORIENTATION], imu[ANGULAR_VELOCITY], imu[ACCELERATION]
        if abs(float(quat @ quat) - 1.0) > 2 * QUATERNION_TOLERANCE:
            return np.full(4, np.nan), ang_vel, lin_acc
        if not self._aligned:
            ang_vel, lin_acc = (world_to_base(self._mounting_inverse, vector) for vector in (ang_vel, lin_acc))
            quat = multiply_xyzw(quat, self._mounting_inverse)
        return quat, ang_vel, lin_acc
