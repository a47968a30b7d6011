# SPDX-License-Identifier: Apache-2.0
"""Sources with random parts replaced: every importer ends in a draft or in a message, never in a traceback."""

from __future__ import annotations

import contextlib
import copy
import json
import random

import pytest
from foreign import hints, write_network
from foreign_isaac import DESCRIPTOR, LEGGED, LEGS, descriptor_run, env_run
from foreign_metadata import CSV, CSV_WIDTH, G1, holosoma_meta, kinfer_archive

from sim2real_ros.contract.importers import env_yaml, holosoma, io_descriptors, kinfer, mjlab
from sim2real_ros.contract.importers.inert_yaml import parse_inert
from sim2real_ros.errors import Sim2RealError

JUNK = [
    None,
    True,
    -1,
    0,
    7,
    1e300,
    float('nan'),
    '',
    'x',
    '[',
    '(',
    [],
    {},
    [None],
    [[]],
    ['a', 'b'],
    {'a': None},
    [1.0, 2.0, 3.0],
]


def places(tree, path=()):
    """Yield the path of every value in nested dicts and lists."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)):
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def mutated(data, chance):
    data = copy.deepcopy(data)
    for _ in range(chance.randint(1, 3)):
        *path, last = chance.choice(list(places(data)))
        tree = data
        for key in path:
            tree = tree[key]
        if chance.random() < 0.3 and isinstance(tree, dict):
            del tree[last]
        else:
            tree[last] = copy.deepcopy(chance.choice(JUNK))
    return data


def survives(module, source, tmp_path, **given):
    with contextlib.suppress(Sim2RealError):
        module.read(source, hints(tmp_path, **given))


@pytest.mark.parametrize(
    ('module', 'make', 'data', 'given'),
    [
        (io_descriptors, lambda tmp_path: descriptor_run(tmp_path, DESCRIPTOR), DESCRIPTOR, {}),
        (env_yaml, env_run, parse_inert(LEGGED, 'a test'), {'joints': LEGS}),
    ],
    ids=['io_descriptors', 'env_yaml'],
)
def test_yaml(tmp_path, module, make, data, given, monkeypatch):
    folder = make(tmp_path)
    file = next(folder.rglob('*.yaml'))
    chance = random.Random(0)
    current = [data]
    monkeypatch.setattr(module, 'load_inert', lambda path: current[0])
    monkeypatch.setattr(module, '_descriptor' if module is io_descriptors else '_environment', lambda source: file)
    for _ in range(200):
        current[0] = mutated(data, chance)
        survives(module, folder, tmp_path, **given)


def test_metadata(tmp_path):
    chance = random.Random(1)
    texts = ['', ',', 'nan', 'inf,inf', '1,2', 'a', '[1,', '{}', '[[1]]', 'null', '"x"', '1e999', '[null]', '{"lin_vel_x": 3}']
    for i in range(60):
        for module, meta, tensors in (
            (mjlab, dict(CSV), ({'obs': (1, CSV_WIDTH)}, {'actions': (1, 2)})),
            (holosoma, holosoma_meta(G1), ({'actor_obs': (1, 100)}, {'action': (1, 29)})),
        ):
            for key in chance.sample(sorted(meta), 2):
                meta[key] = chance.choice(texts)
            path = write_network(tmp_path / f'{i}.onnx', *tensors, meta)
            module.detect(path)
            survives(module, path, tmp_path)


def test_kinfer_metadata(tmp_path):
    chance = random.Random(2)
    data = {'joint_names': ['hip', 'knee'], 'num_commands': 3, 'carry_size': [2, 4], 'command_names': ['x', 'y', 'yaw']}
    for _ in range(40):
        changed = json.loads(json.dumps(mutated(data, chance)))
        survives(kinfer, kinfer_archive(tmp_path, **{'joint_names': None, **changed}), tmp_path)


@pytest.mark.parametrize('module', [mjlab, holosoma, io_descriptors, env_yaml, kinfer])
def test_what_is_not_there_is_told(tmp_path, module):
    empty = tmp_path / 'empty'
    empty.mkdir()
    assert module.detect(empty) == 0.0
    with pytest.raises(Sim2RealError):
        module.read(empty, hints(tmp_path))
    (empty / 'policy.onnx').write_bytes(b'\x08\x07\x12garbage')
    assert module.detect(empty) == 0.0
    with pytest.raises(Sim2RealError):
        module.read(empty, hints(tmp_path))
