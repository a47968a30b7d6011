# SPDX-License-Identifier: Apache-2.0
"""Promises of the verdict: it counts what the plan says, in whatever order it comes, and says so when it cannot tell."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real_ros.errors import RunError
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.plan import plan
from sim2real_ros.validation.schema import ValidationFile, load_validation
from sim2real_ros.validation.sequential import Design
from sim2real_ros.validation.statistics import percent, wilson
from sim2real_ros.validation.verdict import Verdict

LEVEL = load_validation('standard')[0]
CASES = st.tuples(st.integers(1, 300), st.floats(0.0, 0.2), st.integers(0, 2**32))


def episode(name: str, reason: str = '') -> Episode:
    """Return an episode that went so."""
    return Episode(name, reason, 20.0, -0.1 if reason else 0.5, {}, {'friction': 0.5}, 'digest')


def study(n: int, failures: dict[int, str] | None = None, level: ValidationFile = LEVEL) -> list[Episode]:
    """Return the first n episodes of the plan; `failures` by their place in it."""
    return [episode(str(name), (failures or {}).get(k, '')) for k, name in enumerate(plan(level, n))]


def test_a_clean_study_holds_and_says_from_when_on():
    verdict = Verdict.of(LEVEL, study(1000))
    assert (verdict.holds, verdict.n, verdict.failures, verdict.exit_code) == (True, 250, 0, 0)
    assert verdict.sentence == (
        'the claim of 98 % success with 95 % confidence holds: no failures in 250 episodes prove at least 98.8 %; '
        'no more were needed'
    )


def test_a_study_that_cannot_hold_any_more_says_why_it_failed():
    failures = {k: 'fell' if k % 3 else 'fault joint_limit' for k in range(0, 240, 20)}
    verdict = Verdict.of(LEVEL, study(300, failures), 1000)
    assert (verdict.holds, verdict.n, verdict.failures, verdict.exit_code) == (False, 221, 12, 1)
    assert verdict.reasons == {'fell': 8, 'fault joint_limit': 4}
    assert '12 failures in 221 episodes, and 982 may have 11 (8 fell, 4 fault joint_limit); they prove' in verdict.sentence


def test_the_fixed_study_waits_for_all_of_its_episodes():
    assert not Verdict.of(LEVEL, study(999), 1000, early=False).decided
    verdict = Verdict.of(LEVEL, study(1000, dict.fromkeys(range(12), 'fell')), 1000, early=False)
    assert (verdict.holds, verdict.n, verdict.failures) == (True, 1000, 12)


@settings(max_examples=30, deadline=None)
@given(CASES, st.randoms(use_true_random=False))
def test_the_order_in_which_workers_come_to_an_end_changes_nothing(case, order):
    n, rate, seed = case
    failed = np.flatnonzero(np.random.default_rng(seed).random(n) < rate)
    episodes = study(n, dict.fromkeys(failed.tolist(), 'fell'))
    shuffled = order.sample(episodes, n)
    assert Verdict.of(LEVEL, shuffled, 300) == Verdict.of(LEVEL, episodes, 300)


@settings(max_examples=30, deadline=None)
@given(CASES)
def test_the_strata_and_the_reasons_sum_to_what_counts(case):
    n, rate, seed = case
    rng = np.random.default_rng(seed)
    failures = {k: str(rng.choice(['fell', 'tracking', 'fault stale'])) for k in range(n) if rng.random() < rate}
    verdict = Verdict.of(LEVEL, study(n, failures), 300)
    assert sum(stratum.n for stratum in verdict.strata) == verdict.n
    assert sum(stratum.failures for stratum in verdict.strata) == sum(verdict.reasons.values()) == verdict.failures
    for stratum in verdict.strata:
        assert (stratum.low, stratum.high) == wilson(stratum.failures, stratum.n)
    assert list(verdict.reasons.values()) == sorted(verdict.reasons.values(), reverse=True)


def test_too_few_episodes_are_told_how_many_it_takes():
    verdict = Verdict.of(LEVEL, study(148), 148)
    assert not verdict.holds
    assert verdict.sentence == (
        '148 episodes are too few: the claim of 98 % success with 95 % confidence needs 149, even without a failure'
    )
    assert Verdict.of(LEVEL, study(149), 149).holds


def test_no_episode_at_all_is_no_verdict():
    verdict = Verdict.of(LEVEL, [])
    assert (verdict.holds, verdict.decided, verdict.bound, verdict.exit_code) == (False, False, None, 1)
    assert verdict.sentence == 'nothing can be said: no episode has been run'
    assert all((stratum.low, stratum.high) == (0.0, 1.0) for stratum in verdict.strata)


def test_a_gap_ends_what_counts_and_is_named():
    """Else a study that loses its failures would pass."""
    episodes = study(1000)
    hole = episodes.pop(100)
    verdict = Verdict.of(LEVEL, episodes)
    assert (verdict.decided, verdict.holds, verdict.n) == (False, False, 100)
    assert f'100 of 1000 episodes have been run, with no failures; the next is {hole.id}' in verdict.sentence
    later = study(1000)
    later.pop(400)  # nothing is missing where it counts
    assert Verdict.of(LEVEL, later).holds


def test_an_episode_that_came_twice_counts_once_and_only_with_one_outcome():
    episodes = study(1000)
    assert Verdict.of(LEVEL, [*episodes, episodes[3]]) == Verdict.of(LEVEL, episodes)
    with pytest.raises(RunError, match=f'episode {episodes[3].id} is there twice with different outcomes'):
        Verdict.of(LEVEL, [*episodes, episode(episodes[3].id, 'fell')])


def test_episodes_that_are_not_in_the_plan_do_not_count():
    searched = [episode('flat:900000', 'fell'), episode('moon:1', 'fell')]
    assert Verdict.of(LEVEL, [*study(1000), *searched]) == Verdict.of(LEVEL, study(1000))


def test_the_document_is_json_and_whole():
    document = json.loads(json.dumps(Verdict.of(LEVEL, study(300, {5: 'fell'}), 300).document()))
    assert document['holds'] is True
    assert document['strata'][0]['scenario'] == 'flat'
    assert document['reasons'] == {'fell': 1}


@given(st.floats(0, 1))
def test_a_percentage_never_looks_better_than_it_is(share):
    assert float(percent(share).removesuffix(' %')) <= 100 * share + 2e-6


@pytest.mark.parametrize('rates', [(0.0, 0.0, 0.0, 0.1), (0.05, 0.0, 0.0, 0.0), (0.01, 0.02, 0.03, 0.03), (0.02,) * 4])
def test_scenarios_in_turn_make_a_false_pass_no_more_likely_than_at_random(rates):
    """Exactly computed, at a success of 0.98 over the mixture that fails in some scenarios more than in others."""
    design = Design.of(1000, 0.98, 0.95)
    rate = dict(zip(LEVEL.scenarios, rates, strict=True))
    assert sum(LEVEL.scenarios[name].share * rate[name] for name in rate) == pytest.approx(0.02)
    looks, alive, passed = dict(zip(design.looks, design.allowed, strict=True)), np.eye(1, 12)[0], 0.0
    for n, name in enumerate(plan(LEVEL, design.looks[-1]), 1):
        one = rate[name.scenario]
        alive = np.convolve(alive, [1 - one, one])[:12]
        if n in looks:
            passed += alive[: looks[n] + 1].sum()
            alive[: looks[n] + 1] = 0.0
    assert passed <= 0.05
