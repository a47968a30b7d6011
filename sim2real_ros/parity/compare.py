# SPDX-License-Identifier: Apache-2.0
"""Where a contract and a trace part, why, and what the contract would have to say instead.

Causes are tried from the whole to the part: counters, the order of a history, then the order of the terms, then each term,
then the network's outputs, then the targets. A cause that holds becomes a change of the contract, the contract is run again,
and so on until nothing differs or nothing more is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.parity.explain import explain, same
from sim2real_ros.parity.finding import Case, Difference, Found, near
from sim2real_ros.parity.inputs import counter_difference, input_difference
from sim2real_ros.parity.mend import document_of, of_targets
from sim2real_ros.parity.outputs import output_differences, unfed_inputs
from sim2real_ros.parity.replay import Replay, replay
from sim2real_ros.parity.trace import Trace

__all__ = ['Difference', 'Report', 'compare']

ROUNDS = 12  # changes of a contract, at most
TARGETS = 1e-4  # of their size, tolerated


@dataclass(slots=True)
class Report:
    """What a comparison found, in the order in which it was found."""

    differences: list[Difference] = field(default_factory=list)
    notes: list[Difference] = field(default_factory=list)  # what differs and is no fault of the contract
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
    report, case = Report(), Case(contract, document_of(contract), trace)
    made = replay(contract, trace)
    for _ in range(ROUNDS):
        found = next(_first_difference(case, made), None)
        if found is None:
            break
        difference = found.difference
        if difference in report.differences:  # what was changed for it did not help
            report.differences[report.differences.index(difference)] = replace(difference, cause='')
            break
        (report.notes if found.harmless else report.differences).append(difference)
        if found.change is not None:
            report.changes += found.change.said
            report.mended = found.change.document
            case = replace(case, contract=case.contract_of(report.mended), document=report.mended)
        elif found.trace is not None:
            case = replace(case, trace=found.trace)
        else:
            report.mended = None
            break
        made = replay(case.contract, case.trace)
    report.left = _largest(made, case.trace)
    if any(not difference.cause for difference in report.differences):
        report.mended = None
    return report


def _first_difference(case: Case, made: Replay) -> Iterator[Found]:
    trace = case.trace
    for name, ours in made.counted.items():
        if name in trace.inputs and not same(ours, trace.inputs[name]):
            yield counter_difference(case, name, ours)
    for name, ours in made.inputs.items():
        theirs = trace.inputs.get(name)
        if theirs is None:
            text = f'the trace has no such input; it has {", ".join(trace.inputs)}'
            yield Found(Difference(f'input {name}', np.nan, text))
        elif ours.shape != theirs.shape:
            text = f'the contract makes {ours.shape[1]} numbers, the trainer feeds {theirs.shape[1]}'
            yield Found(Difference(f'input {name}', np.nan, text))
        elif not same(ours, theirs):
            yield input_difference(case, name, ours)
    yield from unfed_inputs(case)
    yield from output_differences(case)
    if trace.targets is not None:
        yield from _targets(case, made)


def _targets(case: Case, made: Replay) -> Iterator[Found]:
    contract, joints = case.contract, case.trace.policy_joints
    common = [joint for joint in contract.joints if joint in joints]
    index = [contract.joints.index(joint) for joint in common]
    assert case.trace.targets is not None
    ours, theirs = made.targets[:, index], case.trace.targets[:, [joints.index(joint) for joint in common]]
    if not common or near(ours, theirs, TARGETS):
        return
    difference, default = Difference('targets', float(np.abs(ours - theirs).max()), ''), contract.default_position[index]
    cause = explain(ours - default, theirs - default) or explain(ours, theirs)
    for sentence, change in of_targets(contract, case.document, cause if len(common) == len(contract.joints) else None):
        tried = case.tried(change.document)
        if tried is not None and near(tried.targets[:, index], theirs, TARGETS):
            yield Found(replace(difference, cause=sentence), change)
    sentence = '' if cause is None else f'offset and scale of the action: {cause.sentence}'
    yield Found(replace(difference, cause=sentence))


def _largest(made: Replay, trace: Trace) -> float:
    pairs = [(ours, trace.inputs[name]) for name, ours in made.inputs.items() if name in trace.inputs]
    return max((float(np.abs(ours - theirs).max()) for ours, theirs in pairs if ours.shape == theirs.shape), default=np.nan)
