# SPDX-License-Identifier: Apache-2.0
"""Where a contract and a trace part, why, and what the contract would have to say instead.

Causes are tried from the whole to the part: the order of a history, then the order of the terms, then each term, then the
network's outputs, then the targets. A cause that holds becomes a change of the contract, the contract is run again, and so
on until nothing differs or nothing more is found.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile, Observation
from sim2real_ros.document import validate
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.parity.explain import Cause, explain, same
from sim2real_ros.parity.replay import Replay, outputs_of_network, replay
from sim2real_ros.parity.trace import Trace
from sim2real_ros.rotations import world_to_base

ROUNDS = 12  # changes of a contract, at most
QUATERNIONS = {'base_quat_wxyz': 'base_quat_xyzw', 'base_quat_xyzw': 'base_quat_wxyz'}
POSITIONS = {'joint_pos': 'joint_pos_rel', 'joint_pos_rel': 'joint_pos'}
JOINT_TERMS = ('joint_pos', 'joint_pos_rel', 'joint_vel', 'last_action')


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
    document = contract.file.model_dump(mode='json', by_alias=True, exclude_none=True)
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


@dataclass(frozen=True, slots=True)
class Change:
    """A contract that says something else."""

    document: dict[str, Any]
    said: list[str]


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
    if 'terms' not in part:
        return Difference(f'input {name}', largest, ''), None
    for said, sentence, changed in _whole(part):
        trial = _with(document, ['inputs', name], changed)
        try:
            made = replay(_read(trial, contract.source, folder), trace)
        except Sim2RealError:
            continue
        if _closer(made.inputs[name], ours, theirs):
            return Difference(f'input {name}', largest, sentence), Change(trial, [f'inputs.{name}.{said}'])
    order = _term_order(contract, name, ours, theirs)
    if order is not None:
        terms = [part['terms'][i] for i in order]
        names = ', '.join(term['term'] for term in terms)
        change = Change(_with(document, ['inputs', name, 'terms'], terms), [f'inputs.{name}.terms: {names}'])
        return Difference(f'input {name}', largest, f'the terms are in another order: {names}'), change
    return _term(contract, document, trace, name, ours, theirs)


def _whole(part: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield changes of a whole input: history and the order of clip and scale."""
    stack = part['stack']
    if len(stack['lags']) > 1:
        other = {'term_major': 'frame_major', 'frame_major': 'term_major'}[stack['layout']]
        turned = {**stack, 'lags': stack['lags'][::-1]}
        refilled = {**stack, 'fill': {'first': 'zeros', 'zeros': 'first'}[stack['fill']]}
        first = 'newest' if turned['lags'][0] < turned['lags'][-1] else 'oldest'
        yield f'stack.lags: {turned["lags"]}', f'the history is the other way round: {first} first', {**part, 'stack': turned}
        yield f'stack.layout: {other}', f'the history is laid out {other}', {**part, 'stack': {**stack, 'layout': other}}
        both = {**turned, 'layout': other}
        yield f'stack: {both}', f'the history is laid out {other}, {first} first', {**part, 'stack': both}
        yield f'stack.fill: {refilled["fill"]}', f'the history begins with {refilled["fill"]}', {**part, 'stack': refilled}
    for i, use in enumerate(part['terms']):
        if len(use.get('process') or []) > 1:
            process = use['process'][::-1]
            terms = [*part['terms'][:i], {**use, 'process': process}, *part['terms'][i + 1 :]]
            sentence = f'{use["term"]}: the order is {" then ".join(process)}'
            yield f'terms.{i}.process: {process}', sentence, {**part, 'terms': terms}


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
    part = contract.file.inputs[name]
    if not isinstance(part, Observation) or part.stack.lags != [0] or any(use.lags for use in part.terms):
        return None
    return [columns for columns, _ in newest(contract, name)]


def newest(contract: Contract, name: str) -> list[tuple[np.ndarray, int]]:
    """Return the columns of the newest frame of each term of an input, and the term's number."""
    from sim2real_ros.observation.builder import resolve_slots  # noqa: PLC0415

    part = contract.file.inputs[name]
    assert isinstance(part, Observation)
    slots = resolve_slots(name, part, contract, [])
    widths = [slot.stop - slot.start for slot in slots]
    columns: list[tuple[np.ndarray, int]] = []
    if part.stack.layout == 'frame_major':
        begin = int(np.argmin(part.stack.lags)) * sum(widths)
        for i, width in enumerate(widths):
            columns.append((begin + np.arange(width), i))
            begin += width
        return columns
    begin = 0
    for i, width in enumerate(widths):
        lags = part.terms[i].lags or part.stack.lags
        columns.append((begin + int(np.argmin(lags)) * width + np.arange(width), i))
        begin += width * len(lags)
    return columns


def _term(contract: Contract, document: dict[str, Any], trace: Trace, name: str, ours: np.ndarray, theirs: np.ndarray) -> Found:
    for columns, i in newest(contract, name):
        if same(ours[:, columns], theirs[:, columns]):
            continue
        use = document['inputs'][name]['terms'][i]
        where, largest = f'input {name}, term {use["term"]}', float(np.abs(ours - theirs)[:, columns].max())
        cause = explain(ours[:, columns], theirs[:, columns]) or _frame(
            trace, use['term'], ours[:, columns], theirs[:, columns]
        )
        if cause is None:
            return Difference(where, largest, ''), None
        known = _mend_known(contract, document, name, i, cause)
        if known is not None:
            return Difference(where, largest, known[0]), known[1]
        return Difference(where, largest, cause.sentence), _mend_term(document, name, i, cause)
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


def _mend_known(
    contract: Contract, document: dict[str, Any], name: str, i: int, cause: Cause
) -> tuple[str, Change | None] | None:
    """Return sentence and change for causes that have a name of their own."""
    path, use = ['inputs', name, 'terms', i], document['inputs'][name]['terms'][i]
    term = use['term']
    if cause.kind == 'order' and term in JOINT_TERMS and not use.get('joints') and len(cause.value) == len(contract.joints):
        joints = [contract.joints[j] for j in cause.value]
        sentence = f'the joints are in another order: {", ".join(joints)}'
        return sentence, Change(_with(document, ['joints'], joints), [f'joints: {", ".join(joints)}'])
    if cause.kind == 'order' and term == 'pose_command' and cause.value[:3] == [0, 1, 2]:
        other = {'wxyz': 'xyzw', 'xyzw': 'wxyz'}[document['commands']['pose']['quaternion']]
        change = Change(_with(document, ['commands', 'pose', 'quaternion'], other), [f'commands.pose.quaternion: {other}'])
        return f'the quaternion of the goal is {other}', change
    if cause.kind == 'order' and term in QUATERNIONS:
        other = QUATERNIONS[term]
        return f'the quaternion is {other[-4:]}', Change(
            _with(document, [*path, 'term'], other), [f'{".".join(map(str, path))}: {other}']
        )
    if cause.kind == 'offset' and term in POSITIONS and use.get('scale', 1.0) == 1.0:
        sign = -1 if term == 'joint_pos' else 1
        if same(np.atleast_2d(cause.value), np.atleast_2d(sign * contract.default_position)):
            other = POSITIONS[term]
            how = 'less the default pose' if other == 'joint_pos_rel' else 'as they are, not less the default pose'
            change = Change(_with(document, [*path, 'term'], other), [f'{".".join(map(str, path))}.term: {other}'])
            return f'the trainer feeds joint positions {how}', change
    return None


def _mend_term(document: dict[str, Any], name: str, i: int, cause: Cause) -> Change | None:
    use = dict(document['inputs'][name]['terms'][i])
    path = f'inputs.{name}.terms.{i}'
    said = []
    if cause.kind in ('scale', 'zeros'):
        use['scale'] = (np.asarray(use.get('scale', 1.0)) * np.asarray(cause.value)).tolist()
        said = [f'{path}.scale: {use["scale"]}']
    elif cause.kind == 'offset':
        use['offset'] = cause.value
        use['process'] = [*(use.get('process') or [step for step in ('scale',) if use.get('scale', 1.0) != 1.0]), 'offset']
        said = [f'{path}.offset: {use["offset"]}']
    elif cause.kind == 'normaliser':
        scale, offset = cause.value
        use['scale'] = (np.asarray(use.get('scale', 1.0)) * np.asarray(scale)).tolist()
        use['offset'], use['process'] = offset, ['scale', 'offset']
        said = [f'{path}.scale: {use["scale"]}', f'{path}.offset: {offset}']
    elif cause.kind == 'clip':
        use['clip'] = [-cause.value, cause.value]
        use['process'] = ['scale', 'clip'] if use.get('scale', 1.0) != 1.0 else None
        said = [f'{path}.clip: {use["clip"]}']
    elif cause.kind == 'delay':
        use['lags'] = [lag + cause.value for lag in use.get('lags') or document['inputs'][name]['stack']['lags']]
        said = [f'{path}.lags: {use["lags"]}']
    else:
        return None
    return Change(_with(document, ['inputs', name, 'terms', i], use), said)


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


def _with(document: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def _read(document: dict[str, Any], source: str, folder: Path | None) -> Contract:
    return resolve(validate(ContractFile, document, source), source, folder)


def _largest(made: Replay, trace: Trace) -> float:
    pairs = [(ours, trace.inputs[name]) for name, ours in made.inputs.items() if name in trace.inputs]
    return max((float(np.abs(ours - theirs).max()) for ours, theirs in pairs if ours.shape == theirs.shape), default=np.nan)
