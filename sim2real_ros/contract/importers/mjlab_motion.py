# SPDX-License-Identifier: Apache-2.0
"""Motion trackers of whole_body_tracking and mjlab: the network takes a time step and gives the reference motion."""

from __future__ import annotations

from collections.abc import Sequence

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.metadata import Csv
from sim2real_ros.contract.importers.network import Tensors
from sim2real_ros.contract.importers.trackers import chain_by_name, last_tick
from sim2real_ros.errors import DocumentError, FormatError

COUNTER = 'time_step'
REFERENCE = ('joint_pos', 'joint_vel')
BODIES = {'anchor_pos': 'body_pos_w', 'anchor_quat': 'body_quat_w'}


def is_tracker(graph: Tensors) -> bool:
    """Return whether a network has the inputs and outputs of a tracker."""
    return COUNTER in {t.name for t in graph.inputs} and set(REFERENCE) <= {t.name for t in graph.outputs}


def observation_of(graph: Tensors) -> str:
    """Return the input that takes the observation."""
    rest = [t.name for t in graph.inputs if t.name != COUNTER and t.name not in graph.states()]
    if len(rest) != 1:
        raise FormatError(
            f'a tracker has one input beside {COUNTER} and recurrent state, this one has {", ".join(rest) or "none"}'
        )
    return rest[0]


def action_of(graph: Tensors) -> str:
    """Return the output that drives the joints."""
    for name in ('actions', 'action'):
        if name in {t.name for t in graph.outputs}:
            return name
    return graph.outputs[0].name


def put_motion(imported: Imported, graph: Tensors, meta: Csv, hints: Hints, joints: Sequence[str]) -> None:
    """Put the counter, the reference motion and its anchor into the draft.

    Raises:
        DocumentError: the anchor is missing, or the way to it is not known.
    """
    last = last_tick(imported.network, graph, COUNTER, REFERENCE)
    counter: dict[str, object] = {'counter': 'ticks', 'start': 0}
    if last is not None:
        counter |= {'last': last, 'end': 'hold'}
        imported.assume(
            f'inputs.{COUNTER}.last', last, 'asked of the network: its reference does not change after it', put=False
        )
    imported.contract['inputs'][COUNTER] = counter
    quantities = {name: name for name in REFERENCE}
    motion: dict[str, object] = {'source': 'network', 'quantities': quantities, 'quaternion': 'wxyz', 'end': 'hold'}
    imported.contract['motion'] = motion
    imported.assume('motion.quaternion', 'wxyz', 'body_quat_w of Isaac Lab before 3.0 and of mjlab', put=False)
    anchor = meta.data.get('anchor_body_name', '').strip()
    bodies = meta.names('body_names', [])
    uses = {use['term'] for part in imported.contract['inputs'].values() for use in part.get('terms', [])}
    if not uses & {'motion_anchor_pos_b', 'motion_anchor_ori_b'}:
        return
    if anchor not in bodies:
        raise DocumentError(
            meta.source, [f'metadata anchor_body_name: {anchor or "missing"}, not among body_names {", ".join(bodies)}']
        )
    outputs = {t.name for t in graph.outputs}
    for quantity, name in BODIES.items():
        if name in outputs:
            quantities[quantity] = f'{name}[{bodies.index(anchor)}]'
    if hints.sets('motion.anchor'):
        return
    chain = chain_by_name(anchor, joints)
    if chain is None:
        raise DocumentError(
            meta.source,
            [f'anchor_body_name: the joints from the base to {anchor} are not known here; give --set motion.anchor='
             f"'{{body: {anchor}, chain: [[JOINT, z], ...]}}'"],
        )  # fmt: skip
    why = 'the metadata names the body alone; the joints from the base to it are those of this robot'
    imported.assume('motion.anchor', {'body': anchor, 'chain': [list(step) for step in chain]}, why)
