# SPDX-License-Identifier: Apache-2.0
"""Schema of the network's outputs that drive joints."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sim2real_ros.contract.inputs import Pair, ordered
from sim2real_ros.document import Section


class LowPass(Section):
    """First-order filter at the policy's rate: y <- y + share (x - y)."""

    share: Annotated[float, Field(gt=0, le=1)]


class Action(Section):
    """Numbers of an output tensor that drive joints: target = base + scale * filter(clip(action)), then `target_clip`.

    The base is `offset`, or with `relative_to` the last target, the measured position or the reference motion, plus `offset`.
    """

    type: Literal['joint_position', 'joint_velocity', 'joint_torque']
    scale: float | dict[str, float]
    offset: Literal['default', 'zeros'] | dict[str, float]
    clip: Pair | None
    joints: list[str] | None = None  # those that it drives, in order; all when left out
    tensor: str | None = None  # output tensor, where it is not the name of the entry
    index: Annotated[int, Field(ge=0)] | None = None  # number of the output, where names repeat
    columns: list[Annotated[int, Field(ge=0)]] | None = None  # of the tensor, where it holds more than this action
    relative_to: Literal['last_target', 'measured', 'motion'] | None = None
    filter: LowPass | None = None
    target_clip: dict[str, Pair] | None = None  # by joint, rad, rad/s or N m

    @model_validator(mode='after')
    def _check(self) -> Action:
        ordered(self.clip, 'clip')
        for joint, pair in (self.target_clip or {}).items():
            ordered(pair, f'target_clip.{joint}')
        if self.type != 'joint_position' and self.offset == 'default':
            raise ValueError(f'offset: default is a position, a {self.type} action has offset: zeros')
        if self.type != 'joint_position' and self.relative_to is not None:
            raise ValueError(f'relative_to: {self.relative_to} is a position, a {self.type} action has none')
        if self.relative_to is not None and self.offset == 'default':
            raise ValueError(f'relative_to: {self.relative_to} has a base of its own; offset: zeros')
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ValueError(f'columns repeat: {self.columns}')
        return self
