# SPDX-License-Identifier: Apache-2.0
"""Broken contracts: edits of the parsed document, and whole texts that no schema ever sees."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import yaml

DELETE = object()  # in place of a value: leave the key out
LEG = 'FL_thigh_joint'
TERMS = 'inputs/obs/terms'

# path in the document: what to write there, each a contract of its own
EDITS: dict[str, list[Any]] = {
    'schema': [DELETE, 2, '1'],
    'name': [DELETE, '', 5, ['a'], None],
    'robot': [DELETE, 'go1', 'humanoid29', {'go2': 1}],
    'model': [DELETE, 'policy.onnx', {}],
    'model/file': [
        '',
        'missing.onnx',
        '.',
        '..',
        '/etc/passwd',
        '/dev/zero',
        '/dev/null',
        '/proc/self/mem',
        'a\0b',
        'x' * 5000,
    ],
    'model/sha256': ['abc', '0' * 64, 'Z' * 64],
    'rate_hz': [DELETE, 0.0, -50.0, 1e9, '50', float('nan'), float('inf'), None, 5e-324, True],
    'joints': [
        DELETE,
        [],
        LEG,
        [LEG] * 12,
        [f'joint_{i}' for i in range(12)],
        list(range(12)),
        [f'j{i}' for i in range(20_000)],
    ],
    'joints/3': ['FL_hip_joint', '', 7, 'FR_hip_jοint'],  # the last: a Greek letter
    'default_position': [DELETE, {}, {'.*': 0.0}, {'([': 0.1}, {'.*': float('nan')}],
    f'default_position/{LEG}': [DELETE, 9.0, -1e308, '0.8', float('inf'), True],
    'stiffness': [DELETE, {'.*': 1e6}, {'.*': 1e308}, {'.*': -25.0}],
    f'stiffness/{LEG}': [float('nan'), '25', None],
    'damping': [DELETE, {'.*': 1e5}, {'nobody': 0.6}],
    'inputs': [DELETE, {}, [], 'obs'],
    'inputs/obs': [{}, {'state': 'h', 'initial': 'zeros'}, {'first': True}, {'counter': 'ticks'}],
    'inputs/obs/stack/lags': [[], [-1], [0, 0], [10**9], [0, 1, 2], [10**400]],
    'inputs/obs/stack/layout': ['newest', 1],
    TERMS: [[], [{'term': 'joint_pos_rel'}], [{'term': 'camera'}]],
    f'{TERMS}/0/term': ['base_lin_vel', 'no_such_term', '__import__("os")'],
    f'{TERMS}/0/scale': [1e308, 'nan', [1.0, 2.0], [[1.0]]],
    f'{TERMS}/0/clip': [[1.0, -1.0], [0.0]],
    f'{TERMS}/5/value': [DELETE, 'squared'],
    'outputs': [DELETE, {}, {'targets': {'type': 'joint_position', 'scale': 0.25, 'offset': 'default', 'clip': None}}],
    'outputs/actions/type': [DELETE, 'joint_thought'],
    'outputs/actions/scale': [DELETE, {LEG: 0.25}, 'large'],
    'outputs/actions/clip': [DELETE, [10.0, -10.0]],
    'outputs/actions/joints': [[LEG], ['tail_joint']],
    'commands/velocity/x': [[0.5, 1.0], [float('-inf'), 1.0]],
    'commands/velocity/timeout_s': [0.0, -1.0],
    'phase': [None, {'period_s': 0.5}],
    'phase/period_s': [0.0, -0.5, 5e-324],
    'phase/encoding': [['tan'], []],
    'phase/offsets': [[0.0] * 500, []],
    'latency': [{'trained_ms': [20.0, 0.0]}, {'trained_ms': [-5.0, 0.0]}],
    'golden': ['missing.npz', '.', 'embedded', 'policy.yaml', '../golden.npz', '/dev/zero'],
    'novelty': ['missing.npz', 'golden.npz', 'policy.onnx', '/dev/zero'],
    'motion': [{'source': 'file', 'file': 'missing.npz', 'rate_hz': 50.0, 'quantities': {'joint_pos': 'q'}}],
    'provenance': [DELETE, None, {}, 'me'],
    'turbo': [True],
}


def edited(document: dict[str, Any], path: str, value: Any) -> str:
    """Return a contract as text with one place altered."""
    document = copy.deepcopy(document)
    *parents, last = path.split('/')
    place: Any = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    key: Any = int(last) if isinstance(place, list) else last
    if value is DELETE:
        del place[key]
    else:
        place[key] = value
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _laughs(_: str) -> str:
    """Nine levels of nine aliases each: 3.9e8 items once expanded."""
    lines = ['a0: &a0 ["lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol"]']
    lines += [f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 9)}]' for i in range(1, 9)]
    return '\n'.join(lines) + '\n'


def _merging_laughs(text: str) -> str:
    """The same with merge keys."""
    lines = ['a0: &a0 {lol: 1}'] + [f'a{i}: &a{i}\n  <<: [{", ".join([f"*a{i - 1}"] * 9)}]' for i in range(1, 10)]
    return '\n'.join(lines) + '\n' + text


def _laughing_joints(text: str) -> str:
    """The same inside a field that the schema walks through."""
    return _laughs(text) + text.replace('contacts:', 'was:') + 'contacts: *a8\n'


def _as_json(text: str, old: str, new: str) -> str:
    return json.dumps(yaml.safe_load(text)).replace(old, new, 1)


# name: from the good text to a broken one
TEXTS: dict[str, Callable[[str], str | bytes]] = {
    'empty': lambda text: '',
    'blanks': lambda text: ' \n\n ',
    'a comment': lambda text: '# nothing\n',
    'a number': lambda text: '42\n',
    'a list': lambda text: '- 1\n- 2\n',
    'null bytes': lambda text: text.encode().replace(b'go2', b'go\0', 1),
    'only null bytes': lambda text: bytes(100_000),
    'not UTF-8': lambda text: text.encode().replace(b'go2', b'\xff\xfe\xff', 1),
    'UTF-16': lambda text: text.encode('utf-16'),
    'bell and escape': lambda text: text.replace('go2_velocity', '"\\a\\e[31m"\nrobt: "\\e[2J"', 1),
    'tabs': lambda text: text.replace('- ', '\t- '),
    'open bracket': lambda text: text + 'contacts: [',
    'cut in a list': lambda text: text[:200],
    'cut before the end': lambda text: text[: text.index('provenance')],
    'deep brackets': lambda text: text + 'contacts: ' + '[' * 20_000 + ']' * 20_000,
    'deep mapping': lambda text: text + 'contacts: ' + '{a: ' * 20_000 + '1' + '}' * 20_000,
    'deep JSON': lambda text: '{"a":' * 100_000 + '1' + '}' * 100_000,
    'deep within the limits': lambda text: text + 'contacts: ' + '[' * 150 + ']' * 150,
    'cyclic document': lambda text: '&a\nschema: *a\nname: *a\n',
    'cyclic list': lambda text: text + 'contacts: &a [*a, *a]\n',
    'cyclic mapping': lambda text: text.replace('provenance:', 'provenance: &p\n  notes: *p') + '',
    'cyclic merge': lambda text: '&a\n<<: *a\n' + text,
    'cyclic inputs': lambda text: text.replace('inputs:', 'inputs: &i\n  more: *i', 1),
    'billion laughs': _laughs,
    'billion laughs in contacts': _laughing_joints,
    'billion laughs by merging': _merging_laughs,
    'unknown anchor': lambda text: text + 'contacts: *nobody\n',
    'the same key twice': lambda text: text + 'rate_hz: 100.0\n',
    'the same inner key twice': lambda text: text.replace('  FL_hip_joint: 0.1', '  FL_hip_joint: 0.1\n  FL_hip_joint: 0.2', 1),
    'two documents': lambda text: text + '---\n' + text,
    'a tag that runs code': lambda text: text.replace('go2_velocity', '!!python/object/apply:os.system ["true"]', 1),
    'a tag of its own': lambda text: text.replace('name: ', 'name: !secret ', 1),
    'a binary name': lambda text: text.replace('go2_velocity', '!!binary aGVsbG8=', 1),
    'bad base64': lambda text: text.replace('go2_velocity', '!!binary "*"', 1),
    'a set for joints': lambda text: text.replace('joints:\n', 'joints: !!set {a, b}\nwas:\n', 1),
    'a list as key': lambda text: '? [a, b]\n: 1\n' + text,
    'a number beyond floats': lambda text: text.replace('50.0', '1' + '0' * 5000, 1),
    'a sexagesimal number': lambda text: text.replace('50.0', '1:30', 1),
    'half an emoji in JSON': lambda text: _as_json(text, '"go2"', '"\\ud83d"'),
    'half an emoji as a key in JSON': lambda text: _as_json(text, '"robot"', '"\\ud83d"'),
    'half an emoji as a joint': lambda text: _as_json(text, '"FL_hip_joint"', '"\\ud83d"'),
    'the same key twice in JSON': lambda text: _as_json(text, '"robot"', '"name": "b", "robot"'),
    'NaN in JSON': lambda text: _as_json(text, '50.0', 'NaN'),
    'ten thousand unknown keys': lambda text: text + ''.join(f'key_{i}: {i}\n' for i in range(10_000)),
    'a name of a megabyte': lambda text: text.replace('robot: go2', f'robot: {"g" * 1_000_000}', 1),
}
