# SPDX-License-Identifier: Apache-2.0
"""Why an input differs: its history, the order of its terms, a statement of the contract about all of it, or one term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.observation.builder import stack_index
from sim2real_ros.observation.slots import resolve_slots
from sim2real_ros.parity.explain import explain, same
from sim2real_ros.parity.finding import Case, Change, Difference, Found, gained
from sim2real_ros.parity.mend import of_contract, of_period, of_term, of_whole_input, value_at, with_a_name, with_value
from sim2real_ros.parity.states import in_the_world_frame, misread_orientation, read_earlier

Trial = tuple[str, str, dict[str, Any]]  # what a document says, in a line and in a sentence, and the document


@dataclass(frozen=True, slots=True)
class Place:
    """Where a term lies in an input."""

    path: list[Any]  # in the document
    newest: np.ndarray  # columns of its newest frame
    all: np.ndarray  # columns of every frame, as they lie


def input_difference(case: Case, name: str, ours: np.ndarray) -> Found:
    """Return why an input differs, ours being (k, width)."""
    theirs = case.trace.inputs[name]
    largest = float(np.abs(ours - theirs).max())
    best, most = None, 0
    for line, sentence, document in _trials(case, name, theirs):
        made = case.tried(document)
        gain = 0 if made is None or name not in made.inputs else gained(made.inputs[name], ours, theirs)
        if gain > most:
            best, most = Found(Difference(f'input {name}', largest, sentence), Change(document, [line])), gain
        if made is not None and gain and same(made.inputs[name], theirs):
            break
    return best or _term(case, name, ours, theirs)


def counter_difference(case: Case, name: str, ours: np.ndarray) -> Found:
    """Return why a counter differs, ours being (k, 1)."""
    apart = case.trace.inputs[name] - ours
    difference = Difference(f'input {name}', float(np.abs(apart).max()), '')
    first = int(apart.flat[0])
    if not (apart == first).all():
        return Found(difference)
    path = ['inputs', name, 'start']
    start = case.document['inputs'][name].get('start', 0) + first
    change = Change(with_value(case.document, path, start), [f'{".".join(path)}: {start}'])
    return Found(Difference(difference.where, difference.largest, f'the trainer counts from {start}'), change)


def _trials(case: Case, name: str, theirs: np.ndarray) -> Iterator[Trial]:
    part = case.document['inputs'][name]
    paths = [['inputs', name, 'blocks', b] for b in range(len(part['blocks']))] if 'blocks' in part else [['inputs', name]]
    for path in paths:
        for said, sentence, changed in of_whole_input(value_at(case.document, path)):
            yield f'{".".join(map(str, path))}.{said}', sentence, with_value(case.document, path, changed)
    yield from _term_order(case, name, theirs)
    yield from of_contract(case.document, name)
    for place in places(case.contract, name):
        if value_at(case.document, place.path)['term'].startswith('phase'):
            yield from of_period(case.document, theirs[:, place.newest], case.contract.period_s)


def _term_order(case: Case, name: str, theirs: np.ndarray) -> Iterator[Trial]:
    """Yield the order of terms in which our blocks lie in the trainer's input."""
    blocks = case.contract.observations[name]
    if len(blocks) > 1:
        return
    made = case.tried(case.document)
    assert made is not None
    ours, stack = made.inputs[name], blocks[0].stack
    if stack.layout == 'frame_major' and not any(use.lags for use in blocks[0].terms):  # the first frame tells it
        width = ours.shape[1] // len(stack.lags)
        ours, theirs = ours[:, :width], theirs[:, :width]
    columns = [place.all[place.all < ours.shape[1]] for place in places(case.contract, name)]
    order = _order_of_blocks(columns, ours, theirs)
    if order is not None:
        terms = [case.document['inputs'][name]['terms'][i] for i in order]
        names = ', '.join(use['term'] for use in terms)
        document = with_value(case.document, ['inputs', name, 'terms'], terms)
        yield f'inputs.{name}.terms: {names}', f'the terms are in another order: {names}', document


def _order_of_blocks(blocks: list[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> list[int] | None:
    starts, taken = [], np.zeros(theirs.shape[1], dtype=bool)
    for block in blocks:
        places_left = (at for at in range(theirs.shape[1] - len(block) + 1) if not taken[at : at + len(block)].any())
        at = next((at for at in places_left if same(ours[:, block], theirs[:, at : at + len(block)])), None)
        if at is None:
            return None
        taken[at : at + len(block)] = True
        starts.append(at)
    order = np.argsort(starts).tolist()
    return order if order != list(range(len(order))) else None


def places(contract: Contract, name: str) -> list[Place]:
    """Return where each term of an input lies."""
    blocks = contract.observations[name]
    slots = resolve_slots(name, blocks, contract, [])
    lag, number = np.divmod(stack_index(slots, blocks), slots[-1].stop)
    found = []
    for slot in slots:
        own = np.flatnonzero((number >= slot.start) & (number < slot.stop))
        newest = own[lag[own] == lag[own].min()]
        within = [other for other in slots if other.block == slot.block].index(slot)
        path = [*(['blocks', slot.block] if len(blocks) > 1 else []), 'terms', within]
        found.append(Place(['inputs', name, *path], newest[np.argsort(number[newest])], own))
    return found


def _term(case: Case, name: str, ours: np.ndarray, theirs: np.ndarray) -> Found:
    for place in places(case.contract, name):
        columns = place.newest
        if same(ours[:, columns], theirs[:, columns]):
            continue
        term = value_at(case.document, place.path)['term']
        difference = Difference(f'input {name}, term {term}', float(np.abs(ours - theirs)[:, columns].max()), '')
        cause = explain(ours[:, columns], theirs[:, columns])
        if cause is None and len(columns) == 3 and term.startswith('base_'):
            cause = in_the_world_frame(case.trace, ours[:, columns], theirs[:, columns])
        if cause is None:
            return misread_orientation(case, name, columns, difference) or read_earlier(
                case, name, columns, place.all, difference
            )
        known = with_a_name(case.contract, case.document, place.path, cause)
        sentence, change = known or (cause.sentence, of_term(case.document, place.path, cause))
        return Found(Difference(difference.where, difference.largest, sentence), change)
    return Found(Difference(f'input {name}', float(np.abs(ours - theirs).max()), ''))
