# SPDX-License-Identifier: Apache-2.0
"""`Robot`: what URDF and robot YAML say together, as arrays in the robot's joint order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.robot.schema import MonitorsSection, SensorsSection, TiltSection


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Limits of each joint, (n,) in robot order."""

    lower: np.ndarray  # rad
    upper: np.ndarray  # rad
    velocity: np.ndarray  # rad/s, magnitude
    effort: np.ndarray  # N m, magnitude


@dataclass(frozen=True, slots=True)
class PoseSettings:
    """Duration in s and (n,) gains in robot order of the move into the default pose."""

    duration_s: float
    stiffness: np.ndarray  # N m/rad
    damping: np.ndarray  # N m s/rad


@dataclass(frozen=True, slots=True)
class Safety:
    """Parameters of the safety filter, (n,) in robot order."""

    position_margin: float  # rad
    brake_acceleration: np.ndarray  # rad/s^2
    torque_rate: np.ndarray  # N m/s
    stall_torque: np.ndarray  # N m
    no_load_speed: np.ndarray  # rad/s
    power_limit_w: float | None
    continuous_torque: np.ndarray | None  # N m
    peak_torque_s: float
    command_delay_s: float
    barrier: str  # auto | coupled | per_joint
    blend_s: float
    tilt: TiltSection


@dataclass(frozen=True, slots=True)
class Simulation:
    """Figures for simulators, (n,) in robot order."""

    armature: np.ndarray  # kg m^2
    joint_damping: np.ndarray  # N m s/rad
    joint_friction: np.ndarray  # N m
    foot_friction: float
    feet: tuple[str, ...]  # link names
    start_pose: str


@dataclass(frozen=True, slots=True)
class Robot:
    """A robot as the stack knows it. Every array is (n,) in the order of `joints`, which is the URDF's."""

    name: str
    path: Path
    urdf: Path
    floating: bool
    joints: tuple[str, ...]
    limits: JointLimits
    poses: Mapping[str, np.ndarray]  # rad
    pose_move: PoseSettings
    damping: np.ndarray  # N m s/rad, used alone in the mode `damping`
    sensors: SensorsSection
    imu_mounting_xyzw: np.ndarray  # (4,) rotation from the IMU's frame to the base frame
    safety: Safety
    monitors: MonitorsSection
    simulation: Simulation | None  # None: the robot file says nothing of it
    profile: str = ''  # that was chosen, '' for none
    command_share: float = 1.0  # of the range of a policy's velocity command that the profile leaves

    def pose(self, name: str) -> np.ndarray:
        """Return the named pose, (n,) rad.

        Raises:
            NotFoundError: the robot has no such pose.
        """
        if name not in self.poses:
            raise NotFoundError(f'robot {self.name} has no pose "{name}"; its poses are {", ".join(self.poses)}')
        return self.poses[name]

    def simulated(self) -> Simulation:
        """Return the figures for simulators.

        Raises:
            DocumentError: the robot file has none.
        """
        if self.simulation is None:
            raise DocumentError(str(self.path), ['simulation: is missing; to simulate this robot add it, as in go2.yaml'])
        return self.simulation
