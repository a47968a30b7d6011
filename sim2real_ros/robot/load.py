# SPDX-License-Identifier: Apache-2.0
"""`load_robot`: URDF and robot YAML together become a `Robot`, or every fault in one message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from sim2real_ros.document import read_yaml, validate
from sim2real_ros.errors import DocumentError
from sim2real_ros.joints import by_name
from sim2real_ros.paths import find_robot
from sim2real_ros.robot.description import JointLimits, PoseSettings, Robot, Safety, Simulation
from sim2real_ros.robot.profile import milder
from sim2real_ros.robot.schema import LimitsSection, PoseMoveSection, RobotFile, SafetySection, SimulationSection
from sim2real_ros.robot.urdf import UrdfJoint, read_joints, read_mounting
from sim2real_ros.signals import LEVEL_XYZW

Table = Callable[[Mapping[str, float], str], np.ndarray]  # values by name and their place in the file -> (n,)


def load_robot(robot: str | Path, profile: str = '') -> Robot:
    """Load a robot by shipped name or by the path of its YAML file, made milder by one of its profiles where one is named.

    Raises:
        NotFoundError: no such robot, it has no such profile, or its URDF is missing.
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

    limits = _limits(_declared_limits(declared), document.limits, joints, faults)
    _check_margin(limits, document.safety.position_margin, joints, faults)
    loaded = Robot(
        name=document.name,
        path=path,
        urdf=urdf,
        floating=document.base == 'floating',
        joints=joints,
        limits=limits,
        poses=_poses(document, limits, joints, faults),
        pose_move=_pose_move(document.pose_move, table),
        damping=table(document.damping, 'damping'),
        sensors=document.sensors,
        imu_mounting_xyzw=_mounting(urdf, document.sensors.imu_frame, faults),
        safety=_safety(document.safety, limits, joints, table, faults),
        monitors=document.monitors,
        simulation=None if document.simulation is None else _simulation(document.simulation, table),
    )
    if faults:
        raise DocumentError(str(path), faults)
    return milder(loaded, profile, document.profiles) if profile else loaded


def _declared_limits(declared: Sequence[UrdfJoint]) -> JointLimits:
    return JointLimits(*(np.array([getattr(j, f) for j in declared]) for f in ('lower', 'upper', 'velocity', 'effort')))


def _limits(model: JointLimits, override: LimitsSection, joints: tuple[str, ...], faults: list[str]) -> JointLimits:
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
        if np.isinf(low) or np.isinf(high):
            what = 'the barrier and the certificate need them; give limits.lower and limits.upper here'
            faults.append(f'{name}: a continuous joint has no position limits, and {what}')
        if low >= high:
            faults.append(f'{name}: lower limit {low:g} is not below upper limit {high:g}')
    return JointLimits(**fields)


def _check_margin(limits: JointLimits, margin: float, joints: tuple[str, ...], faults: list[str]) -> None:
    narrow = [name for name, extent in zip(joints, limits.upper - limits.lower, strict=True) if extent <= 2 * margin]
    if narrow:
        faults.append(f'safety.position_margin: twice the margin is more than the range of {", ".join(narrow)}')


def _poses(document: RobotFile, limits: JointLimits, joints: tuple[str, ...], faults: list[str]) -> dict[str, np.ndarray]:
    """Return the poses, each inside the joint ranges, and see that those that are needed are there."""
    poses = {name: by_name(pose, joints, faults, f'poses.{name}') for name, pose in document.poses.items()}
    for name, pose in poses.items():
        _check_inside(pose, limits, joints, f'poses.{name}', faults)
    needed = {'poses': 'stand'}
    if document.simulation is not None:
        needed['simulation.start_pose'] = document.simulation.start_pose
    for where, name in needed.items():
        if name not in poses:
            faults.append(f'{where}: the pose "{name}" is not defined; poses are {", ".join(poses) or "none"}')
    return poses


def _check_inside(pose: np.ndarray, limits: JointLimits, joints: tuple[str, ...], where: str, faults: list[str]) -> None:
    for name, value, low, high in zip(joints, pose, limits.lower, limits.upper, strict=True):
        if value < low or value > high:
            faults.append(f'{where}.{name}: {value:g} rad is outside the joint range [{low:g}, {high:g}]')


def _mounting(urdf: Path, imu_frame: str, faults: list[str]) -> np.ndarray:
    try:
        return read_mounting(urdf, imu_frame)
    except DocumentError as error:
        faults += error.faults
        return LEVEL_XYZW


def _pose_move(section: PoseMoveSection, table: Table) -> PoseSettings:
    stiffness, damping = table(section.stiffness, 'pose_move.stiffness'), table(section.damping, 'pose_move.damping')
    return PoseSettings(section.duration_s, stiffness, damping)


def _safety(section: SafetySection, limits: JointLimits, joints: tuple[str, ...], table: Table, faults: list[str]) -> Safety:
    fields = ('brake_acceleration', 'torque_rate', 'stall_torque', 'no_load_speed')
    tables = {field: table(getattr(section, field), f'safety.{field}') for field in fields}
    continuous = None
    if section.continuous_torque is not None:
        continuous = table(section.continuous_torque, 'safety.continuous_torque')
        high = [name for name, value, peak in zip(joints, continuous, limits.effort, strict=True) if value >= peak]
        if high:
            faults.append(f'safety.continuous_torque: must be below the effort limit: {", ".join(high)}')
    return Safety(
        position_margin=section.position_margin,
        power_limit_w=section.power_limit_w,
        continuous_torque=continuous,
        peak_torque_s=section.peak_torque_s,
        command_delay_s=section.command_delay_s,
        barrier=section.barrier,
        blend_s=section.blend_s,
        tilt=section.tilt,
        **tables,
    )


def _simulation(section: SimulationSection, table: Table) -> Simulation:
    fields = ('armature', 'joint_damping', 'joint_friction')
    tables = {field: table(getattr(section, field), f'simulation.{field}') for field in fields}
    return Simulation(foot_friction=section.foot_friction, feet=tuple(section.feet), start_pose=section.start_pose, **tables)
