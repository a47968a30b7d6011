# SPDX-License-Identifier: Apache-2.0
"""Promises of the YAML loader: numbers are numbers, and no document is larger than it looks."""

import pytest
import yaml

from sim2real_ros.strict_yaml import StrictLoader


def load(text):
    return yaml.load(text, Loader=StrictLoader)


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('7', 7), ('-3', -3), ('0x1F', 31), ('010', 10.0), ('1e5', 1e5), ('-2.5E-3', -0.0025), ('.5', 0.5), ('3.', 3.0),
        ('-.inf', float('-inf')),
    ],
)  # fmt: skip
def test_numbers_are_those_of_yaml_1_2(text, value):
    assert load(text) == value
    assert type(load(text)) is type(value)


@pytest.mark.parametrize('text', ['1:30', '2024-01-01', '1.5.2', '1_000', 'e5', '.'])
def test_what_only_looks_like_a_number_stays_text(text):
    assert load(text) == text


@pytest.mark.parametrize('text', ['&a [*a]', '&a {b: {c: *a}}', '&a {<<: *a, b: 1}', '- &a [1]\n- &b [*a, *b]'])
def test_an_anchor_that_contains_itself_is_refused(text):
    with pytest.raises(yaml.YAMLError, match='the anchor [ab] contains itself'):
        load(text)


@pytest.mark.parametrize('use', ['[{}]', '{{<<: [{}]}}'])
def test_a_billion_laughs_are_refused_at_once(use):
    lines = ['a0: &a0 {lol: 1}'] + [f'a{i}: &a{i} {use.format(", ".join([f"*a{i - 1}"] * 9))}' for i in range(1, 12)]
    with pytest.raises(yaml.YAMLError, match='more than 1000000 nodes'):
        load('\n'.join(lines))


def test_an_alias_that_ends_is_the_value_of_its_anchor():
    assert load('a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}') == {'a': {'x': 1}, 'b': {'x': 1}, 'c': {'x': 1, 'y': 2}}


def test_a_key_that_occurs_twice_is_refused():
    with pytest.raises(yaml.YAMLError, match='the key b occurs twice'):
        load('a: {b: 1, c: 2, b: 3}')
