# SPDX-License-Identifier: Apache-2.0
"""Promises of `explain`: each simple cause is found from numbers alone, and nothing is explained by accident."""

import numpy as np
import pytest

from sim2real_ros.parity.explain import explain

RNG = np.random.default_rng(0)
OURS = np.cumsum(RNG.normal(size=(60, 5)), axis=0)


@pytest.mark.parametrize(
    ('theirs', 'kind', 'value'),
    [
        (0 * OURS, 'zeros', 0.0),
        (OURS[:, [1, 0, 2, 4, 3]], 'order', [1, 0, 2, 4, 3]),
        (0.25 * OURS, 'scale', 0.25),
        (-OURS, 'scale', -1.0),
        (9.81 * OURS, 'scale', 9.81),
        (OURS * np.arange(1, 6), 'scale', [1.0, 2.0, 3.0, 4.0, 5.0]),
        (OURS + np.arange(5.0), 'offset', [0.0, 1.0, 2.0, 3.0, 4.0]),
        (np.clip(OURS, -2, 2), 'clip', 2.0),
    ],
)
def test_each_cause_is_found_with_its_value(theirs, kind, value):
    cause = explain(OURS, theirs)
    assert cause is not None
    assert cause.kind == kind
    np.testing.assert_allclose(cause.value, value, rtol=1e-6, atol=1e-9)


def test_a_delay_of_one_tick_is_found():
    theirs = np.vstack((OURS[:1], OURS[:-1]))
    assert explain(OURS, theirs).kind == 'delay'


def test_a_normaliser_is_found():
    mean, deviation = np.arange(5.0), np.array([1.0, 2, 3, 4, 5])
    scale, offset = explain(OURS, (OURS - mean) / deviation).value
    np.testing.assert_allclose(scale, 1 / deviation, rtol=1e-6)
    np.testing.assert_allclose(offset, -mean / deviation, atol=1e-6)


def test_another_order_with_other_signs_is_found():
    assert explain(OURS, OURS[:, [2, 0, 1, 3, 4]] * (1, -1, 1, 1, -1)).value == [2, 0, 1, 3, 4]


def test_unrelated_numbers_are_not_explained():
    assert explain(OURS, np.cumsum(RNG.normal(size=OURS.shape), axis=0)) is None
