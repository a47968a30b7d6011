# SPDX-License-Identifier: Apache-2.0
"""Broken files of other trainers: whatever a key holds or lacks, the answer is one of our errors or a checked contract."""

from __future__ import annotations

import copy
import random

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
