# SPDX-License-Identifier: Apache-2.0
"""`load_contract`: from a policy name, folder, YAML or ONNX file to a checked contract whose network file exists."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sim2real_ros.contract.attachments import EMBEDDED, GOLDEN_KEY, METADATA_KEY
from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import parse_yaml, read_yaml, validate
from sim2real_ros.errors import ModelFileError, NotFoundError
from sim2real_ros.paths import find_policy, read_file

__all__ = ['EMBEDDED', 'GOLDEN_KEY', 'METADATA_KEY', 'load_contract', 'read_model']

GIT_LFS = b'version https://git-lfs'


def load_contract(policy: str | Path) -> Contract:
    """Load a contract.

    Args:
        policy: name of a shipped policy, a folder with policy.yaml or policy.onnx, a contract YAML, or an ONNX file
            that embeds its contract (or has a YAML of the same name beside it).

    Raises:
        NotFoundError: no such policy.
        DocumentError: the contract has faults; all are listed.
        ModelFileError: the network file is missing, truncated or not what the contract's hash says.
    """
    path = find_policy(str(policy))
    if path.suffix == '.onnx':
        return _from_onnx(path)
    data = read_yaml(path)
    file = validate(ContractFile, data, str(path))
    model = path.parent / file.model.file
    return resolve(_with_hash(file, model, str(path)), str(path), path.parent)


def read_model(path: Path) -> bytes:
    """Return the bytes of an ONNX file.

    Raises:
        ModelFileError: it is missing, empty, or a Git-LFS pointer.
    """
    try:
        data = read_file(path)
    except OSError as error:
        raise ModelFileError(f'cannot read the network {path}: {error.strerror}') from None
    if data.startswith(GIT_LFS):
        raise ModelFileError(f'{path} is a Git-LFS pointer, not the network itself: run "git lfs pull" where it came from')
    if not data:
        raise ModelFileError(f'{path} is empty')
    return data


def _with_hash(file: ContractFile, model: Path, source: str) -> ContractFile:
    """Return the contract with the hash of its network, which must agree with the one it states."""
    actual = hashlib.sha256(read_model(model)).hexdigest()
    stated = file.model.sha256
    if stated is not None and stated != actual:
        raise ModelFileError(
            f'{model} is not the network that {source} describes: its sha256 starts with {actual[:12]}, the contract says '
            f'{stated[:12]}. Put the right file there, or correct model.sha256 if the contract is meant for this one.'
        )
    return file.model_copy(update={'model': file.model.model_copy(update={'sha256': actual})})


def _from_onnx(path: Path) -> Contract:
    from sim2real_ros.policy.network import read_metadata  # noqa: PLC0415 - onnxruntime only where a network is read

    text = read_metadata(path).get(METADATA_KEY)
    if text is None:
        beside = path.with_suffix('.yaml')
        if beside.is_file():
            return load_contract(beside)
        raise NotFoundError(
            f'{path} has no contract: neither the metadata key {METADATA_KEY} nor {beside.name} beside it. '
            'A contract says in which order and scale the network expects its numbers; docs/contract.md has the format.'
        )
    source = f'{path} [{METADATA_KEY}]'
    data = parse_yaml(text, source)
    if isinstance(data, dict) and isinstance(data.get('model'), dict):
        data['model'] = {'file': path.name}  # a file cannot hold its own hash
    file = validate(ContractFile, data, source)
    return resolve(_with_hash(file, path, source), source, path.parent)
