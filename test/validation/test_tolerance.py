# SPDX-License-Identifier: Apache-2.0
"""Promises of the comparison of a machine with a policy: it says by how much, and nothing where nothing is known."""

from sim2real_ros.validation.tolerance import COMMAND_DELAY, command_age_margin


def test_it_says_how_much_is_to_spare_or_missing():
    assert command_age_margin({COMMAND_DELAY: 0.012}, 0.005) == (
        'pass', 'commands are 5.0 ms old, the policy bears 12.0 ms: 7.0 ms to spare',
    )  # fmt: skip
    verdict, text = command_age_margin({COMMAND_DELAY: 0.012}, 0.0155)
    assert verdict == 'fail'
    assert text.startswith('commands are 15.5 ms old, the policy bears 12.0 ms: 3.5 ms too old. Leave the computer')


def test_the_edge_is_borne():
    assert command_age_margin({COMMAND_DELAY: 0.012}, 0.012)[0] == 'pass'


def test_without_a_figure_nothing_is_judged():
    assert command_age_margin({'action_delay_s': 0.02}, 0.005)[0] == 'skip'
