# SPDX-License-Identifier: Apache-2.0
"""`Sensors`: the sensor topics of a control loop, joined into one `RobotState` per joint state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState

from sim2real_ros.errors import JointError
from sim2real_ros.joints import JointMap
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import seconds
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.rotations import multiply_xyzw, world_to_base
from sim2real_ros.signals import LEVEL_XYZW, RobotState

QUATERNION_TOLERANCE = 0.01  # of its norm


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
        on_joint_state: Callable[[JointState], None],
        *,
        imu: bool = True,
        odom: bool = False,
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
            lockstep: whether to wait for samples of the same stamp.
            awaits: in lockstep, whether something else must come before the state of a stamp; call `release` when it has.
        """
        self._joints, self._consumer, self._on_joint_state = joints, consumer, on_joint_state
        self._needs_imu, self._needs_odom, self._lockstep, self._awaits = imu, odom, lockstep, awaits
        self._mounting_inverse = robot.imu_mounting_xyzw * (-1, -1, -1, 1)
        self._aligned = bool(np.allclose(np.abs(robot.imu_mounting_xyzw), LEVEL_XYZW))
        self._names: list[str] = []
        self._map: JointMap | None = None
        self._pending: JointState | None = None
        self._imu: Imu | None = None
        self._odom: Odometry | None = None
        self.problem = 'no joint_states yet'
        if imu:
            loop.add(Imu, 'imu/data', self._on_imu, qos.SENSOR_IN)
        if odom:
            loop.add(Odometry, 'odom', self._on_odom, qos.SENSOR_IN)
        loop.add(JointState, 'joint_states', self._on_joints, qos.SENSOR_IN)

    # --- arrival

    def _on_imu(self, message: Imu) -> None:
        self._imu = message
        self.release()

    def _on_odom(self, message: Odometry) -> None:
        self._odom = message
        self.release()

    def _on_joints(self, message: JointState) -> None:
        if self._pending is not None:  # its companions never came
            pending, self._pending = self._pending, None
            self._on_joint_state(pending)
        self._pending = message
        self.release()

    def release(self) -> None:
        """Hand on the joint state that waits, if nothing is missing any more."""
        message = self._pending
        if message is None:
            return
        wanted = [*([self._imu] if self._needs_imu else []), *([self._odom] if self._needs_odom else [])]
        stamp = seconds(message.header.stamp)
        if self._lockstep and (any(m is not None and seconds(m.header.stamp) < stamp for m in wanted) or self._awaits(stamp)):
            return
        self._pending = None
        self._on_joint_state(message)

    # --- conversion

    def state(self, message: JointState) -> RobotState | None:
        """Return the state at a joint sample, or None (see `problem`) while another sensor is missing.

        Raises:
            JointError: the message lacks a joint, or a joint lacks its position or velocity.
        """
        joint_map = self._match(message)
        stamp, imu, odom = seconds(message.header.stamp), self._imu, self._odom
        self.problem = self._missing()
        if self.problem:
            return None
        quat, ang_vel, imu_age = LEVEL_XYZW, None, 0.0
        if imu is not None and self._needs_imu:
            quat, ang_vel = self._base_motion(imu)
            imu_age = stamp - seconds(imu.header.stamp)
        lin_vel = None
        if odom is not None:
            v = odom.twist.twist.linear  # REP-105: a twist is in the child frame, the base
            lin_vel = np.array((v.x, v.y, v.z))
        positions, velocities = np.array(message.position), np.array(message.velocity)
        return RobotState(stamp, joint_map(positions), joint_map(velocities), quat, ang_vel, lin_vel, imu_age)

    def velocities(self, message: JointState) -> np.ndarray:
        """Return the joint velocities alone, (n,) rad/s; raises JointError as `state` does."""
        return self._match(message)(np.array(message.velocity))

    def _missing(self) -> str:
        if self._needs_imu and self._imu is None:
            return 'no imu/data yet'
        if self._needs_imu and self._imu is not None and self._imu.orientation_covariance[0] == -1.0:
            return 'imu/data carries no orientation (orientation_covariance[0] is -1, REP-145)'
        if self._needs_odom and self._odom is None:
            return f'{self._consumer} needs odom, and none has arrived'
        return ''

    def _base_motion(self, imu: Imu) -> tuple[np.ndarray, np.ndarray]:
        """Return orientation (4,) xyzw and rate (3,) of the base; NaN orientation when it is not a rotation."""
        q, w = imu.orientation, imu.angular_velocity
        quat, ang_vel = np.array((q.x, q.y, q.z, q.w)), np.array((w.x, w.y, w.z))
        if abs(float(quat @ quat) - 1.0) > 2 * QUATERNION_TOLERANCE:
            return np.full(4, np.nan), ang_vel
        if not self._aligned:
            ang_vel = world_to_base(self._mounting_inverse, ang_vel)
            quat = multiply_xyzw(quat, self._mounting_inverse)
        return quat, ang_vel

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
