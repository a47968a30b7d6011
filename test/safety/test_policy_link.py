# SPDX-License-Identifier: Apache-2.0
"""Promises of `PolicyLink`: which targets count, from when on, and when a policy is silent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_rig import DT, contract, go2

from sim2real_ros.safety.adoption import adopt
from sim2real_ros.safety.policy_link import FUTURE_S, TIMEOUT_PERIODS, PolicyLink
from sim2real_ros.signals import JointTargets

ROBOT = go2()
N = len(ROBOT.joints)
OWN = contract()
PERIOD = OWN.period_s


def make_link() -> PolicyLink:
    """Return a link whose policy was accepted."""
    link = PolicyLink()
    link.accept(adopt(ROBOT, OWN))
    return link


def targets(stamp: float, value: float = 0.5, n: int = N) -> JointTargets:
    """Return targets that can be told apart by their value."""
    return JointTargets(stamp, np.full(n, value), np.zeros(n), np.zeros(n))


def offer(link: PolicyLink, stamp: float, value: float = 0.5, *, now: float | None = None, own: str = OWN.id) -> str | None:
    """Offer targets; returns the name of what is wrong with them."""
    fault = link.offer(own, targets(stamp, value), stamp if now is None else now)
    return fault.name if fault is not None else None


def followed(link: PolicyLink) -> float | None:
    """Return the value of the targets that count."""
    return None if link.targets is None else float(link.targets.position[0])


def test_targets_count_from_the_first_state_on_that_is_newer_than_the_one_they_answer():
    link = make_link()
    offer(link, 1.0)
    assert not link.advance(1.0)
    assert link.followed() is None
    assert link.advance(1.0 + DT)
    assert followed(link) == 0.5
    assert not link.advance(1.0 + 2 * DT)


def test_the_newest_of_several_targets_counts():
    link = make_link()
    offer(link, 1.0, 0.1)
    offer(link, 1.002, 0.2)
    link.advance(1.004)
    assert followed(link) == 0.2
    assert link.answers == 2


@given(stamps=st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_targets_never_go_back_in_time(stamps):
    link, last = make_link(), -math.inf
    for stamp in stamps:
        assert offer(link, float(stamp), now=50.0) is None
        link.advance(51.0)
        assert link.targets.stamp == max(last, stamp)
        last = max(last, stamp)


@pytest.mark.parametrize('why', ['no policy', 'another contract', 'no state yet', 'from the future'])
def test_targets_are_ignored_of(why):
    link = PolicyLink() if why == 'no policy' else make_link()
    contract_id = 'another' if why == 'another contract' else OWN.id
    now = None if why == 'no state yet' else 1.0
    stamp = 1.0 + FUTURE_S + 1e-6 if why == 'from the future' else 1.0
    for value in (0.5, np.nan):
        assert link.offer(contract_id, targets(stamp, value), now) is None
    assert not link.advance(stamp + 1.0)
    assert link.answers == 0


def test_targets_may_answer_a_state_that_the_filter_has_not_seen_yet():
    link = make_link()
    offer(link, 1.0 + FUTURE_S - 1e-6, now=1.0)
    assert link.answers == 1


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_a_bad_target_and_never_followed(field, value):
    link, good = make_link(), targets(1.0)
    getattr(good, field)[3] = value
    assert link.offer(OWN.id, good, 1.0).name == 'bad_target'
    assert not link.advance(2.0)
    assert link.answers == 0


@pytest.mark.parametrize('n', [0, N - 1, N + 1])
def test_a_wrong_length_is_a_bad_target(n):
    assert make_link().offer(OWN.id, targets(1.0, n=n), 1.0).name == 'bad_target'


def test_a_policy_is_silent_from_its_timeout_on_well_within_three_periods():
    link = make_link()
    assert link.silent(1.0)
    offer(link, 1.0)
    link.advance(1.0 + DT)
    assert not link.silent(1.0 + TIMEOUT_PERIODS * PERIOD - 1e-6)
    assert link.silent(1.0 + TIMEOUT_PERIODS * PERIOD + 1e-6)
    assert TIMEOUT_PERIODS * PERIOD + DT < 3 * PERIOD


def test_targets_of_unknown_age_are_silence():
    link = make_link()
    offer(link, math.nan, now=1.0)
    link.advance(1.0)
    assert link.silent(1.0)
    offer(link, 1.0)
    link.advance(1.0 + DT)
    assert not link.silent(1.0 + DT)


@pytest.mark.parametrize('how', ['forget', 'accept'])
def test_targets_of_before_are_dropped(how):
    link = make_link()
    offer(link, 1.0)
    link.advance(1.0 + DT)
    offer(link, 2.0)
    if how == 'forget':
        link.forget()
    else:
        link.accept(adopt(ROBOT, OWN))
    assert link.followed() is None
    assert not link.advance(3.0)
    assert link.answers == 0
    assert link.age(3.0) == math.inf
    assert offer(link, 0.5, 0.7) is None  # a clock that started afresh
    link.advance(0.5 + DT)
    assert followed(link) == 0.7


# --- lockstep


def test_a_policy_that_kept_pace_is_waited_for_until_it_has_answered():
    link = make_link()
    offer(link, 1.0)
    link.advance(1.0 + DT)
    assert not link.behind(1.0 + PERIOD, 1.0 + PERIOD - DT)  # the tick is this very state
    assert link.behind(1.0 + PERIOD + DT, 1.0 + PERIOD)
    offer(link, 1.0 + PERIOD)
    assert not link.behind(1.0 + PERIOD + DT, 1.0 + PERIOD)


def test_a_policy_that_has_lost_pace_is_not_waited_for():
    link = make_link()
    assert not link.behind(1.0, 1.0 - DT)
    offer(link, 1.0)
    assert not link.behind(1.0 + 2 * PERIOD + DT, 1.0 + 2 * PERIOD)
