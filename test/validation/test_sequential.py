# SPDX-License-Identifier: Apache-2.0
"""Promises of the early stop: its false-pass rate, exactly and by simulation; its bound; no stop changes a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real_ros.validation.sequential import Decision, Design
from sim2real_ros.validation.statistics import lower_bound

CLAIMS = st.tuples(st.integers(1, 150), st.floats(0.3, 0.99), st.floats(0.55, 0.99))


def outcomes(design: Design, episodes: int, success: float) -> list[tuple[Decision, float]]:
    """Return every way in which a test can end, and its chance: episode by episode, asking nothing but `decide`.

    How it ends depends on the number of failures alone, so any order of them stands for all that reach a count undecided.
    """
    going, ended = {0: ([], 1.0)}, []
    for _ in range(episodes):
        after: dict[int, tuple[list[bool], float]] = {}
        for failures, (course, chance) in going.items():
            for failed, rate in ((True, 1 - success), (False, success)):
                key = failures + failed
                after[key] = ([*course, failed], after.get(key, ([], 0.0))[1] + chance * rate)
        going = {}
        for failures, (course, chance) in after.items():
            decision = design.decide(course)
            if decision is None:
                going[failures] = (course, chance)
            else:
                ended.append((decision, chance))
    assert not going
    return ended


@settings(max_examples=25, deadline=None)
@given(CLAIMS, st.booleans())
def test_a_policy_at_the_claim_passes_no_more_often_than_the_error_allows(claim, early):
    episodes, success, confidence = claim
    design = Design.of(episodes, success, confidence, early)
    ended = outcomes(design, episodes, success)
    assert sum(chance for _, chance in ended) == pytest.approx(1.0, abs=1e-9)
    assert sum(chance for decision, chance in ended if decision.passed) <= 1 - confidence + 1e-12


def test_nearly_all_of_the_error_is_used_and_a_worse_policy_passes_less_often():
    design = Design.of(200, 0.95, 0.95)
    rates = [sum(c for d, c in outcomes(design, 200, success) if d.passed) for success in (0.5, 0.9, 0.94, 0.95, 0.98, 0.999)]
    assert rates == sorted(rates)
    assert 0.045 < rates[3] <= 0.05
    assert rates[0] < 1e-12
    assert rates[-1] > 0.999


def test_the_false_pass_rate_of_simulated_runs_is_the_computed_one():
    design, rng = Design.of(300, 0.95, 0.9), np.random.default_rng(0)
    exact = sum(chance for decision, chance in outcomes(design, 300, 0.95) if decision.passed)
    passed = sum(design.decide((rng.random(300) < 0.05).tolist()).passed for _ in range(4000))
    assert abs(passed / 4000 - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
    assert exact <= 0.1


def test_stopping_as_soon_as_clopper_and_pearson_like_it_would_break_the_guarantee():
    """The negative control: what this design is for."""
    rng = np.random.default_rng(0)
    looks = range(50, 1001, 50)
    allowed = [max((f for f in range(30) if lower_bound(f, n, 0.95) >= 0.98), default=-1) for n in looks]
    counts = rng.binomial(50, 0.02, (4000, len(looks))).cumsum(axis=1)
    assert (counts <= allowed).any(axis=1).mean() > 0.10


@settings(max_examples=15, deadline=None)
@given(st.tuples(st.integers(1, 120), st.floats(0.5, 0.97), st.floats(0.6, 0.99)), st.booleans(), st.floats(0.05, 0.995))
def test_the_bound_after_a_stop_is_too_high_for_no_more_than_the_error_of_all_runs(claim, early, truth):
    episodes, success, confidence = claim
    ended = outcomes(Design.of(episodes, success, confidence, early), episodes, truth)
    assert sum(chance for decision, chance in ended if decision.bound > truth) <= 1 - confidence + 1e-9


@settings(max_examples=15, deadline=None)
@given(CLAIMS, st.booleans())
def test_the_bound_reaches_the_claim_exactly_where_the_claim_holds(claim, early):
    episodes, success, confidence = claim
    for decision, _ in outcomes(Design.of(episodes, success, confidence, early), episodes, success):
        assert decision.passed == (decision.bound >= success - 1e-12)


@given(st.integers(0, 2**32), st.floats(0.0, 0.1))
def test_a_run_that_failed_early_could_not_have_passed_later(seed, rate):
    design = Design.of(400, 0.97, 0.95)
    failed = (np.random.default_rng(seed).random(400) < rate).tolist()
    decision = design.decide(failed)
    if not decision.passed:
        best = np.cumsum([*failed[: decision.n], *[False] * (400 - decision.n)])
        assert all(best[look - 1] > most for look, most in zip(design.looks, design.allowed, strict=True))


def test_clear_cases_are_short():
    design = Design.of(1000, 0.98, 0.95)
    assert design.decide([False] * 1000).n == 250
    assert design.decide([True] * 1000).n == 12
    assert design.decide([False] * 249) is None
    assert design.decide([]) is None


def test_one_look_at_the_end_is_clopper_and_pearson():
    design = Design.of(1000, 0.98, 0.95, early=False)
    assert design.decide([True] * 12 + [False] * 988) == Decision(True, 1000, 12, lower_bound(12, 1000, 0.95))
    assert design.decide([True] * 13 + [False] * 987) == Decision(False, 1000, 13, lower_bound(13, 1000, 0.95))
    assert design.decide([True] * 900) is None


@pytest.mark.parametrize('early', [True, False])
def test_too_few_episodes_never_pass(early):
    assert Design.of(148, 0.98, 0.95, early).decide([False] * 148).passed is False
    assert Design.of(149, 0.98, 0.95, early).decide([False] * 149).passed is True
