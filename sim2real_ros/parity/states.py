# SPDX-License-Identifier: Apache-2.0
"""Causes that lie in the recorded states: another frame, a quaternion read in another order, a sample of another moment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim2real_ros.parity.explain import Cause, same
from sim2real_ros.parity.finding import Case, Difference, Found
from sim2real_ros.parity.replay import replay
from sim2real_ros.parity.trace import Trace
from sim2real_ros.rotations import multiply_xyzw, world_to_base
from sim2real_ros.signals import RobotState

ORIENTATIONS = {  # how a deployment may read x, y, z, w, and what to say of it
    'the quaternion of the base is in another order: the trainer reads it as w, x, y, z, the trace holds x, y, z, w': [
        1,
        2,
        3,
        0,
    ],
    'the quaternion of the base is in another order: the trainer reads it as x, y, z, w, the trace holds w, x, y, z': [
        3,
        0,
        1,
        2,
    ],
}
INVERSE = 'the quaternion of the base is the inverse: the trainer turns from the base to the world where we turn to the base'
PROBE_S = 1e-3  # by which states are moved to see what follows


def in_the_world_frame(trace: Trace, ours: np.ndarray, theirs: np.ndarray) -> Cause | None:
    """Return whether a vector of the base, (k, 3), was fed in the world's frame."""
    quats = np.array([state.base_quat_xyzw for state in trace.states]) * (-1, -1, -1, 1)
    turned = world_to_base(quats, ours)
    for factor in (1.0, float((turned * theirs).sum() / max((turned * turned).sum(), 1e-12))):
        if same(factor * turned, theirs):
            return Cause('frame', "the trainer feeds it in the world's frame, the contract says the base's")
    return None


def misread_orientation(case: Case, name: str, columns: np.ndarray, difference: Difference) -> Found | None:
    """Return whether a term follows from the base's quaternion read in another order, or backwards."""
    theirs = case.trace.inputs[name][:, columns]
    ways = {sentence: np.array(order) for sentence, order in ORIENTATIONS.items()}
    for sentence, order in {**ways, INVERSE: None}.items():
        states = [
            replace(
                state, base_quat_xyzw=state.base_quat_xyzw * (-1, -1, -1, 1) if order is None else state.base_quat_xyzw[order]
            )
            for state in case.trace.states
        ]
        trace = replace(case.trace, states=states)
        if same(replay(case.contract, trace).inputs[name][:, columns], theirs):
            return Found(replace(difference, cause=sentence), trace=trace)
    return None


def read_earlier(case: Case, name: str, columns: np.ndarray, term: np.ndarray, difference: Difference) -> Found:
    """Return whether a term was read a moment before the rest, as between two steps of a simulator; `term` are all its columns.

    The contract is right then, and the difference is taken out of the trace.
    """
    theirs, period = case.trace.inputs[name], case.contract.period_s
    ours, seconds = replay(case.contract, case.trace).inputs[name], 0.0
    made = ours
    for _ in range(3):  # Newton's steps; motion within a tick is all but straight
        slope = (_made(case, name, seconds + PROBE_S) - made)[:, columns] / PROBE_S
        power = float((slope * slope).sum())
        seconds += float((slope * (theirs - made)[:, columns]).sum()) / power if power > 0 else 0.0
        if not 0 < seconds < period:
            return Found(difference)
        made = _made(case, name, seconds)
    if not same(made[:, columns], theirs[:, columns]):
        return Found(difference)
    mended = theirs.copy()
    mended[:, term] = ours[:, term]
    cause = f'the trainer reads it {1e3 * seconds:.3g} ms before the rest of the state, which is no fault of the contract'
    trace = replace(case.trace, inputs={**case.trace.inputs, name: mended})
    return Found(replace(difference, cause=cause), trace=trace, harmless=True)


def _made(case: Case, name: str, seconds: float) -> np.ndarray:
    states = [_before(state, seconds) for state in case.trace.states]
    return replay(case.contract, replace(case.trace, states=states)).inputs[name]


def _before(state: RobotState, seconds: float) -> RobotState:
    """Return positions and orientation as they were some time before, with the velocities of now."""
    quat = state.base_quat_xyzw
    if state.base_ang_vel is not None and (rate := float(np.linalg.norm(state.base_ang_vel))) > 0:
        half = -0.5 * rate * seconds
        quat = multiply_xyzw(quat, np.array([*(np.sin(half) * state.base_ang_vel / rate), np.cos(half)]))
    return replace(state, joint_pos=state.joint_pos - seconds * state.joint_vel, base_quat_xyzw=quat)
