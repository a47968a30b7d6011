# SPDX-License-Identifier: Apache-2.0
"""Promises of the assignment: it is the best of all, for any weights."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sim2real_ros.preflight.assignment import best_assignment


@given(st.integers(1, 6).flatmap(lambda n: arrays(float, (n, n), elements=st.floats(-50, 50))))
def test_no_other_assignment_has_a_larger_sum(weight):
    n = len(weight)
    columns = best_assignment(weight)
    assert sorted(columns) == list(range(n))
    best = max(sum(weight[i, j] for i, j in enumerate(other)) for other in itertools.permutations(range(n)))
    assert np.isclose(sum(weight[i, j] for i, j in enumerate(columns)), best)


def test_a_hidden_permutation_of_thirty_rows_is_found():
    hidden = np.random.default_rng(0).permutation(30)
    weight = np.random.default_rng(1).uniform(-5, 0, (30, 30))
    weight[np.arange(30), hidden] = 1.0
    assert best_assignment(weight) == hidden.tolist()
