# SPDX-License-Identifier: Apache-2.0
"""Schema of the contract, one YAML (or the ONNX metadata key `sim2real.contract`) per policy.

What differs between trainers has no default: a field that is missing is refused, not guessed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from sim2real_ros.document import Section

Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


def _ordered(pair: list[float] | None, name: str) -> None:
    if pair is not None and pair[0] >= pair[1]:
        raise ValueError(f'{name} is [low, high] with low < high, got {pair}')


class Model(Section):
    """The network file, relative to the contract, and its hash when known."""

    file: Annotated[str, Field(min_length=1)]
    sha256: Annotated[str, Field(pattern='^[0-9a-f]{64}$')] | None = None


class TermUse(Section):
    """One observation term. `process` is the order in which clip and scale are applied."""

    term: str
    scale: float | list[float] = 1.0
    clip: Pair | None = None
    process: list[Literal['clip', 'scale']] | None = None
    value: Literal['raw', 'clipped'] | None = None  # of last_action

    @model_validator(mode='after')
    def _check(self) -> TermUse:
        _ordered(self.clip, 'clip')
        if self.clip is not None and self.scale != 1.0 and sorted(self.process or []) != ['clip', 'scale']:
            raise ValueError('a term with both clip and scale must state their order: process: [clip, scale] or [scale, clip]')
        if self.term == 'last_action' and self.value is None:
            raise ValueError('last_action must say which action it means: value: raw or value: clipped')
        if self.term != 'last_action' and self.value is not None:
            raise ValueError('value belongs to last_action only')
        return self


class Stack(Section):
    """History of an input: lags in policy ticks, in output order (0 is now)."""

    lags: Annotated[list[Annotated[int, Field(ge=0, le=1000)]], Field(min_length=1)]
    layout: Literal['term_major', 'frame_major']
    fill: Literal['first', 'zeros']

    @model_validator(mode='after')
    def _check(self) -> Stack:
        if len(set(self.lags)) != len(self.lags):
            raise ValueError(f'lags repeat: {self.lags}')
        return self


class Observation(Section):
    """An input tensor made of observation terms."""

    stack: Stack
    terms: Annotated[list[TermUse], Field(min_length=1)]


class State(Section):
    """An input tensor that takes an output of the tick before; zeros at the start."""

    state: str
    initial: Literal['zeros']


def _kind(part: Any) -> str:
    """Tell what an input is, so that its faults are told for that kind alone."""
    return '<state>' if isinstance(part, State) or (isinstance(part, dict) and 'state' in part) else '<observation>'


Input = Annotated[Annotated[Observation, Tag('<observation>')] | Annotated[State, Tag('<state>')], Discriminator(_kind)]


class Action(Section):
    """An output tensor that drives joints: target = offset + scale * clip(action)."""

    type: Literal['joint_position', 'joint_velocity', 'joint_torque']
    scale: float | dict[str, float]
    offset: Literal['default', 'zeros']
    clip: Pair | None
    joints: list[str] | None = None

    @model_validator(mode='after')
    def _check(self) -> Action:
        _ordered(self.clip, 'clip')
        if self.type != 'joint_position' and self.offset == 'default':
            raise ValueError(f'offset: default is a position; a {self.type} action has offset: zeros')
        return self


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


class Commands(Section):
    """What the operator can ask for."""

    velocity: VelocityCommand | None = None


class Phase(Section):
    """A gait clock: for each function of `encoding`, for each of `offsets`, function(2 pi (t / period + offset))."""

    period_s: Positive
    encoding: Annotated[list[Literal['sin', 'cos']], Field(min_length=1, max_length=2)]
    offsets: Annotated[list[float], Field(min_length=1)]  # in periods
    timebase: Literal['policy_ticks']
    stop_at_zero_command: bool  # the clock rests at 0 and every value reads 0


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
    phase: Phase | None = None
    latency: Latency | None = None
    golden: str | None = None
    novelty: str | None = None  # statistics of the observations, for the novelty monitor
    provenance: Provenance
