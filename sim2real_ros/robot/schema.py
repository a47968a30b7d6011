# SPDX-License-Identifier: Apache-2.0
"""Schema of `config/robots/<robot>.yaml`: what a URDF does not say. Units: rad, rad/s, N m, N m/rad, N m s/rad, s."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sim2real_ros.document import Section

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]
PerJoint = dict[str, float]  # by joint name or regular expression


class PoseMoveSection(Section):
    """The move into the default pose, and the gains that hold it."""

    duration_s: Annotated[float, Field(ge=0.5, le=30)]
    stiffness: dict[str, NotNegative]
    damping: dict[str, Positive]


class SensorsSection(Section):
    """Where the IMU sits and how old a sample may be before the robot is stopped."""

    imu_frame: str
    rate_hz: Annotated[float, Field(ge=50, le=2000)] = 500.0  # nominal rate of the joint states
    joint_timeout_s: Positive
    imu_timeout_s: Positive
    odom: bool = True  # whether something publishes odom
    contacts: bool = False  # whether something publishes foot_contacts


class TiltSection(Section):
    """Angle between the base's down axis and gravity that trips, and for how long it must last."""

    warn_rad: Annotated[float, Field(gt=0, le=3.1416)] = 0.6
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
    power_limit_w: Positive | None = None  # sum over the joints that drive
    continuous_torque: dict[str, Positive] | None = None  # N m; with peak_torque_s: how long the effort limit may last
    peak_torque_s: Positive = 5.0
    # From the stamp of a state to the torque that answers it, s. Too large costs speed near limits, too small the limits.
    command_delay_s: Annotated[float, Field(ge=0, le=0.05)] = 0.004
    barrier: Literal['auto', 'coupled', 'per_joint'] = 'auto'  # auto: coupled for a fixed base, where MuJoCo is installed
    blend_s: Annotated[float, Field(gt=0, le=10)] = 0.3  # from holding the pose to following a policy, and from one to the next
    tilt: TiltSection


class MonitorsSection(Section):
    """Thresholds of the monitors; docs/safety.md tells what each does and how fast."""

    position_tolerance_rad: NotNegative = 0.075  # outside the hard limit
    velocity_factor: Annotated[float, Field(ge=1)] = 1.2  # times the limit
    persistence: Annotated[int, Field(ge=1, le=50)] = 3  # samples that position, velocity and encoder jumps must last
    encoder_jump_factor: Positive = 1.5  # times v_max dt, and 0.01 rad
    velocity_mismatch: Positive = 0.2  # |v - dq/dt|, times the velocity limit
    velocity_mismatch_s: Positive = 0.1
    frozen_samples: Annotated[int, Field(ge=5)] | None = 25  # identical samples with new stamps; null: sensors without noise
    frozen_joints: bool = True  # false: only the IMU must never repeat itself, joint states of simulators without noise do
    angular_rate: Positive = 8.0  # rad/s of the base
    angular_rate_s: NotNegative = 0.1
    rate_warn: Share = 0.1  # deviation of the mean rate of joint states over 1 s
    rate_trip: Share = 0.25
    dropped_warn: Share = 0.05  # of the joint states in 1 s; Python without a real-time kernel loses some
    dropped_trip: Share = 0.2
    clock_warn_s: Positive = 0.05  # stamps against the machine's steady clock
    clock_trip_s: Positive = 0.2
    activity_warn: Share = 0.2  # of the joint torques altered, for 0.5 s
    activity_trip: Share = 0.5  # for 1 s
    pose_lag_rad: Positive = 0.5  # of a joint behind the move into the pose, for 0.25 s; a load on soft gains sags as well
    target_jerk: Positive = 2.0  # change of the change of the PD torque between policy ticks, times the effort limit
    operator_timeout_s: Positive | None = None  # age of the operator's heartbeat; null: none is expected


class ProfileSection(Section):
    """A milder robot, for the parameter `profile`: what is given here replaces or lowers what the file says elsewhere."""

    effort: Share = 1.0  # of each effort limit and continuous torque
    command: Share = 1.0  # of the range of each policy's velocity command
    pose_duration_s: Annotated[float, Field(ge=0.5, le=30)] | None = None
    blend_s: Annotated[float, Field(gt=0, le=10)] | None = None


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
    monitors: MonitorsSection = MonitorsSection()
    profiles: dict[str, ProfileSection] = {}
    simulation: SimulationSection | None = None  # without it the robot cannot be simulated
