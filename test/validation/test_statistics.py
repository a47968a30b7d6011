# SPDX-License-Identifier: Apache-2.0
"""Promises of the statistics: they are the textbook's, bounds cover, and no count of episodes breaks them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.validation.statistics import (
    binomial,
    episodes_needed,
    lower_bound,
    mcnemar,
    wilson,
)  # fmt: skip

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CONFIDENCE = st.floats(0.55, 0.999)


@given(COUNTS, CONFIDENCE)
def test_the_bound_for_claims_is_the_beta_quantile_of_clopper_and_pearson(count, confidence):
    beta = pytest.importorskip('scipy.stats').beta
    failures, n = count
    expected = beta.ppf(1 - confidence, n - failures, failures + 1) if failures < n else 0.0
    assert lower_bound(failures, n, confidence) == pytest.approx(expected, abs=1e-9)


@given(COUNTS, CONFIDENCE)
def test_the_interval_of_plots_is_scipys(count, confidence):
    stats = pytest.importorskip('scipy.stats')
    failures, n = count
    test = stats.binomtest(n - failures, n)
    assert wilson(failures, n, confidence) == pytest.approx(tuple(test.proportion_ci(confidence, 'wilson')), abs=1e-9)


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_paired_comparison_is_the_exact_binomial_test_of_the_pairs_that_differ(first, second):
    stats = pytest.importorskip('scipy.stats')
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize('n', [1, 7, 40, 150])
def test_the_bound_is_too_high_for_no_more_than_the_error_of_all_runs(n):
    bounds = np.array([lower_bound(failures, n, 0.95) for failures in range(n + 1)])
    for success in np.linspace(0.01, 0.99, 50):
        assert binomial(n, 1 - success, n)[bounds > success].sum() <= 0.05 + 1e-12


def test_the_figures_of_the_textbook_come_out():
    clean = {0.90: 29, 0.95: 59, 0.98: 149, 0.99: 299, 0.995: 598, 0.999: 2995}
    assert {success: episodes_needed(success, 0.95) for success in clean} == clean
    assert lower_bound(10, 1000, 0.95) == pytest.approx(0.983, abs=5e-4)


@given(st.floats(0.02, 0.9999), st.floats(0.51, 0.9999))
def test_one_episode_less_than_needed_is_too_few(success, confidence):
    n = episodes_needed(success, confidence)
    assert lower_bound(0, n, confidence) >= success - 1e-12
    assert n == 1 or lower_bound(0, n - 1, confidence) < success + 1e-12


def test_a_million_episodes_and_none_at_all_are_counted_alike():
    assert binomial(1_000_000, 0.3, 1_000_000).sum() == pytest.approx(1.0, abs=1e-7)
    assert lower_bound(20_000, 1_000_000, 0.95) == pytest.approx(0.97977, abs=1e-5)
    assert lower_bound(0, 0, 0.95) == 0.0
    assert wilson(0, 0) == (0.0, 1.0)
