# SPDX-License-Identifier: Apache-2.0
"""Promises of the labels: what is written is read back, and what others write is never taken for ours."""

import pytest

from sim2real_ros.labels import Origin, TickLabel


def test_a_command_says_whose_it_is_which_state_it_answers_and_in_which_mode():
    origin = Origin('safety_node', 1_002_000_000, 'active')
    assert Origin.of(origin.label) == origin


@pytest.mark.parametrize('label', ['', 'x', 'a:b:c', 'a:-1:c', 'a:1:c:d', 'a:٣:c', f'a:{"9" * 20}:c'])
def test_a_foreign_command_has_no_origin(label):
    assert Origin.of(label) == Origin()


def test_a_tick_says_its_stamp_its_widths_and_whether_it_is_the_first():
    tick = TickLabel(20_000_000, 48, 12, True)
    assert TickLabel.of(tick.label) == tick


@pytest.mark.parametrize('label', ['', '1:2', '1:2:3', '1:2:3:last', '1:-2:3:next', 'a:2:3:first'])
def test_what_is_no_label_of_a_tick_is_refused(label):
    with pytest.raises(ValueError, match='no label of a policy tick'):
        TickLabel.of(label)
