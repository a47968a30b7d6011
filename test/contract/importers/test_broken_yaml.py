# SPDX-License-Identifier: Apache-2.0
"""Broken files of other trainers: whatever a key holds or lacks, the answer is one of our errors or a checked contract."""

from __future__ import annotations

import copy
import json
import random
import re

import pytest
import yaml
from foreign_yaml import DEPLOY, GYM, LEGGED, SAR, deploy, gym, legged, sar

from sim2real_ros.contract.importers import import_policy
from sim2real_ros.errors import Sim2RealError

JUNK = [None, [], {}, '', 'text', -1, 0, 1e300, float('nan'), [None], [[1]], {'a': {'b': 1}}, True, [1] * 1000, 'nan', [10**30]]
MAKERS = {  # what makes a policy, its data, the file with the data, what is around them
    'unitree_rl_lab': (deploy, DEPLOY, 'params/deploy.yaml', lambda data: data),
    'rl_sar': (sar, SAR, 'walk/config.yaml', lambda data: {'dog/walk': data}),
    'unitree_rl_gym': (gym, GYM, 'g1.yaml', lambda data: data),
    'legged_rl_deploy': (legged, LEGGED, 'config.yaml', lambda data: {'policy': data}),
}


def places(data, path=()):
    """Return the paths of every value in nested mappings and lists."""
    items = data.items() if isinstance(data, dict) else enumerate(data[:2]) if isinstance(data, list) else ()
    return [path] * bool(path) + [place for key, value in items for place in places(value, (*path, key))]


def spoilt(data, path, value):
    """Return the data with another value at a path."""
    data = copy.deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


@pytest.mark.parametrize('name', MAKERS)
def test_broken_files_end_in_our_errors(name, tmp_path):
    make, data, file, around = MAKERS[name]
    source, chance, kept = make(tmp_path / 'go2'), random.Random(7), 0
    for path in places(data):
        for value in chance.sample(JUNK, 3):
            (source / file).write_text(yaml.dump(around(spoilt(data, path, value))), encoding='utf-8')
            try:
                import_policy(source, tmp_path / 'out', name, force=True)
                kept += 1
            except Sim2RealError as error:
                assert str(error).strip()  # noqa: PT017 - any of our errors will do
    assert kept < len(places(data))


@pytest.mark.parametrize(
    'text',
    ['', '{', 'a: &a [*a]', 'x: ' + '[' * 3000, '\x00\x01', 'a: 1\na: 2', '- 1', '!!python/name:os.system ""', '&a a: *a'],
)
def test_files_that_are_no_mapping_are_of_no_format(text, tmp_path):
    (tmp_path / 'deploy.yaml').write_text(text)
    for name in ('auto', *MAKERS):
        with pytest.raises(Sim2RealError):
            import_policy(tmp_path, tmp_path / 'out', name)


EDITORS = {  # what other editors and programs make of the same text
    'CRLF': lambda text: text.replace('\n', '\r\n').encode(),
    'byte order mark': lambda text: b'\xef\xbb\xbf' + text.encode(),
    'comments': lambda text: ('# mine\n' + text.replace('\n', '  # note\n')).encode(),
    'markers of a document': lambda text: ('---\n' + text + '...\n').encode(),
    'JSON': lambda text: json.dumps(yaml.safe_load(text)).encode(),
    'one line': lambda text: yaml.safe_dump(yaml.safe_load(text), default_flow_style=True, sort_keys=False).encode(),
    'anchors': lambda text: yaml.safe_dump(with_one_copy(yaml.safe_load(text), {}), sort_keys=False).encode(),
    'powers of ten': lambda text: re.sub(r'\b0\.25\b', '25e-2', text).encode(),
}


def with_one_copy(data, seen):
    """Return the data with equal lists as one, which YAML writes as anchor and aliases."""
    if isinstance(data, dict):
        return {key: with_one_copy(value, seen) for key, value in data.items()}
    return seen.setdefault(str(data), data) if isinstance(data, list) else data


@pytest.mark.parametrize('name', MAKERS)
def test_the_hand_of_another_editor_changes_nothing(name, tmp_path):
    make, _, file, _ = MAKERS[name]
    source = make(tmp_path / 'go2')
    text = (source / file).read_text()
    wanted = import_policy(source, tmp_path / 'out', name).file
    for editor, edit in EDITORS.items():
        (source / file).write_bytes(edit(text))
        assert import_policy(source, tmp_path / 'out', name, force=True).file == wanted, editor
