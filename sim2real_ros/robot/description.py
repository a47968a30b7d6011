# SPDX-License-Identifier: Apache-2.0
"""`load_robot`: URDF and robot YAML together, as arrays in the robot's joint order, or every fault in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real_ros.document import read_yaml, validate
from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.joints import by_name
from sim2real_ros.paths import find_robot
from sim2real_ros.robot.schema import Limits, RobotFile, Sensors, Tilt
from sim2real_ros.robot.urdf import read_joints, read_mounting
from sim2real_ros.signals import LEVEL_XYZW


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Limits of each joint, (n,) in robot order."""

    lower: np.ndarray  # rad
    upper: np.ndarray  # rad
    velocity: np.ndarray  # rad/s, magnitude
    effort: np.ndarray  # N m, magnitude


@dataclass(frozen=True, slots=True)
class PoseMove:
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
    tilt: Tilt


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
    pose_move: PoseMove
    damping: np.ndarray  # N m s/rad, used alone in the mode `damping`
    sensors: Sensors
    imu_mounting_xyzw: np.ndarray  # (4,) rotation from the IMU's frame to the base frame
    safety: Safety
    simulation: Simulation

    def pose(self, name: str) -> np.ndarray:
        """Return the named pose, (n,) rad.

        Raises:
            NotFoundError: the robot has no such pose.
        """
        if name not in self.poses:
            raise NotFoundError(f'robot {self.name} has no pose "{name}"; its poses are {", ".join(self.poses)}')
        return self.poses[name]


def load_robot(robot: str | Path) -> Robot:
    """Load a robot by shipped name or by the path of its YAML file.

    Raises:
        NotFoundError: no such robot, or its URDF is missing.
        DocumentError: the YAML or the URDF has faults; all are listed.
    """
    path = find_robot(str(robot))
    document = validate(RobotFile, read_yaml(path), str(path))
    urdf = (path.parent / document.urdf).resolve()
    declared = read_joints(urdf)
    joints = tuple(joint.name for joint in declared)
    faults: list[str] = []

    def table(values: Mapping[str, float], where: str) -> np.ndarray:
        return by_name(values, joints, faults, where)

    limits = _limits(
        JointLimits(*(np.array([getattr(j, f) for j in declared]) for f in ('lower', 'upper', 'velocity', 'effort'))),
        document.limits,
        joints,
        faults,
    )
    narrow = [n for n, d in zip(joints, limits.upper - limits.lower, strict=True) if d <= 2 * document.safety.position_margin]
    if narrow:
        faults.append(f'safety.position_margin: twice the margin is more than the range of {", ".join(narrow)}')
    poses = {name: table(pose, f'poses.{name}') for name, pose in document.poses.items()}
    for name, pose in poses.items():
        _check_inside(pose, limits, joints, f'poses.{name}', faults)
    move, safety, simulation = document.pose_move, document.safety, document.simulation
    for pose_name, where in (('stand', 'poses'), (simulation.start_pose, 'simulation.start_pose')):
        if pose_name not in poses:
            faults.append(f'{where}: the pose "{pose_name}" is not defined; poses are {", ".join(poses) or "none"}')
    try:
        mounting = read_mounting(urdf, document.sensors.imu_frame)
    except DocumentError as error:
        mounting = LEVEL_XYZW
        faults += error.faults
    loaded = Robot(
        name=document.name,
        path=path,
        urdf=urdf,
        floating=document.base == 'floating',
        joints=joints,
        limits=limits,
        poses=poses,
        pose_move=PoseMove(
            move.duration_s, table(move.stiffness, 'pose_move.stiffness'), table(move.damping, 'pose_move.damping')
        ),
        damping=table(document.damping, 'damping'),
        sensors=document.sensors,
        imu_mounting_xyzw=mounting,
        safety=Safety(
            safety.position_margin,
            table(safety.brake_acceleration, 'safety.brake_acceleration'),
            table(safety.torque_rate, 'safety.torque_rate'),
            table(safety.stall_torque, 'safety.stall_torque'),
            table(safety.no_load_speed, 'safety.no_load_speed'),
            safety.tilt,
        ),
        simulation=Simulation(
            table(simulation.armature, 'simulation.armature'),
            table(simulation.joint_damping, 'simulation.joint_damping'),
            table(simulation.joint_friction, 'simulation.joint_friction'),
            simulation.foot_friction,
            tuple(simulation.feet),
            simulation.start_pose,
        ),
    )
    if faults:
        raise DocumentError(str(path), faults)
    return loaded


def _limits(model: JointLimits, override: Limits, joints: tuple[str, ...], faults: list[str]) -> JointLimits:
    """Take the model's limits, replaced where the YAML gives its own, and refuse what cannot be held."""
    fields: dict[str, np.ndarray] = {}
    for field in ('lower', 'upper', 'velocity', 'effort'):
        given: Mapping[str, float] | None = getattr(override, field)
        values = getattr(model, field) if given is None else by_name(given, joints, faults, f'limits.{field}')
        fields[field] = values
        own = getattr(model, field)
        looser = values < own if field == 'lower' else values > own
        for name, value, limit in zip(joints, values, own, strict=True):
            if looser[joints.index(name)]:
                faults.append(f'limits.{field}: {name} at {value:g} is looser than the URDF, which says {limit:g}')
        for name, value in zip(joints, values, strict=True):
            if np.isnan(value) or (field in ('velocity', 'effort') and value <= 0):
                faults.append(f'{name}: the URDF gives no positive {field} limit; add it there or as limits.{field} here')
    for name, low, high in zip(joints, fields['lower'], fields['upper'], strict=True):
        if low >= high:
            faults.append(f'{name}: lower limit {low:g} is not below upper limit {high:g}')
    return JointLimits(**fields)


def _check_inside(pose: np.ndarray, limits: JointLimits, joints: tuple[str, ...], where: str, faults: list[str]) -> None:
    for name, value, low, high in zip(joints, pose, limits.lower, limits.upper, strict=True):
        if value < low or value > high:
            faults.append(f'{where}.{name}: {value:g} rad is outside the joint range [{low:g}, {high:g}]')
