# SPDX-License-Identifier: Apache-2.0
"""Files of a source: the YAML files near, what they hold, and the network."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints
from sim2real_ros.contract.importers.inert_yaml import load_inert
from sim2real_ros.contract.importers.keys import MISSING, Keys, to_number
from sim2real_ros.contract.importers.network import as_onnx
from sim2real_ros.errors import DocumentError, FormatError, Sim2RealError

__all__ = ['MISSING', 'Keys', 'find_network', 'peek', 'single_file', 'to_number', 'unreadable', 'yaml_files']


def unreadable(source: Path) -> str:
    """Return what is wrong with the YAML files of a source that cannot be read, as lines for a message."""
    errors = [error for path in yaml_files(source) for _, error in [_loaded(path)] if error]
    return ''.join(f'\n{error}' for error in errors[:5])


def peek(path: Path) -> dict[Any, Any]:
    """Return the mapping of a YAML file, {} for whatever else it is; for `detect`, which must not change it."""
    return _loaded(path)[0]


def _loaded(path: Path) -> tuple[dict[Any, Any], str]:
    try:
        state = path.stat()
    except OSError as error:
        return {}, f'cannot read {path}: {error.strerror}'
    return _loaded_once(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _loaded_once(path: Path, _modified: int, _size: int) -> tuple[dict[Any, Any], str]:
    """Return a file's mapping and what is wrong with it; every format asks for the same files."""
    try:
        data = load_inert(path)
    except Sim2RealError as error:
        return {}, str(error)
    return data if isinstance(data, dict) else {}, ''


def yaml_files(source: Path, depth: int = 2) -> list[Path]:
    """Return the YAML files of a source: itself, or those in the folder and `depth` levels below it."""
    if source.is_file():
        return [source] if source.suffix in ('.yaml', '.yml') else []
    found = (path for level in range(depth + 1) for path in sorted(source.glob('*/' * level + '*.y*ml')))
    return [path for path in found if path.is_file()]


def single_file(found: list[Path], source: Path, needs: str) -> Path:
    """Return the only file of a format in a source.

    Raises:
        FormatError: there is none, or there are several to choose from.
    """
    if not found:
        raise FormatError(f'{source} is not what this format needs: {needs}{unreadable(source)}')
    if len(found) > 1:
        raise FormatError(f'{source} holds several policies; give one of them: {", ".join(map(str, found))}')
    return found[0]


def find_network(named: str | None, near: Iterable[Path], hints: Hints, source: str) -> Path:
    """Return the network as ONNX: what the user gave, what the source names, or the only one near.

    Args:
        named: path or file name in the source, often of another machine; its last part counts.
        near: folders to look in.
        hints: for --network and the conversion of TorchScript.
        source: for messages.

    Raises:
        DocumentError: none is there, or several and none is named.
    """
    if hints.network is not None:
        return as_onnx(hints.network, hints)
    folders = list(dict.fromkeys(folder for folder in near if folder.is_dir()))
    name = Path(named.replace('\\', '/')).name if named else None
    if name:
        for wanted in (f'{Path(name).stem}.onnx', name):  # an ONNX file of the same name needs no conversion
            for folder in folders:
                if (folder / wanted).is_file():
                    return as_onnx(folder / wanted, hints)
    for suffix in ('.onnx', '.pt'):
        found = [path for folder in folders for path in sorted(folder.glob(f'*{suffix}'))]
        if len(found) == 1:
            return as_onnx(found[0], hints)
    wanted = f'the network {name} is' if name else 'exactly one network (.onnx, .pt) is'
    raise DocumentError(source, [f'{wanted} not in {", ".join(map(str, folders))}; give it with --network FILE'])
