# SPDX-License-Identifier: Apache-2.0
"""Schema of `config/robots/<robot>.yaml`: what a URDF does not say. Units: rad, rad/s, N m, N m/rad, N m s/rad, s."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sim2real_ros.document import Section

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
PerJoint = dict[str, float]  # by joint name or regular expression


class PoseMoveSection(Section):
    """The move into the default pose, and the gains that hold it."""

    duration_s: Annotated[float, Field(ge=0.5, le=30)]
    stiffness: dict[str, NotNegative]
    damping: dict[str, Positive]


class SensorsSection(Section):
    """Where the IMU sits and how old a sample may be before the robot is stopped."""

    imu_frame: str
    joint_timeout_s: Positive
    imu_timeout_s: Positive


class TiltSection(Section):
    """Angle between the base's down axis and gravity that trips, and for how long it must last."""

    limit_rad: Annotated[float, Field(gt=0, le=3.1416)]
    duration_s: NotNegative


class LimitsSection(Section):
    """Limits that the robot model does not give or that shall be tighter than the model's."""

    lower: PerJoint | None = None
    upper: PerJoint | None = None
    velocity: dict[str, Positive] | None = None
    effort: dict[str, Positive] | None = None


class SafetySection(Section):
    """Parameters of the safety filter."""

    position_margin: NotNegative
    brake_acceleration: dict[str, Positive]
    torque_rate: dict[str, Positive]
    stall_torque: dict[str, Positive]
    no_load_speed: dict[str, Positive]
    tilt: TiltSection


class SimulationSection(Section):
    """Figures that only the embedded simulator and training use."""

    armature: dict[str, NotNegative]
    joint_damping: dict[str, NotNegative]
    joint_friction: dict[str, NotNegative]
    foot_friction: Positive
    feet: list[str]
    start_pose: str


class RobotFile(Section):
    """A robot file."""

    schema_: Literal[1] = Field(alias='schema')
    name: Annotated[str, Field(min_length=1)]
    urdf: str
    base: Literal['floating', 'fixed']
    limits: LimitsSection = LimitsSection()
    poses: dict[str, PerJoint]
    pose_move: PoseMoveSection
    damping: dict[str, Positive]
    sensors: SensorsSection
    safety: SafetySection
    simulation: SimulationSection | None = None  # without it the robot cannot be simulated
