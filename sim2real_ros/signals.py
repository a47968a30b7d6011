# SPDX-License-Identifier: Apache-2.0
"""What travels between the stages. Arrays are (..., n): one robot, or any batch of robots.

Joint order is the order of whoever holds the value: the policy's in the policy node, the robot's in the safety node.
Frames follow REP-103: x forward, y left, z up. Times are seconds of the robot's clock (simulated or system).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEVEL_XYZW = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True)
class ImuSample:
    """REP-145: orientation of the sensor in the world, its rate and its specific force, in the sensor frame."""

    quat_xyzw: np.ndarray  # (4,)
    ang_vel: np.ndarray  # (3,) rad/s
    lin_acc: np.ndarray  # (3,) m/s^2; +g on the up axis at rest


@dataclass(frozen=True, slots=True)
class RobotState:
    """A complete sample of the robot's sensors."""

    stamp: float  # s, of the joint sample
    joint_pos: np.ndarray  # (..., n) rad
    joint_vel: np.ndarray  # (..., n) rad/s
    base_quat_xyzw: np.ndarray  # (..., 4) base frame to world, yaw may be arbitrary; LEVEL_XYZW for a fixed base
    base_ang_vel: np.ndarray | None = None  # (..., 3) rad/s, base frame
    base_lin_vel: np.ndarray | None = None  # (..., 3) m/s, base frame, where odometry exists
    imu_age: float = 0.0  # s, how much older the IMU sample is than the joint sample
    base_pos: np.ndarray | None = None  # (..., 3) m, origin of the base in the world, where odometry exists
    base_lin_acc: np.ndarray | None = None  # (..., 3) m/s^2, specific force in the base frame: +g upwards at rest
    foot_contacts: np.ndarray | None = None  # (..., k) 1 where a foot touches, 0 where not, in the contract's order


@dataclass(frozen=True, slots=True)
class JointTargets:
    """What a policy asks of the joints. Torque = kp (position - q) + kd (velocity - qd) + effort."""

    stamp: float  # s, stamp of the state that it answers
    position: np.ndarray  # (..., n) rad
    velocity: np.ndarray  # (..., n) rad/s
    effort: np.ndarray  # (..., n) N m, feed-forward


@dataclass(frozen=True, slots=True)
class Gains:
    """PD gains, (n,)."""

    stiffness: np.ndarray  # N m/rad
    damping: np.ndarray  # N m s/rad


@dataclass(frozen=True, slots=True)
class Impedance:
    """Targets and the gains that they are followed with: what every mode of the safety filter asks of the joints."""

    targets: JointTargets
    gains: Gains


@dataclass(frozen=True, slots=True)
class SafeTorque:
    """A torque that passed the safety filter; the only thing that drivers take and that only `safety/response.py` makes."""

    stamp: float  # s, stamp of the state that it answers
    torque: np.ndarray  # (n,) N m, robot joint order
    limited: np.ndarray  # (n,) bit mask of `safety.limits.Limit`: what altered the torque


@dataclass(frozen=True, slots=True)
class SafeImpedance:
    """The same for drives with a PD law of their own: at the state that it answers the drive comes to the safe torque.

    It expires: a drive that has had no newer one for `expires_s` has to damp its joints by itself.
    """

    stamp: float  # s, stamp of the state that it answers
    impedance: Impedance  # (n,) robot joint order
    expires_s: float
