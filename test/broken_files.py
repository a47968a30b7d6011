# SPDX-License-Identifier: Apache-2.0
"""Two hundred broken policies, made from the shipped one: what a download, a bad disk, a hurry or malice may leave behind.

    for broken in broken_files(folder, seed=0):
        broken.kind, broken.name, broken.policy     # the last is what a user would pass

Each is made when it is its turn. Contracts are in `broken_contracts.py`, networks in `broken_networks.py`.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from broken_contracts import EDITS, TEXTS, edited
from broken_networks import NETWORKS, outside, save
from onnx.reference import ReferenceEvaluator

from sim2real_ros.paths import find_policy

COUNT = 200
OURS = find_policy('go2_velocity').parent
POINTER = b'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 220855\n' % (b'a' * 64)
TOLERANCE = 2e-3  # twice what the golden vectors allow

Make = Callable[[Path, np.random.Generator], str | None]  # breaks the policy in a folder; what to pass, if not the folder


@dataclass(frozen=True)
class Broken:
    """One broken policy."""

    kind: str
    name: str
    policy: str


def broken_files(folder: Path, seed: int = 0, count: int = COUNT) -> Iterator[Broken]:
    """Make `count` broken policies, each in a folder of its own; the same for the same seed."""
    for i, (kind, name, make) in enumerate(_chosen(seed, count)):
        place = folder / f'{i:03d}'
        shutil.copytree(OURS, place)
        rng = np.random.default_rng([seed, i])
        yield _broken(kind, name, make, place, rng)


def broken_by_name(folder: Path, *names: str) -> list[Broken]:
    """Make those of the given names."""
    made = []
    for kind, name, make in _cases():
        if name in names:
            place = folder / f'{len(made):03d}'
            shutil.copytree(OURS, place)
            made.append(_broken(kind, name, make, place, np.random.default_rng(0)))
    assert len(made) == len(names), f'{set(names) - {b.name for b in made}} unknown'
    return made


def _broken(kind: str, name: str, make: Make, place: Path, rng: np.random.Generator) -> Broken:
    passed = make(place, rng)
    return Broken(kind, name, str(place) if passed is None else passed)


def _chosen(seed: int, count: int) -> list[tuple[str, str, Make]]:
    """Return `count` cases, all kinds in shares like those of the whole list, in a random order."""
    cases, rng = _cases(), np.random.default_rng(seed)
    assert len(cases) >= count, len(cases)
    kinds = sorted({kind for kind, _, _ in cases})
    piles = {kind: [case for case in cases if case[0] == kind] for kind in kinds}
    turns = []
    for pile in piles.values():
        rng.shuffle(pile)
        turns += [((k + rng.random()) / len(pile), case) for k, case in enumerate(pile)]
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])][:count]


def _cases() -> list[tuple[str, str, Make]]:
    cases = [('truncated', f'{"hash" if h else "no hash"}, {o}', _cut(o, h)) for h in (True, False) for o in OFFSETS]
    cases += [('flipped', f'{"hash" if h else "no hash"}, {k}', _flip(k, h)) for h in (True, False) for k in range(9)]
    for path, values in EDITS.items():
        cases += [('contract', f'{path} {k}', _edit(path, value)) for k, value in enumerate(values)]
    cases += [('text', name, _text(make)) for name, make in TEXTS.items()]
    cases += [('network', name, _network(make)) for name, make in NETWORKS.items()]
    cases += [('metadata', name, _metadata(make)) for name, make in METADATA.items()]
    cases += [('sidecar', name, make) for name, make in SIDECARS.items()]
    cases += [('file', name, make) for name, make in FILES.items()]
    archives = {**{name: _npz(alter) for name, alter in ARCHIVES.items()}, **DAMAGES}
    cases += [
        ('npz', f'{file} {name}', _on(file, do)) for file in ('golden.npz', 'statistics.npz') for name, do in archives.items()
    ]
    return cases


# --- helpers


def rewrite(folder: Path, **changes: Any) -> None:
    """Alter top-level keys of the contract."""
    path = folder / 'policy.yaml'
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes, sort_keys=False))


def _without_hash(folder: Path, **changes: Any) -> None:
    rewrite(folder, model={'file': 'policy.onnx'}, **changes)


def _bare(folder: Path) -> None:
    """Leave only the network to tell what is wrong."""
    _without_hash(folder, golden=None, novelty=None)


def _replace(path: Path, make: Callable[[Path], Any]) -> None:
    path.unlink()
    make(path)


# --- truncated and flipped bytes

OFFSETS = (1, 7, 64, 1000, 50_000, 150_000, 220_000, -1)


def _cut(offset: int, with_hash: bool) -> Make:
    def make(folder: Path, _: np.random.Generator) -> None:
        if not with_hash:
            _without_hash(folder)
        path = folder / 'policy.onnx'
        path.write_bytes(path.read_bytes()[:offset])

    return make


def _flip(k: int, with_hash: bool) -> Make:
    """Alter single bits, or runs of bytes, wherever they fall; without a hash until another network comes of it."""

    def make(folder: Path, rng: np.random.Generator) -> None:
        path = folder / 'policy.onnx'
        good = path.read_bytes()
        if not with_hash:
            _without_hash(folder)
        for _ in range(100):
            data = bytearray(good)
            for _ in range(1 if with_hash else 1 + 4 * k):
                # beside anywhere in the weights: where the graph is, at the end of the file
                at = int(rng.integers(len(data) - 6000, len(data)) if k % 3 == 0 else rng.integers(len(data)))
                data[at] ^= 1 << int(rng.integers(8)) if k % 2 else int(rng.integers(1, 256))
            if with_hash or _is_another(bytes(data)):
                break
        path.write_bytes(data)

    return make


def _is_another(data: bytes) -> bool:
    """Return whether a file is no network, or computes something else; asked of Python, which no bytes can crash."""
    with np.load(OURS / 'golden.npz') as golden:
        given, expected = golden['in__obs'], golden['out__actions']
    try:
        (actions,) = ReferenceEvaluator(onnx.load_from_string(data)).run(None, {'obs': given})
    except Exception:
        return True
    return actions.shape != expected.shape or not np.abs(actions - expected).max() <= TOLERANCE


# --- contracts, networks, metadata


def _edit(path: str, value: Any) -> Make:
    def make(folder: Path, _: np.random.Generator) -> None:
        file = folder / 'policy.yaml'
        file.write_text(edited(yaml.safe_load(file.read_text()), path, value))

    return make


def _text(alter: Callable[[str], str | bytes]) -> Make:
    def make(folder: Path, _: np.random.Generator) -> None:
        file = folder / 'policy.yaml'
        text = alter(file.read_text())
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    return make


def _network(build: Callable[[], onnx.ModelProto | bytes]) -> Make:
    def make(folder: Path, _: np.random.Generator) -> None:
        _bare(folder)
        save(build(), folder / 'policy.onnx')

    return make


METADATA: dict[str, Callable[[str], str | None]] = {  # from the good contract to what the network carries
    'none': lambda text: None,
    'empty': lambda text: '',
    'not YAML': lambda text: '{[',
    'not a mapping': lambda text: '- obs',
    'null bytes': lambda text: text.replace('go2', 'go\0', 1),
    'another width': lambda text: edited(yaml.safe_load(text), 'inputs/obs/terms', [{'term': 'joint_pos_rel'}]),
    'other joints': lambda text: text.replace('_thigh_', '_hüfte_'),
    'for another robot': lambda text: text.replace('robot: go2', 'robot: spot'),
    'cyclic': lambda text: '&a [*a]',
    'a huge document': lambda text: text + 'contacts: [' + 'foot, ' * 10_000 + ']\n',
}  # fmt: skip


def _metadata(alter: Callable[[str], str | None]) -> Make:
    def make(folder: Path, _: np.random.Generator) -> str:
        contract = yaml.safe_load((folder / 'policy.yaml').read_text()) | {'golden': None, 'novelty': None}
        text = alter(yaml.safe_dump(contract, sort_keys=False))
        made = onnx.load(str(folder / 'policy.onnx'))
        del made.metadata_props[:]
        if text is not None:
            made.metadata_props.add(key='sim2real.contract', value=text)
        single = folder / 'single.onnx'
        save(made, single)
        return str(single)

    return make


# --- weights in a file of their own


def _sidecar(location: str, beside: bytes | None = None, **entry: int) -> Make:
    def make(folder: Path, _: np.random.Generator) -> None:
        _bare(folder)
        (folder.parent / 'weights.bin').write_bytes(bytes(4096))
        if beside is not None:
            (folder / 'policy.onnx.data').write_bytes(beside)
        outside(folder / 'policy.onnx', location, **entry)

    return make


def _linked_sidecar(folder: Path, rng: np.random.Generator) -> None:
    (folder / 'policy.onnx.data').symlink_to('/dev/zero')
    _sidecar('policy.onnx.data')(folder, rng)


SIDECARS: dict[str, Make] = {
    'missing': _sidecar('policy.onnx.data'),
    'truncated': _sidecar('policy.onnx.data', bytes(100)),
    'empty': _sidecar('policy.onnx.data', b''),
    'a pointer': _sidecar('policy.onnx.data', POINTER),
    'outside the folder': _sidecar('../weights.bin'),
    'of the system': _sidecar('/etc/passwd'),
    'a device': _sidecar('/dev/zero'),
    'linked to a device': _linked_sidecar,
    'beyond the end': _sidecar('policy.onnx.data', bytes(2256), offset=10**12),
    'of negative length': _sidecar('policy.onnx.data', bytes(2256), offset=0, length=-1),
    'of a huge length': _sidecar('policy.onnx.data', bytes(2256), length=10**18),
}


# --- the files themselves


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _socket(path: Path) -> None:
    path.unlink()
    old = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may have 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(old)


def _unreadable(folder: Path, rng: np.random.Generator) -> None:
    (folder / 'policy.onnx').chmod(0)
    if os.access(folder / 'policy.onnx', os.R_OK):  # root reads everything: break it in another way
        (folder / 'policy.onnx').unlink()


def _on(file: str, do: Callable[[Path], Any]) -> Make:
    def make(folder: Path, _: np.random.Generator) -> str:
        if file == 'policy.onnx':
            _without_hash(folder)
        do(folder / file)
        return str(folder / 'policy.yaml')  # the folder would mean the contract in the network, were this one no file

    return make


def _passed(text: str) -> Make:
    return lambda folder, rng: text.format(folder=folder)


def _made(name: str, do: Callable[[Path], Any]) -> Make:
    def make(folder: Path, _: np.random.Generator) -> str:
        do(folder / name)
        return str(folder / name)

    return make


def _loop_of_links(path: Path) -> None:
    path.symlink_to(path.with_name('there'))
    path.with_name('there').symlink_to(path)


def _emptied(folder: Path, _: np.random.Generator) -> None:
    for file in folder.iterdir():
        file.unlink()


FILES: dict[str, Make] = {
    'an unreadable network': _unreadable,
    'an empty folder': _emptied,
    'a name that is nowhere': _passed('no_such_policy'),
    'no name': _passed(''),
    'a name of spaces': _passed('   '),
    'a name beyond the longest': _passed('p' * 5000),
    'a path beyond the longest': _passed('/'.join(['p' * 200] * 40)),
    'the home of nobody': _passed('~nobody_at_all/policy.onnx'),
    'an option': _passed('--help'),
    'braces': _passed('{{0.__class__}}'),
    'an emoji': _passed('🐕'),
    'a device': _passed('/dev/zero'),
    'a terminal': _passed('/dev/tty'),
    'a folder of the system': _passed('/proc'),
    'another kind of file': _passed('{folder}/CARD.md'),
    'the archive': _passed('{folder}/golden.npz'),
    'below a file': _passed('{folder}/policy.onnx/policy.yaml'),
    'a loop of links': _made('loop', _loop_of_links),
    'a pipe': _made('pipe.onnx', os.mkfifo),
    'an empty ONNX file': _made('empty.onnx', Path.touch),
    'a text as ONNX': _made('text.onnx', lambda path: path.write_text('hello ' * 1000)),
    'a page as ONNX': _made('page.onnx', lambda path: path.write_text('<!DOCTYPE html><html>404: Not Found</html>')),
    'a pointer as ONNX': _made('pointer.onnx', lambda path: path.write_bytes(POINTER)),
    'a pointer as contract': _on('policy.yaml', lambda path: path.write_bytes(POINTER)),
    **{
        f'{what} as {file}': _on(file, do)
        for file in ('policy.onnx', 'policy.yaml', 'golden.npz', 'statistics.npz')
        for what, do in {
            'nothing': Path.unlink,
            'an empty file': lambda path: path.write_bytes(b''),
            'a pointer of LFS': lambda path: path.write_bytes(POINTER),
            'a directory': _directory,
            'a pipe': lambda path: _replace(path, os.mkfifo),
            'a socket': _socket,
            'a link to itself': lambda path: _replace(path, lambda p: p.symlink_to(p.name)),
            'a link to nothing': lambda path: _replace(path, lambda p: p.symlink_to('nowhere')),
            'a link to a device': lambda path: _replace(path, lambda p: p.symlink_to('/dev/zero')),
            'noise': lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
        }.items()
    },
}  # fmt: skip


# --- golden vectors and statistics

Arrays = dict[str, np.ndarray]


def _every(alter: Callable[[np.ndarray], Any]) -> Callable[[Arrays], dict[str, Any]]:
    """Alter every array of numbers."""
    return lambda data: {name: alter(a) if a.dtype.kind == 'f' and a.ndim else a for name, a in data.items()}


def _with_nan(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flat[0] = np.nan
    return values


ARCHIVES: dict[str, Callable[[Arrays], dict[str, Any]]] = {
    'of NaN': _every(_with_nan),
    'of another network': _every(lambda a: a[..., ::-1] + 1.0 if a.shape[-1] == 12 else a[..., :-1]),
    'of strings': _every(lambda a: a.astype(str)),
    'of objects': _every(lambda a: a.astype(object)),  # pickled
    'of complex numbers': _every(lambda a: a + 1j),
    'without arrays': lambda data: {},
    'without rows': _every(lambda a: a[:0]),
    'with another axis': _every(lambda a: a[..., None, None]),
}


def _bomb(path: Path) -> None:
    """Say that an array has 1e15 numbers."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {'descr': '<f8', 'fortran_order': False, 'shape': (10**15,)})
    with zipfile.ZipFile(path, 'w') as archive:
        for name in ('in__obs', 'out__actions', 'version', 'mean'):
            archive.writestr(f'{name}.npy', header.getvalue() + bytes(64))


def _inflating(path: Path) -> None:
    """Compress 8 GB of zeros a thousand times."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {'descr': '<f8', 'fortran_order': False, 'shape': (2**30,)})
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ('in__obs', 'version'):
            archive.writestr(f'{name}.npy', header.getvalue() + bytes(1 << 27))


def _rotten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(100, len(data), 200):
        data[at] ^= 0xFF
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    'with a shape of 1e15': _bomb,
    'that inflates': _inflating,
    'with rotten bytes': _rotten,
    'cut in half': lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
}


def _npz(alter: Callable[[Arrays], dict[str, Any]]) -> Callable[[Path], Any]:
    def do(path: Path) -> None:
        with np.load(path) as archive:
            data = dict(archive)
        np.savez(path, **alter(data))

    return do
