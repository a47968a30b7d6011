# SPDX-License-Identifier: Apache-2.0
"""Promises of the measures: a known shift is found between samples, in either direction, and nothing is made up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.comparison.measures import LARGEST_LAG_S, measure

STEP = 0.002
T = STEP * np.arange(3000)
ALL = np.ones(len(T), bool)
rng = np.random.default_rng(0)


def signals(t: np.ndarray) -> np.ndarray:
    """Return three signals (k, 3) of a gait: a sine, a sharper one, one with a drift."""
    phase = 4 * np.pi * t + 0.3 * np.sin(0.7 * t)
    return np.stack((np.sin(phase), np.tanh(3 * np.sin(phase + 1)), 0.4 * np.sin(phase - 1) + 0.05 * t), axis=1)


@given(st.floats(-0.09, 0.09))
def test_a_shift_is_found_to_a_fifth_of_a_millisecond(seconds):
    m = measure(signals(T), signals(T - seconds), ALL, STEP)
    np.testing.assert_allclose(m.lag_s, seconds, atol=2e-4)
    assert m.lag_of_all_s == pytest.approx(seconds, abs=2e-4)
    assert (m.correlation > 0.999).all()


def test_noise_of_a_fifth_costs_no_more_than_a_millisecond():
    noisy = signals(T - 0.01) + 0.2 * rng.normal(size=(len(T), 3))
    assert measure(signals(T), noisy, ALL, STEP).lag_of_all_s == pytest.approx(0.01, abs=1e-3)


def test_equal_signals_differ_by_nothing_at_all():
    m = measure(signals(T), signals(T), ALL, STEP)
    for zero in (m.rmse, m.bias, m.largest, m.lag_s, m.lag_of_all_s):
        assert not np.any(zero)
    np.testing.assert_array_equal(m.correlation, 1.0)


def test_an_offset_is_bias_and_no_lag():
    m = measure(signals(T), signals(T) + 0.25, ALL, STEP)
    np.testing.assert_allclose(m.rmse, 0.25)
    np.testing.assert_allclose(m.bias, 0.25)
    np.testing.assert_allclose(m.lag_s, 0.0, atol=1e-9)


def test_what_stands_still_or_is_unknown_has_no_lag_and_spoils_no_other():
    a, b = signals(T), signals(T - 0.01)
    a[:, 0], b[:, 2] = 1.0, np.nan
    m = measure(a, b, ALL, STEP)
    np.testing.assert_array_equal(np.isnan(m.lag_s), (True, False, True))
    np.testing.assert_array_equal(np.isnan(m.rmse), (False, False, True))
    assert m.lag_s[1] == pytest.approx(0.01, abs=1e-3)
    assert m.lag_of_all_s == pytest.approx(0.01, abs=1e-3)


def test_two_things_that_have_nothing_to_do_with_each_other_have_no_lag():
    m = measure(signals(T)[:, :1], rng.normal(size=(len(T), 1)), ALL, STEP)
    assert np.isnan(m.lag_s[0])
    assert abs(m.correlation[0]) < 0.2


def test_a_lag_beyond_what_is_looked_for_is_not_told():
    assert np.isnan(measure(signals(T), signals(T - 1.5 * LARGEST_LAG_S), ALL, STEP).lag_s[0])


def test_only_samples_that_count_count():
    a, b, counts = signals(T), signals(T - 0.01), ALL.copy()
    b[1000:1500] = 100.0
    counts[1000:1500] = False
    m = measure(a, b, counts, STEP)
    assert m.largest.max() < 1.0
    np.testing.assert_allclose(m.lag_s, 0.01, atol=1e-3)
