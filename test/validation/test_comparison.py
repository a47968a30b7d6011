# SPDX-License-Identifier: Apache-2.0
"""Promises of the comparison: pairs by id, the exact test, and a refusal where the worlds are not the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sim2real_ros.errors import RunError
from sim2real_ros.validation.comparison import Comparison
from sim2real_ros.validation.episode import Episode


def ran(n: int, *failed: int, friction: float = 0.5, speed: float = 1.0) -> list[Episode]:
    """Return n episodes of which some failed."""
    draw = {'friction': friction, 'commands': [[speed, 0.0, 0.0]]}
    return [Episode(f'flat:{k}', 'fell' if k in failed else '', 1.0, 0.1, {}, draw, f'{k}') for k in range(n)]


def test_who_lost_where_is_told_and_tested():
    comparison = Comparison.of(ran(100, *range(10), 50, 51), ran(100, 50, 90))
    assert comparison.first_lost == tuple(f'flat:{k}' for k in [*range(10), 51])
    assert comparison.second_lost == ('flat:90',)
    assert (comparison.pairs, comparison.both_failed, comparison.unpaired) == (100, 1, 0)
    assert comparison.p_value == pytest.approx(2 * (1 + 12) / 2**12)
    assert comparison.sentence('old', 'new') == (
        'new is better (p 0.0063): old alone failed in 11, new alone in 1, both in 1 of 100 worlds'
    )


def test_the_one_that_is_better_is_named_whichever_comes_first():
    assert Comparison.of(ran(100), ran(100, *range(10))).sentence('a', 'b').startswith('a is better')
    assert Comparison.of(ran(100, *range(10)), ran(100)).sentence('a', 'b').startswith('b is better')


def test_few_differences_show_nothing():
    comparison = Comparison.of(ran(1000, 1, 2, 3), ran(1000, 4))
    assert comparison.sentence('a', 'b').startswith('no difference is shown (p 0.62)')
    assert Comparison.of(ran(5), ran(5)).p_value == 1.0


def test_episodes_that_one_alone_ran_do_not_count():
    comparison = Comparison.of(ran(60, 3, 55), ran(50))
    assert (comparison.pairs, comparison.unpaired, comparison.first_lost) == (50, 10, ('flat:3',))
    assert '10 episodes that one alone ran do not count' in comparison.sentence('a', 'b')


def test_studies_without_a_common_episode_are_refused():
    other = [replace(episode, id=f'rough:{k}') for k, episode in enumerate(ran(3))]
    for second in (other, []):
        with pytest.raises(RunError, match='no episode in common: run both with one level and one seed'):
            Comparison.of(ran(3), second)


def test_worlds_that_differ_are_refused_and_commands_may():
    with pytest.raises(RunError, match=r'flat:0 was drawn differently in the two studies \(friction\)'):
        Comparison.of(ran(3), ran(3, friction=0.6))
    assert Comparison.of(ran(3), ran(3, speed=2.0)).pairs == 3


def test_it_is_the_same_with_the_policies_exchanged():
    first, second = ran(80, 1, 2, 3, 9), ran(80, 9, 10)
    one, other = Comparison.of(first, second), Comparison.of(second, first)
    assert (one.first_lost, one.second_lost, one.p_value) == (other.second_lost, other.first_lost, other.p_value)


def test_the_document_is_json():
    document = json.loads(json.dumps(Comparison.of(ran(10, 1), ran(10)).document()))
    assert document['first_lost'] == ['flat:1']
