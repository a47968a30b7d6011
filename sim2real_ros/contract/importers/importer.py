# SPDX-License-Identifier: Apache-2.0
"""`import_policy`: read a foreign policy, apply what the user sets, check the whole, and only then write."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.importers.draft import Hints, Imported, put_field
from sim2real_ros.contract.importers.formats import detect_format, format_named
from sim2real_ros.contract.importers.network import copy_network
from sim2real_ros.contract.importers.write import write_contract
from sim2real_ros.contract.load import load_contract
from sim2real_ros.contract.schema import Assumption, ContractFile
from sim2real_ros.document import validate
from sim2real_ros.errors import DocumentError, NotFoundError, OutputError
from sim2real_ros.paths import writable_folder


def import_policy(
    source: str | Path,
    out: str | Path,
    format: str = 'auto',  # noqa: A002 - as on the command line
    overrides: Mapping[str, Any] | None = None,
    *,
    robot: str | None = None,
    name: str | None = None,
    joints: tuple[str, ...] | None = None,
    network: str | Path | None = None,
    preset: str | None = None,
    force: bool = False,
) -> Contract:
    """Make a policy folder out of the files of another trainer.

    Args:
        source: folder or file of the policy.
        out: folder to write policy.yaml and policy.onnx into.
        format: name of the format, see `formats.FORMATS`, or `auto`.
        overrides: fields of the contract that the user sets, by path; each replaces the assumptions on it.
        robot: name of the robot.
        name: name of the policy.
        joints: joint names, where the source lacks them.
        network: the network file, where it is not the one that the source names.
        preset: name of a preset, for formats that are told by one (playground).
        force: replace a policy that is in `out` already.

    Returns:
        The contract that was written, loaded again.

    Raises:
        Sim2RealError: the source is of no known format, lacks or contradicts something, its network does not fit, or
            `out` cannot be written. Nothing is written then.
    """
    source, out = Path(source).expanduser(), Path(out).expanduser()
    if not source.exists():
        raise NotFoundError(f'{source} does not exist; give the folder or the file of the policy to import')
    if (out / 'policy.yaml').exists() and not force:
        raise OutputError(f'{out} holds a policy already; give another folder with -o, or --force')
    reader = format_named(detect_format(source) if format == 'auto' else format)
    with tempfile.TemporaryDirectory(prefix='sim2real_import_') as workspace:
        path = None if network is None else Path(network)
        hints = Hints(Path(workspace), robot, name, joints, path, overrides or {}, preset)
        imported = reader.read(source, hints)
        file = finish(imported, hints, str(source))
        check(file, imported.network, str(source))
        writable_folder(out, '-o')
        copy_network(imported.network, out)
        write_contract(file, out / 'policy.yaml')
    return load_contract(out)


def finish(imported: Imported, hints: Hints, source: str) -> ContractFile:
    """Return the contract of a draft, with the fields that the user sets and the assumptions that are left.

    Raises:
        DocumentError: fields are missing or wrong; what the user can do about the missing ones is said.
    """
    data = copy.deepcopy(imported.contract)
    for path, value in hints.overrides.items():
        put_field(data, path, value)
    data |= {'schema': 1, 'model': {'file': imported.network.name}}
    data['assumptions'] = [one.model_dump() for one in _left(imported.assumptions, hints)]
    if imported.notes and isinstance(data.get('provenance'), dict):
        own = data['provenance'].get('notes')
        data['provenance']['notes'] = ' '.join([*([own] if own else []), *imported.notes])
    try:
        return validate(ContractFile, data, source)
    except DocumentError as error:
        raise DocumentError(source, [_with_advice(fault) for fault in error.faults]) from None


def check(file: ContractFile, network: Path, source: str) -> None:
    """Expand a contract and run its network, where they lie before the copy.

    Raises:
        DocumentError: one field contradicts another.
        NetworkError: the network does not fit, or computes non-finite numbers.
    """
    from sim2real_ros.policy.runner import PolicyRunner  # noqa: PLC0415 - onnxruntime only where a network is read

    PolicyRunner(resolve(file, source, network.parent.resolve()))


def _left(assumptions: list[Assumption], hints: Hints) -> list[Assumption]:
    return [one for one in assumptions if not hints.sets(one.field)]


def _with_advice(fault: str) -> str:
    if not fault.endswith('is missing; it has no default'):
        return fault
    field = fault.split(':', 1)[0]
    return f'{field}: the source does not state it and it cannot be assumed; give it with --set {field}=VALUE'
