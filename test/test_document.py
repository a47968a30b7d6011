# SPDX-License-Identifier: Apache-2.0
"""YAML is read safely and every fault of a document is in one message."""

import os
from pathlib import Path

import pytest

from sim2real_ros.document import Section, parse_yaml, read_yaml, validate
from sim2real_ros.errors import DocumentError, NotFoundError, Sim2RealError


class Inner(Section):
    a: int
    b: float | list[float] = 1.0


class Outer(Section):
    name: str
    inner: Inner
    table: dict[str, float] = {}


def faults_of(data):
    with pytest.raises(DocumentError) as caught:
        validate(Outer, data, 'robot.yaml')
    return caught.value.faults


def test_valid_document_gives_the_object():
    assert validate(Outer, {'name': 'x', 'inner': {'a': 1}}, 'robot.yaml').inner.a == 1


def test_every_fault_is_listed_with_its_path():
    faults = faults_of({'inner': {'a': 'one', 'c': 1}, 'table': {'k': 'v'}, 'other': 2})
    paths = sorted(fault.split(':')[0] for fault in faults)
    assert paths == ['inner.a', 'inner.c', 'name', 'other', 'table.k']


def test_message_names_the_file_and_counts_the_faults():
    error = DocumentError('robot.yaml', ['a: x', 'b: y'])
    assert str(error) == 'robot.yaml: 2 faults\n  - a: x\n  - b: y'
    assert str(DocumentError('robot.yaml', ['a: x'])).startswith('robot.yaml: 1 fault\n')
    assert isinstance(error, Sim2RealError)


def test_missing_key_says_that_there_is_no_default():
    assert 'name: is missing; it has no default' in faults_of({'inner': {'a': 1}})


def test_unknown_key_lists_the_known_ones_at_the_top():
    assert faults_of({'name': 'x', 'inner': {'a': 1}, 'nmae': 'y'}) == [
        'nmae: is not a known key; known keys are name, inner, table'
    ]


def test_wrong_value_is_shown():
    assert faults_of({'name': 'x', 'inner': {'a': 'one'}})[0].endswith("(got 'one')")


@pytest.mark.parametrize('value', [float('nan'), float('inf'), -float('inf')])
def test_number_that_is_not_finite_is_refused(value):
    assert faults_of({'name': 'x', 'inner': {'a': 1}, 'table': {'k': value}})[0].startswith('table.k: ')
    assert faults_of({'name': 'x', 'inner': {'a': 1, 'b': value}})[0].startswith('inner.b: ')


def test_path_holds_only_what_stands_in_the_file():
    """A field that takes a number or a list of numbers shows as itself, not as inner.b.float."""
    assert {fault.split(':')[0] for fault in faults_of({'name': 'x', 'inner': {'a': 1, 'b': 'c'}})} == {'inner.b'}
    assert {fault.split(':')[0] for fault in faults_of({'name': 'x', 'inner': {'a': 1, 'b': [1, 'c']}})} <= {
        'inner.b',
        'inner.b.1',
    }


@pytest.mark.parametrize('data', [None, [], 'text', 3])
def test_document_that_is_no_mapping_is_refused_with_the_expected_keys(data):
    assert faults_of(data) == ['a mapping with the keys name, inner, table is expected']


def test_section_cannot_be_changed():
    section = validate(Outer, {'name': 'x', 'inner': {'a': 1}}, 'robot.yaml')
    with pytest.raises(ValueError, match='frozen'):
        section.name = 'y'


@pytest.mark.parametrize(
    'text',
    [
        '!!python/object/apply:os.system ["true"]',
        'a: !!python/tuple [1, 2]',
        '!!python/name:os.system',
        'a: !custom {}',
    ],
)
def test_tag_that_could_run_code_is_refused(text):
    with pytest.raises(DocumentError, match=r'f\.yaml.*\n.*not valid YAML.*tag'):
        parse_yaml(text, 'f.yaml')


@pytest.mark.parametrize(
    'text',
    ['a: [1, 2', 'a: b: c', 'a:\n\t- b', 'a: \x00', 'a: 1\na: 2', 'a: !!float abc', '[' * 1000, '{a: ' * 1000],
    ids=['open list', 'two values', 'tab', 'zero byte', 'same key twice', 'no float', 'deep list', 'deep mapping'],
)
def test_text_that_is_not_yaml_is_a_document_error(text):
    with pytest.raises(DocumentError, match=r'f\.yaml: 1 fault'):
        parse_yaml(text, 'f.yaml')


def test_json_with_any_character_is_read_as_it_was_written():
    assert parse_yaml('{"a": "\\ud83d\\ude00 \\u00e9", "b": 1e-05}', 'wire') == {'a': '\U0001f600 é', 'b': 1e-05}


def test_a_key_that_occurs_twice_in_json_is_refused():
    with pytest.raises(DocumentError, match='the key a occurs twice'):
        parse_yaml('{"a": 1, "b": {"a": 2, "a": 3}}', 'wire')


def test_a_document_that_is_nested_too_deeply_is_refused_in_these_words():
    for text in ('{"a":' * 100_000, '[' * 10_000):
        with pytest.raises(DocumentError, match='nested too deeply'):
            parse_yaml(text, 'wire')


def test_a_byte_order_mark_of_an_editor_is_skipped(tmp_path):
    path = tmp_path / 'policy.yaml'
    path.write_bytes(b'\xef\xbb\xbfa: 1\r\nb: 2\r\n')
    assert read_yaml(path) == {'a': 1, 'b': 2}


def test_devices_and_pipes_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / 'pipe.yaml')
    for path in (Path('/dev/zero'), tmp_path / 'pipe.yaml'):
        with pytest.raises(NotFoundError, match='no regular file'):
            read_yaml(path)


def test_a_message_can_be_shown_anywhere():
    """No control sequence of a terminal, no half of a character, which a ROS string cannot hold, no megabyte."""
    error = DocumentError('f.yaml', ['name: \x1b[2J \ud83d', 'x' * 1_000_000])
    text = str(error)
    assert '\\x1b[2J \\ud83d' in text
    assert text.encode()
    assert len(text) < 2000
    assert '999000 characters more' in text


def test_missing_file_names_the_file_and_the_reason(tmp_path):
    with pytest.raises(NotFoundError, match=r'cannot read .*gone\.yaml: No such file'):
        read_yaml(tmp_path / 'gone.yaml')


def test_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match='Is a directory'):
        read_yaml(tmp_path)


def test_binary_file_is_refused(tmp_path):
    path = tmp_path / 'policy.yaml'
    path.write_bytes(b'\x08\x08\xff\xfe\x00')
    with pytest.raises(DocumentError, match='not a text file'):
        read_yaml(path)
