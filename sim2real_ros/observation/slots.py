# SPDX-License-Identifier: Apache-2.0
"""`Slot`: one term of an input, with its place in the frame and all that is done to its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Observation, TermUse
from sim2real_ros.errors import NotFoundError
from sim2real_ros.observation.moment import Moment
from sim2real_ros.observation.terms import JOINTS, LAST_ACTIONS, Term, find_term


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a term lies in one frame of its input: [start, stop). The blocks of an input lie side by side in its frame."""

    name: str
    term: Term
    start: int
    stop: int
    scale: np.ndarray  # (width,)
    offset: np.ndarray  # (width,)
    clip: tuple[float, float] | None
    process: tuple[str, ...]  # order of clip, scale, offset
    joints: tuple[str, ...]  # (width,) of a term of joints, else empty
    block: int  # number of the block that it lies in
    lags: tuple[int, ...]  # of this term

    @property
    def width(self) -> int:
        """How many numbers it has in a frame."""
        return self.stop - self.start


def resolve_slots(name: str, part: Observation | Sequence[Observation], contract: Contract, faults: list[str]) -> list[Slot]:
    """Return the terms of input `name`, an observation or several side by side, with their index ranges.

    Terms that do not exist, joints that they do not have and lists of a wrong length become faults.
    """
    slots: list[Slot] = []
    blocks = [part] if isinstance(part, Observation) else part
    for b, block in enumerate(blocks):
        where = f'inputs.{name}.blocks.{b}' if len(blocks) > 1 else f'inputs.{name}'
        for i, use in enumerate(block.terms):
            start = slots[-1].stop if slots else 0
            slot = _resolve(use, f'{where}.terms.{i}', start, contract, faults)
            if slot is not None:
                slots.append(replace(slot, block=b, lags=tuple(use.lags or block.stack.lags)))
    return slots


def _resolve(use: TermUse, where: str, start: int, contract: Contract, faults: list[str]) -> Slot | None:
    try:
        term = find_term(use.term)
    except NotFoundError as error:
        faults.append(f'{where}.term: {error}')
        return None
    if use.value is not None:
        term = replace(term, compute=LAST_ACTIONS[use.value])
    width, joints = term.width(contract), contract.joints if term.frame == JOINTS else ()
    if use.joints is not None:
        if not _joints_fit(use, term, where, contract, faults):
            return None
        width, joints = len(use.joints), tuple(use.joints)
        term = replace(term, compute=picked(term.compute, [contract.joints.index(joint) for joint in joints]))
    scale, offset = (np.atleast_1d(np.asarray(value, dtype=float)) for value in (use.scale, use.offset))
    wrong = [(field, values.size) for field, values in (('scale', scale), ('offset', offset)) if values.size not in (1, width)]
    if wrong:
        faults += [f'{where}.{field}: {use.term} has {width} numbers, the {field} has {size}' for field, size in wrong]
        return None
    scale, offset = np.broadcast_to(scale, (width,)), np.broadcast_to(offset, (width,))
    clip = (use.clip[0], use.clip[1]) if use.clip is not None else None
    return Slot(use.term, term, start, start + width, scale, offset, clip, _order(use), joints, 0, ())


def _order(use: TermUse) -> tuple[str, ...]:
    """Return the order of clip, scale and offset, all three; those that do nothing may stand anywhere."""
    stated = tuple(use.process or ())
    return stated + tuple(step for step in ('clip', 'scale', 'offset') if step not in stated)


def _joints_fit(use: TermUse, term: Term, where: str, contract: Contract, faults: list[str]) -> bool:
    assert use.joints is not None
    if term.frame != JOINTS:
        faults.append(f'{where}.joints: {use.term} is not a term of joints')
        return False
    unknown = [joint for joint in use.joints if joint not in contract.joints]
    twice = [joint for joint in dict.fromkeys(use.joints) if use.joints.count(joint) > 1]
    if unknown:
        faults.append(f"{where}.joints: {', '.join(unknown)} not among the contract's joints {', '.join(contract.joints)}")
    if twice:
        faults.append(f'{where}.joints: {", ".join(twice)} occurs more than once')
    if not use.joints:
        faults.append(f'{where}.joints: is empty; leave it out for all joints')
    return bool(use.joints) and not unknown and not twice


def picked(compute: Callable[[Moment], np.ndarray], index: list[int]) -> Callable[[Moment], np.ndarray]:
    """Return a term that gives some numbers of another one."""
    place = np.array(index)
    return lambda moment: compute(moment)[..., place]
