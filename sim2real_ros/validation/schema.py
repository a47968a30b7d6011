# SPDX-License-Identifier: Apache-2.0
"""Schema of `config/validation/<level>.yaml`: which worlds a policy is tried in, what a success is, and what is claimed.

Units: m, kg, s, rad, N, shares. Two numbers are a uniform range; `factor`s multiply the robot file's figure, everything
else is added to it. What is left out keeps the robot file's figure, without noise, delay or push.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim2real_ros.document import Section, read_yaml, validate
from sim2real_ros.errors import NotFoundError
from sim2real_ros.paths import share_directory

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
MOST_EPISODES = 1_000_000
Range = Annotated[list[float], Field(min_length=2, max_length=2)]


class RangesSection(Section):
    """What differs from robot to robot. Drawn once per episode unless it says otherwise."""

    friction: Range | None = None  # foot against ground; null: the robot file's
    payload_kg: Range = [0.0, 0.0]  # added to the base; to the last link of a robot with a fixed base
    link_mass_factor: Range = [1.0, 1.0]  # mass and inertia of each link
    centre_of_mass_m: Annotated[list[NotNegative], Field(min_length=3, max_length=3)] = [
        0.0,
        0.0,
        0.0,
    ]  # of what carries the payload, +- x y z
    motor_strength_factor: Range = [1.0, 1.0]  # on the torque of each joint
    stiffness_factor: Range = [1.0, 1.0]  # on kp of each joint
    damping_factor: Range = [1.0, 1.0]  # on kd of each joint
    joint_friction_factor: Range = [1.0, 1.0]  # each joint
    joint_damping_factor: Range = [1.0, 1.0]  # each joint, viscous
    armature_factor: Range = [1.0, 1.0]
    action_delay_s: Range = [0.0, 0.0]  # from the observation to the targets that count
    command_delay_s: Range = [0.0, 0.0]  # from the safety filter to the motor
    joint_delay_s: Range = [0.0, 0.0]  # age of the joint states when they arrive
    imu_delay_s: Range = [0.0, 0.0]
    dropped: Range = [0.0, 0.0]  # share of the sensor samples that do not come; the last one is held
    joint_offset_rad: Range = [0.0, 0.0]  # encoder calibration of each joint
    gyro_bias_rad_s: Range = [0.0, 0.0]  # each axis
    imu_mount_rad: Range = [0.0, 0.0]  # mounting error, about x and about y
    noise_joint_pos_rad: NotNegative = 0.0  # standard deviation of each sample, mean zero; the same below
    noise_joint_vel_rad_s: NotNegative = 0.0
    noise_ang_vel_rad_s: NotNegative = 0.0
    noise_tilt_rad: NotNegative = 0.0
    push_speed_m_s: Range = [0.0, 0.0]  # of each push, horizontal, in any direction
    push_turn_rad_s: Range = [0.0, 0.0]  # of each push, about the vertical
    push_interval_s: Annotated[list[Annotated[float, Field(ge=0.1)]], Field(min_length=2, max_length=2)] = [5.0, 10.0]
    force_n: Range = [0.0, 0.0]  # horizontal, on the base, for a second after the first push
    start_joint_rad: Range = [0.0, 0.0]  # each joint, off the default pose

    @model_validator(mode='after')
    def _ordered(self) -> RangesSection:
        wrong = [
            name for name in type(self).model_fields
            if isinstance(value := getattr(self, name), list) and len(value) == 2 and value[0] > value[1]
        ]  # fmt: skip
        faults = [f'{", ".join(wrong)}: the first number of a range is its smaller one'] if wrong else []
        below = [name for name in NOT_NEGATIVE if (value := getattr(self, name)) is not None and value[0] < 0]
        faults += [f'{", ".join(below)}: must not be negative'] if below else []
        above = [name for name in AT_MOST_ONE if getattr(self, name)[1] > 1]
        faults += [f'{", ".join(above)}: must not be above 1'] if above else []
        if faults:
            raise ValueError('; '.join(faults))
        return self


NOT_NEGATIVE = (
    'friction', 'link_mass_factor', 'motor_strength_factor', 'stiffness_factor', 'damping_factor', 'joint_friction_factor',
    'joint_damping_factor', 'armature_factor', 'action_delay_s', 'command_delay_s', 'joint_delay_s', 'imu_delay_s', 'dropped',
    'push_speed_m_s', 'force_n',
)  # fmt: skip

AT_MOST_ONE = ('dropped', 'action_delay_s', 'command_delay_s', 'joint_delay_s', 'imu_delay_s')  # a share, and s


class ScenarioSection(Section):
    """One kind of world, a stratum of the statistics."""

    share: Annotated[float, Field(gt=0, le=1)]  # of the episodes
    ground: Literal['flat', 'slope', 'rough', 'steps'] = 'flat'
    slope_rad: Range = [0.0, 0.0]  # of a slope, uphill in any direction
    height_m: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # of the bumps of rough ground above and below its mean, or of a step


class SuccessSection(Section):
    """What must hold in an episode. A fall and a fault of the safety filter always end it."""

    fall_tilt_rad: Annotated[float, Field(gt=0, le=3.1416)] = 1.0
    fall_height: Share = 0.5  # of the base above the ground, in shares of standing
    tracking_m_s: Positive | None = None  # error of the mean velocity over each command, or `tracking_share` of the command
    tracking_rad_s: Positive | None = None
    tracking_share: Share = 0.0
    altered_share: Share = 0.05  # of the joint torques that the safety filter may alter


class ClaimSection(Section):
    """What a pass says: success in at least this share of episodes, with this confidence; exact and one-sided."""

    success: Annotated[float, Field(gt=0, lt=1)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95


class ValidationFile(Section):
    """A level of validation."""

    schema_: Literal[1] = Field(alias='schema')
    name: Annotated[str, Field(pattern=r'^[\w-]+$')]
    episodes: Annotated[int, Field(ge=1, le=MOST_EPISODES)]
    episode_s: Annotated[float, Field(ge=1, le=600)] = 20.0
    command_s: Annotated[float, Field(ge=2)] = 5.0  # how long each velocity command stays; its first second is not judged
    rest_share: Share = 0.1  # of the commands that are zero
    scenarios: Annotated[dict[Annotated[str, Field(pattern=r'^[\w-]+$')], ScenarioSection], Field(min_length=1)]
    ranges: RangesSection = RangesSection()
    success: SuccessSection = SuccessSection()
    claim: ClaimSection
    passport: bool = True  # whether a policy for which the claim holds gets one

    @model_validator(mode='after')
    def _whole(self) -> ValidationFile:
        total = sum(scenario.share for scenario in self.scenarios.values())
        if abs(total - 1) > 1e-6:
            raise ValueError(f'scenarios: their shares sum to {total:g}; 1 is expected')
        return self


def load_validation(level: str) -> tuple[ValidationFile, str]:
    """Load a level by its shipped name or by its path.

    Returns:
        The document and the file, for messages.

    Raises:
        NotFoundError: there is no such level; the message lists the shipped ones.
        DocumentError: the file has faults.
    """
    folder = share_directory() / 'config' / 'validation'
    path = Path(level)
    if path.suffix not in ('.yaml', '.yml'):
        path = folder / f'{level}.yaml'
        if not path.is_file():
            known = ', '.join(sorted(file.stem for file in folder.glob('*.yaml')))
            raise NotFoundError(f'there is no validation level "{level}"; shipped are {known}; or give a YAML file')
    return validate(ValidationFile, read_yaml(path), str(path)), str(path)
