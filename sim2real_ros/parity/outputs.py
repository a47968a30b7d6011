# SPDX-License-Identifier: Apache-2.0
"""Why the network gives other outputs than were recorded, fed with the recorded inputs: its state, or another network."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from sim2real_ros.parity.finding import Case, Change, Difference, Found, near
from sim2real_ros.parity.mend import with_value
from sim2real_ros.parity.replay import outputs_of_network
from sim2real_ros.parity.trace import Trace

STATES = 4  # beyond which not every assignment of states is tried
NOT_OURS = 'the network computes the first output and not the later ones: it has a state that is not carried here'


def unfed_inputs(case: Case) -> Iterator[Found]:
    """Yield the inputs that the trainer feeds and the contract does not know."""
    for name in [name for name in case.trace.inputs if name not in case.contract.file.inputs]:
        source = _output_before(case.trace, name)
        sentence = 'the trainer feeds it and the contract does not know it'
        if source is not None:
            sentence += f': it is the output {source} of the tick before, a recurrent state that has to be carried'
        yield Found(Difference(f'input {name}', np.nan, sentence))


def output_differences(case: Case) -> Iterator[Found]:
    """Yield the outputs that differ."""
    contract, trace = case.contract, case.trace
    if any(name not in trace.inputs for name in contract.observations):
        return
    given = outputs_of_network(contract, trace)
    for name, action in contract.file.outputs.items():
        theirs = trace.outputs.get(action.tensor or name)
        if theirs is None or action.columns is not None:
            continue
        theirs = theirs.reshape(len(theirs), -1)
        if theirs.shape == given[name].shape and not near(given[name], theirs):
            yield _why(case, name, given[name], theirs)


def _why(case: Case, name: str, ours: np.ndarray, theirs: np.ndarray) -> Found:
    difference = Difference(f'output {name}', float(np.abs(ours - theirs).max()), '')
    if case.contract.states and near(outputs_of_network(case.contract, case.trace, carry=False)[name], theirs):
        return Found(Difference(difference.where, difference.largest, 'the trainer does not carry the recurrent state'))
    for sentence, change in _crossed(case):
        if near(outputs_of_network(case.contract_of(change.document), case.trace)[name], theirs):
            return Found(Difference(difference.where, difference.largest, sentence), change)
    if near(ours[:1], theirs[:1]) and not near(ours[1:], theirs[1:]):
        return Found(Difference(difference.where, difference.largest, NOT_OURS))
    return Found(difference)


def _crossed(case: Case) -> Iterator[tuple[str, Change]]:
    names = list(case.contract.states)
    given = [case.contract.states[name].state for name in names]
    for sources in permutations(given) if len(names) <= STATES else ():
        if list(sources) == given:
            continue
        document, said = case.document, []
        for name, source in zip(names, sources, strict=True):
            document = with_value(document, ['inputs', name, 'state'], source)
            said.append(f'inputs.{name}.state: {source}')
        yield f'the recurrent states are crossed: {", ".join(said)}', Change(document, said)


def _output_before(trace: Trace, name: str) -> str | None:
    fed = trace.inputs[name]
    for output, values in trace.outputs.items():
        given = values.reshape(len(values), -1)
        if len(fed) > 2 and given.shape == fed.shape and fed.any() and np.allclose(given[:-1], fed[1:], atol=1e-6):
            return output
    return None
