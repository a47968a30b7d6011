# SPDX-License-Identifier: Apache-2.0
"""A policy tick is due when the stamp crosses a multiple of the policy period."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.timing import tick_due


@given(
    rate=st.sampled_from([10, 25, 30, 50, 60, 100, 200]),
    per_tick=st.integers(1, 20),
    epoch=st.sampled_from([0, 1_000, 1_700_000_000]),
)
def test_driver_at_a_multiple_of_the_rate_gives_one_tick_every_so_many_states(rate, per_tick, epoch):
    stamps = [epoch + round(1e9 * k / (rate * per_tick)) / 1e9 for k in range(10 * per_tick + 1)]
    due = [tick_due(now, before, 1 / rate) for before, now in zip(stamps, stamps[1:], strict=False)]
    assert [k + 1 for k, is_due in enumerate(due) if is_due] == [per_tick * i for i in range(1, 11)]


@given(steps=st.lists(st.floats(1e-4, 0.019), min_size=1, max_size=200))
def test_irregular_states_never_lose_or_double_a_period(steps):
    stamps = [0.0]
    for step in steps:
        stamps.append(stamps[-1] + step)
    due = sum(tick_due(now, before, 0.02) for before, now in zip(stamps, stamps[1:], strict=False))
    assert due == int((stamps[-1] + 1e-6) / 0.02)


def test_stamp_rounded_just_below_a_multiple_is_due():
    assert tick_due(0.019999999, 0.018, 0.02)
    assert not tick_due(0.022, 0.019999999, 0.02)


def test_same_stamp_is_not_due_again():
    assert not tick_due(0.02, 0.02, 0.02)


def test_gap_of_several_periods_is_one_tick():
    assert tick_due(1.0, 0.5, 0.02) is True


@pytest.mark.parametrize('stamp', [0.0, 0.5])
def test_stamp_that_went_back_beyond_a_multiple_starts_afresh(stamp):
    assert tick_due(stamp, 100.0, 0.02)
    assert tick_due(stamp + 0.02, stamp, 0.02)
