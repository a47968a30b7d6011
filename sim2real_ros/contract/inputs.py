# SPDX-License-Identifier: Apache-2.0
"""Schema of the network's inputs: observation terms and their histories, carried state, counters and flags."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from sim2real_ros.document import Section

Pair = Annotated[list[float], Field(min_length=2, max_length=2)]
Lags = Annotated[list[Annotated[int, Field(ge=0, le=1000)]], Field(min_length=1)]
STEPS = ('clip', 'scale', 'offset')


def ordered(pair: list[float] | None, name: str) -> None:
    """Raise ValueError unless a pair is [low, high] with low < high."""
    if pair is not None and pair[0] >= pair[1]:
        raise ValueError(f'{name} is [low, high] with low < high, got {pair}')


class TermUse(Section):
    """One observation term, and what is done to its numbers in the order of `process`."""

    term: str
    scale: float | list[float] = 1.0
    clip: Pair | None = None
    offset: float | list[float] = 0.0
    process: list[Literal['clip', 'scale', 'offset']] | None = None
    value: Literal['raw', 'clipped', 'filtered'] | None = None  # of last_action
    joints: list[str] | None = None  # of a joint term: these alone, in this order
    lags: Lags | None = None  # a history of its own length; term_major stacks only

    @model_validator(mode='after')
    def _check(self) -> TermUse:
        ordered(self.clip, 'clip')
        done = [step for step in STEPS if getattr(self, step) not in {'clip': (None,), 'scale': (1.0,), 'offset': (0.0,)}[step]]
        if len(done) > 1 and sorted(self.process or []) != sorted(done):
            raise ValueError(_order_missing(done))
        if self.term == 'last_action' and self.value is None:
            raise ValueError('last_action must say which action it means: value: raw, clipped or filtered')
        if self.term != 'last_action' and self.value is not None:
            raise ValueError('value belongs to last_action only')
        if self.lags is not None and len(set(self.lags)) != len(self.lags):
            raise ValueError(f'lags repeat: {self.lags}')
        return self


def _order_missing(done: list[str]) -> str:
    listed = f'[{", ".join(done)}]'
    if len(done) == 2:
        return f'a term with both {" and ".join(done)} must state their order: process: {listed} or [{", ".join(done[::-1])}]'
    return f'a term with clip, scale and offset must state their order: process: {listed}, or another order of the three'


class Stack(Section):
    """History of an input: lags in policy ticks, in output order (0 is now)."""

    lags: Lags
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

    @model_validator(mode='after')
    def _check(self) -> Observation:
        own = [use.term for use in self.terms if use.lags is not None]
        if own and self.stack.layout != 'term_major':
            raise ValueError(f'{", ".join(own)} has lags of its own, so the layout must be term_major')
        return self


class Blocks(Section):
    """An input tensor made of several observations side by side, each with a history of its own."""

    blocks: Annotated[list[Observation], Field(min_length=2)]


def _initial_kind(value: Any) -> str:
    return '<list>' if isinstance(value, list) else '<word>'


Initial = Annotated[
    Annotated[Literal['zeros'], Tag('<word>')] | Annotated[list[float], Tag('<list>')], Discriminator(_initial_kind)
]


class State(Section):
    """An input tensor that takes an output of the tick before."""

    state: str
    initial: Initial


class Counter(Section):
    """An input tensor that takes the number of the policy tick, from `start` on, as motion trackers need it."""

    counter: Literal['ticks']
    start: Annotated[int, Field(ge=0)] = 0
    last: Annotated[int, Field(ge=1)] | None = None  # of the motion
    end: Literal['hold', 'loop'] | None = None  # what comes after it

    @model_validator(mode='after')
    def _check(self) -> Counter:
        if (self.last is None) != (self.end is None):
            raise ValueError('last and end belong together: last: 500 with end: hold or end: loop')
        if self.last is not None and self.last <= self.start:
            raise ValueError(f'last is the last number of the motion, above start, got {self.last} after start: {self.start}')
        return self


class First(Section):
    """An input tensor that is true in the first tick and false later, as some recurrent networks need it."""

    first: Literal[True]


KINDS = {'blocks': '<blocks>', 'state': '<state>', 'counter': '<counter>', 'first': '<first>'}
CLASSES: dict[type[Section], str] = {Blocks: '<blocks>', State: '<state>', Counter: '<counter>', First: '<first>'}


def _kind(part: Any) -> str:
    """Tell what an input is, so that its faults are told for that kind alone."""
    if isinstance(part, dict):
        return next((tag for key, tag in KINDS.items() if key in part), '<observation>')
    return next((tag for kind, tag in CLASSES.items() if isinstance(part, kind)), '<observation>')


Input = Annotated[
    Annotated[Observation, Tag('<observation>')]
    | Annotated[Blocks, Tag('<blocks>')]
    | Annotated[State, Tag('<state>')]
    | Annotated[Counter, Tag('<counter>')]
    | Annotated[First, Tag('<first>')],
    Discriminator(_kind),
]
