# SPDX-License-Identifier: Apache-2.0
"""Where a contract and a trace part, why, and what the contract would have to say instead.

Causes are tried from the whole to the part: the order of a history, then the order of the terms, then each term, then the
network's outputs, then the targets. A cause that holds becomes a change of the contract, the contract is run again, and so
on until nothing differs or nothing more is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.observation.builder import stack_index
from sim2real_ros.observation.slots import resolve_slots
from sim2real_ros.parity.explain import Cause, explain, same
from sim2real_ros.parity.mend import Change, document_of, of_term, of_whole_input, value_at, with_a_name, with_value
from sim2real_ros.parity.replay import Replay, outputs_of_network, replay
from sim2real_ros.parity.trace import Trace
from sim2real_ros.rotations import world_to_base

ROUNDS = 12  # changes of a contract, at most


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs."""

    where: str  # input.term, output or target
    largest: float
    cause: str  # '' when none was found


@dataclass(slots=True)
class Report:
    """What a comparison found, in the order in which it was found."""

    differences: list[Difference] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # path = value, of the mended contract
    mended: dict[str, Any] | None = None  # the contract that agrees, None when the given one does or none was found
    left: float = 0.0  # largest difference of the inputs with the changes

    @property
    def agrees(self) -> bool:
        """Whether the contract as given agrees with the trace."""
        return not self.differences


def compare(contract: Contract, trace: Trace) -> Report:
    """Hold a contract against a trace.

    Raises:
        Sim2RealError: the policy cannot be loaded, or the trace lacks what the contract needs.
    """
    report, folder = Report(), contract.folder
    document = document_of(contract)
    current = contract
    for _ in range(ROUNDS):
        made = replay(current, trace)
        found = next(_first_difference(current, document, trace, made, folder), None)
        if found is None:
            break
        difference, change = found
        if difference in report.differences:  # what was changed for it did not help
            report.differences[report.differences.index(difference)] = replace(difference, cause='')
            break
        report.differences.append(difference)
        if change is None:
            break
        report.changes += change.said
        document = change.document
        current = _read(document, contract.source, folder)
        report.mended = document
    else:
        made = replay(current, trace)
    report.left = _largest(made, trace)
    if any(not difference.cause for difference in report.differences):
        report.mended = None
    return report


Found = tuple[Difference, Change | None]


def _first_difference(
    contract: Contract, document: dict[str, Any], trace: Trace, made: Replay, folder: Path | None
) -> Iterator[Found]:
    for name, ours in made.inputs.items():
        theirs = trace.inputs.get(name)
        if theirs is None:
            yield Difference(f'input {name}', np.nan, f'the trace has no such input; it has {", ".join(trace.inputs)}'), None
        elif ours.shape != theirs.shape:
            text = f'the contract makes {ours.shape[1]} numbers, the trainer feeds {theirs.shape[1]}'
            yield Difference(f'input {name}', np.nan, text), None
        elif not same(ours, theirs):
            yield _input(contract, document, trace, name, ours, folder)
    yield from _outputs(contract, trace)
    if trace.targets is not None:
        yield from _targets(contract, document, trace, made)


# --- inputs


def _input(
    contract: Contract, document: dict[str, Any], trace: Trace, name: str, ours: np.ndarray, folder: Path | None
) -> Found:
    theirs, largest = trace.inputs[name], float(np.abs(ours - trace.inputs[name]).max())
    part = document['inputs'][name]
    paths = [['inputs', name, 'blocks', b] for b in range(len(part['blocks']))] if 'blocks' in part else [['inputs', name]]
    for path in paths:
        for said, sentence, changed in of_whole_input(value_at(document, path)):
            trial = with_value(document, path, changed)
            try:
                made = replay(_read(trial, contract.source, folder), trace)
            except Sim2RealError:
                continue
            if _closer(made.inputs[name], ours, theirs):
                return Difference(f'input {name}', largest, sentence), Change(trial, [f'{".".join(map(str, path))}.{said}'])
    order = _term_order(contract, name, ours, theirs)
    if order is not None:
        terms = [part['terms'][i] for i in order]
        names = ', '.join(term['term'] for term in terms)
        change = Change(with_value(document, ['inputs', name, 'terms'], terms), [f'inputs.{name}.terms: {names}'])
        return Difference(f'input {name}', largest, f'the terms are in another order: {names}'), change
    return _term(contract, document, trace, name, ours, theirs)


def _term_order(contract: Contract, name: str, ours: np.ndarray, theirs: np.ndarray) -> list[int] | None:
    """Return the order of terms in which our blocks lie in the trainer's input, or None when they do not."""
    blocks = _blocks(contract, name)
    if blocks is None:
        return None
    starts, taken = [], np.zeros(theirs.shape[1], dtype=bool)
    for block in blocks:
        at = next(
            (
                start
                for start in range(theirs.shape[1] - len(block) + 1)
                if not taken[start : start + len(block)].any() and same(ours[:, block], theirs[:, start : start + len(block)])
            ),
            None,
        )
        if at is None:
            return None
        taken[at : at + len(block)] = True
        starts.append(at)
    order = np.argsort(starts).tolist()
    return order if order != list(range(len(order))) else None


def _blocks(contract: Contract, name: str) -> list[np.ndarray] | None:
    """Return the columns of each term without history, or None with one."""
    blocks = contract.observations[name]
    if len(blocks) > 1 or blocks[0].stack.lags != [0] or any(use.lags for use in blocks[0].terms):
        return None
    return [columns for columns, _ in newest(contract, name)]


def newest(contract: Contract, name: str) -> list[tuple[np.ndarray, list[Any]]]:
    """Return the columns of the newest frame of each term of an input, and the term's path in the document."""
    blocks = contract.observations[name]
    slots = resolve_slots(name, blocks, contract, [])
    lag, number = np.divmod(stack_index(slots, blocks), slots[-1].stop)
    columns = []
    for slot in slots:
        own = np.flatnonzero((number >= slot.start) & (number < slot.stop))
        own = own[lag[own] == lag[own].min()]
        within = [other for other in slots if other.block == slot.block].index(slot)
        path = [*(['blocks', slot.block] if len(blocks) > 1 else []), 'terms', within]
        columns.append((own[np.argsort(number[own])], ['inputs', name, *path]))
    return columns


def _term(contract: Contract, document: dict[str, Any], trace: Trace, name: str, ours: np.ndarray, theirs: np.ndarray) -> Found:
    for columns, path in newest(contract, name):
        if same(ours[:, columns], theirs[:, columns]):
            continue
        term = value_at(document, path)['term']
        where, largest = f'input {name}, term {term}', float(np.abs(ours - theirs)[:, columns].max())
        cause = explain(ours[:, columns], theirs[:, columns]) or _frame(trace, term, ours[:, columns], theirs[:, columns])
        if cause is None:
            return Difference(where, largest, ''), None
        known = with_a_name(contract, document, path, cause)
        if known is not None:
            return Difference(where, largest, known[0]), known[1]
        return Difference(where, largest, cause.sentence), of_term(document, path, cause)
    return Difference(f'input {name}', float(np.abs(ours - theirs).max()), ''), None


def _frame(trace: Trace, term: str, ours: np.ndarray, theirs: np.ndarray) -> Cause | None:
    """Return whether a vector of the base was fed in the world's frame."""
    if ours.shape[1] != 3 or not term.startswith('base_'):
        return None
    quats = np.array([state.base_quat_xyzw for state in trace.states]) * (-1, -1, -1, 1)
    turned = world_to_base(quats, ours)
    for factor in (1.0, float((turned * theirs).sum() / max((turned * turned).sum(), 1e-12))):
        if same(factor * turned, theirs):
            return Cause('frame', "the trainer feeds it in the world's frame, the contract says the base's")
    return None


# --- outputs and targets


def _outputs(contract: Contract, trace: Trace) -> Iterator[Found]:
    if any(name not in trace.inputs for name in contract.observations):
        return
    given = outputs_of_network(contract, trace)
    for name, action in contract.file.outputs.items():
        theirs = trace.outputs.get(action.tensor or name)
        if theirs is None or action.columns is not None:
            continue
        theirs = theirs.reshape(len(theirs), -1)
        if theirs.shape != given[name].shape or _near(given[name], theirs):
            continue
        cause = ''
        if contract.states and _near(outputs_of_network(contract, trace, carry=False)[name], theirs):
            cause = 'the trainer does not carry the recurrent state'
        yield Difference(f'output {name}', float(np.abs(given[name] - theirs).max()), cause), None


def _targets(contract: Contract, document: dict[str, Any], trace: Trace, made: Replay) -> Iterator[Found]:
    assert trace.targets is not None
    common = [joint for joint in contract.joints if joint in trace.policy_joints]
    ours = made.targets[:, [contract.joints.index(joint) for joint in common]]
    theirs = trace.targets[:, [trace.policy_joints.index(joint) for joint in common]]
    if not common or _near(ours, theirs, 1e-4):
        return
    default = contract.default_position[[contract.joints.index(joint) for joint in common]]
    cause = explain(ours - default, theirs - default) or explain(ours, theirs)
    sentence = '' if cause is None else f'offset and scale of the action: {cause.sentence}'
    yield Difference('targets', float(np.abs(ours - theirs).max()), sentence), None


def _near(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-3) -> bool:
    return bool(np.abs(ours - theirs).max(initial=0.0) <= tolerance * max(1.0, float(np.abs(theirs).max(initial=0.0))))


# --- documents


def _closer(made: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether a change brings every number nearer that it touches, and some all the way."""
    if made.shape != theirs.shape:
        return False
    before, after = np.abs(ours - theirs).max(axis=0), np.abs(made - theirs).max(axis=0)
    solved = (after <= 1e-4 * (1 + np.abs(theirs).max(axis=0))) & (before > after)
    return bool(solved.any() and (after <= before + 1e-9).all())


def _read(document: dict[str, Any], source: str, folder: Path | None) -> Contract:
    return resolve(validate(ContractFile, document, source), source, folder)


def _largest(made: Replay, trace: Trace) -> float:
    pairs = [(ours, trace.inputs[name]) for name, ours in made.inputs.items() if name in trace.inputs]
    return max((float(np.abs(ours - theirs).max()) for ours, theirs in pairs if ours.shape == theirs.shape), default=np.nan)
