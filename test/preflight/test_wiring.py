# SPDX-License-Identifier: Apache-2.0
"""Promises about the wiring: it is recovered from the responses whatever the couplings, and what did not move is said."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real_ros.preflight.finding import Level
from sim2real_ros.preflight.wiring import MOVED, wiring_findings

JOINTS = tuple(f'joint_{i}' for i in range(8))
N = len(JOINTS)


@given(seed=st.integers(0, 2**32 - 1), coupled=st.floats(0, 0.9))
@settings(max_examples=200)
def test_any_permutation_and_any_signs_are_recovered_from_any_mobility_and_any_size_of_the_torques(seed, coupled):
    """A positive definite mobility with strong couplings; each column is scaled as the wiggle ended early or late."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(N, N)) * coupled + np.diag(rng.uniform(1.0, 2.0, N))
    mobility = factor @ factor.T
    reaches, signs = rng.permutation(N), rng.choice([-1.0, 1.0], N)
    response = mobility[:, reaches] * signs
    response *= 0.05 / np.abs(response).max(axis=0) * rng.uniform(0.5, 1.0, N)
    size = np.abs(response)
    clear = all(size[i, j] >= MOVED for j, i in enumerate(reaches))
    said = {finding.text.split(':')[0] for finding in wiring_findings(JOINTS, response) if finding.level is Level.REFUSED}
    moved = {f'the torque for {JOINTS[j]} moves {JOINTS[i]}' for j, i in enumerate(reaches) if i != j}
    reversed_ = {f'the torque for {JOINTS[j]} moves {JOINTS[i]} the wrong way' for j, i in enumerate(reaches) if signs[j] < 0}
    if clear:
        assert said == moved | reversed_
    else:  # a joint that hardly moved is not accused
        assert said <= moved | reversed_


def test_right_wiring_is_one_finding_that_says_so():
    (finding,) = wiring_findings(JOINTS, 0.05 * np.eye(N))
    assert finding.level is Level.OK


def test_a_torque_that_moves_nothing_is_named_and_the_others_are_judged():
    response = 0.05 * np.eye(N)
    response[:, 3] = 0.001
    response[5, 5] *= -1
    texts = [finding.text for finding in wiring_findings(JOINTS, response)]
    assert len(texts) == 2
    assert 'the torque for joint_3 moved nothing' in texts[0]
    assert 'joint_5 the wrong way' in texts[1]


def test_when_nothing_moves_at_all_it_is_the_power_or_the_controller():
    (finding,) = wiring_findings(JOINTS, np.zeros((N, N)))
    assert finding.level is Level.REFUSED
    assert 'is the effort controller active' in finding.text


def test_two_joints_of_a_leg_swapped_with_a_third_are_all_named():
    response = 0.05 * np.eye(N)[:, [1, 2, 0, 3, 4, 5, 6, 7]]
    texts = [finding.text for finding in wiring_findings(JOINTS, response)]
    assert [text.split(':')[0].removeprefix('the torque for ') for text in texts] == [
        'joint_0 moves joint_1', 'joint_1 moves joint_2', 'joint_2 moves joint_0'
    ]  # fmt: skip
