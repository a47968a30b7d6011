# SPDX-License-Identifier: Apache-2.0
"""Schema of the contract, one YAML (or the ONNX metadata key `sim2real.contract`) per policy.

What differs between trainers has no default: a field that is missing is refused, not guessed.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim2real_ros.contract.actions import Action
from sim2real_ros.contract.inputs import Blocks, Counter, First, Input, Observation, Pair, Stack, State, TermUse
from sim2real_ros.document import Section

__all__ = ['Action', 'Blocks', 'ContractFile', 'Counter', 'First', 'Observation', 'Stack', 'State', 'TermUse']

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Model(Section):
    """The network file, relative to the contract, and its hash when known."""

    file: Annotated[str, Field(min_length=1)]
    sha256: Annotated[str, Field(pattern='^[0-9a-f]{64}$')] | None = None


class VelocityCommand(Section):
    """Range of the velocity command in m/s, m/s, rad/s; what exceeds it is clamped, silence beyond `timeout_s` is zero."""

    x: Pair
    y: Pair
    yaw: Pair
    timeout_s: Positive
    deadband: NotNegative = 0.0  # a command whose norm is below is taken as zero

    @model_validator(mode='after')
    def _check(self) -> VelocityCommand:
        for name in ('x', 'y', 'yaw'):
            low, high = getattr(self, name)
            if not low <= 0 <= high:
                raise ValueError(f'{name} must contain 0, the command of an operator who lets go, got [{low:g}, {high:g}]')
        return self


class PoseCommand(Section):
    """A goal pose, for the term `pose_command`: x, y, z in m and a quaternion, seen from `frame`."""

    frame: Literal['base', 'world']
    quaternion: Literal['wxyz', 'xyzw']
    initial: Annotated[list[float], Field(min_length=7, max_length=7)]  # until the first goal arrives, in the order stated


class Commands(Section):
    """What the operator can ask for."""

    velocity: VelocityCommand | None = None
    pose: PoseCommand | None = None


class Phase(Section):
    """A gait clock: for each function of `encoding`, for each of `offsets`, function(2 pi (t / period + offset))."""

    period_s: Positive
    encoding: Annotated[list[Literal['sin', 'cos']], Field(min_length=1, max_length=2)]
    offsets: Annotated[list[float], Field(min_length=1)]  # in periods
    timebase: Literal['policy_ticks']
    stop_at_zero_command: bool  # the clock rests at 0 and every value reads 0, or what `standing_phase` says
    standing_below: NotNegative = 0.0  # norm of the command that counts as zero
    standing_phase: float | None = None  # in periods, of every clock at rest
    first_tick: Literal[0, 1] = 0  # clocks advance after (0) or before (1) the observation of a tick


Axis = Literal['x', 'y', 'z', '-x', '-y', '-z']


class Anchor(Section):
    """A body that a motion tracker looks at: joints of the contract from the base to it, each with its axis.

    With all of them at 0 the body is taken to be aligned with the base, and to lie at its origin.
    """

    body: str
    chain: list[Annotated[tuple[str, Axis], Field(strict=False)]]  # from YAML and JSON a pair is a list


class Motion(Section):
    """A reference motion: outputs of the network's tick before, or an npz file with rows in time.

    `quantities` tells which output, or array of the file, is which: joint_pos, joint_vel (policy joint order), anchor_pos,
    anchor_quat. Of a tensor with one row per body, `body_quat_w[3]` is the row of the anchor.
    """

    source: Literal['network', 'file']
    file: str | None = None
    quantities: dict[Literal['joint_pos', 'joint_vel', 'anchor_pos', 'anchor_quat'], str]
    quaternion: Literal['wxyz', 'xyzw'] = 'wxyz'
    rate_hz: Positive | None = None  # of the file
    end: Literal['hold', 'loop', 'return'] = 'hold'  # return: back to the default pose
    anchor: Anchor | None = None
    align_heading: bool = True  # each heading counts from where it was at the start

    @model_validator(mode='after')
    def _check(self) -> Motion:
        if {self.file is not None, self.rate_hz is not None} != {self.source == 'file'}:
            raise ValueError('source: file needs file and rate_hz; source: network has neither')
        if self.source == 'network' and self.end != 'hold':
            raise ValueError(f'end: {self.end} is for source: file; what the network plays ends as its counter says')
        return self


def tensor_and_row(text: str) -> tuple[str, int | None]:
    """Read `body_quat_w[3]` or `joint_pos`."""
    match = re.fullmatch(r'(.+)\[(\d+)\]', text)
    return (match[1], int(match[2])) if match else (text, None)


class Assumption(Section):
    """What an importer had to assume because the source does not say it, and why it assumed just that."""

    field: str
    value: str
    source: str


class Latency(Section):
    """Delay between observation and torque that the policy was trained for, [low, high] in ms."""

    trained_ms: Pair

    @model_validator(mode='after')
    def _check(self) -> Latency:
        if not 0 <= self.trained_ms[0] <= self.trained_ms[1]:
            raise ValueError(f'trained_ms is [low, high] with 0 <= low <= high, got {self.trained_ms}')
        return self


class Provenance(Section):
    """Where the policy comes from."""

    trainer: str
    date: str | None = None
    licence: str | None = None
    source: str | None = None
    notes: str | None = None


class ContractFile(Section):
    """A contract."""

    schema_: Literal[1] = Field(alias='schema')
    name: Annotated[str, Field(min_length=1)]
    robot: Annotated[str, Field(min_length=1)]
    model: Model
    rate_hz: Annotated[float, Field(ge=1, le=1000)]
    joints: Annotated[list[str], Field(min_length=1)]
    default_position: dict[str, float]
    stiffness: dict[str, NotNegative]
    damping: dict[str, NotNegative]
    inputs: Annotated[dict[str, Input], Field(min_length=1)]
    outputs: Annotated[dict[str, Action], Field(min_length=1)]
    commands: Commands = Commands()
    contacts: list[str] = []  # feet whose contact the term foot_contacts tells, in its order
    phase: Phase | None = None
    motion: Motion | None = None
    latency: Latency | None = None
    golden: str | None = None
    novelty: str | None = None  # statistics of the observations, for the novelty monitor
    assumptions: list[Assumption] = []
    provenance: Provenance
