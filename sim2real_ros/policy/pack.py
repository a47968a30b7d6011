# SPDX-License-Identifier: Apache-2.0
"""One file that is the whole policy: an ONNX with contract, golden vectors and weights inside, and nothing of this machine."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.attachments import (
    EMBEDDED,
    GOLDEN_KEY,
    METADATA_KEY,
    MOTION_KEY,
    PASSPORT_KEY,
    attached_text,
)
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DependencyError, ModelFileError
from sim2real_ros.policy.identity import network_identity
from sim2real_ros.policy.runner import PolicyRunner
from sim2real_ros.validation.admission import valid_passport


def pack(policy: str, out: Path) -> Contract:
    """Write a policy into one ONNX file; returns its contract as read back and run once.

    Other metadata of the network and every doc string are dropped: exporters leave paths and names of people there.
    Statistics of the novelty monitor stay behind. A passport that fits the policy goes along: what the network computes is
    the same, so it is issued again for the file as it is written here.

    Raises:
        DependencyError: the package onnx is not installed.
        Sim2RealError: the policy has faults, or what was written does not run.
    """
    onnx = _import_onnx()
    contract = load_contract(policy)
    PolicyRunner(contract)
    assert contract.model_path is not None
    assert contract.folder is not None
    try:
        model = onnx.load(str(contract.model_path))  # external data come along
    except Exception as error:  # onnx and protobuf raise classes of their own
        raise ModelFileError(f'cannot read the network {contract.model_path}: {error}') from None
    document = contract.file.model_dump(mode='json', by_alias=True)
    document |= {'model': {'file': out.name}, 'novelty': None}
    entries = _attach(contract, document)
    entries[METADATA_KEY] = yaml.safe_dump(document, sort_keys=False)
    passport = valid_passport(contract)
    del model.metadata_props[:]
    model.doc_string = model.graph.doc_string = ''
    for node in model.graph.node:
        node.doc_string = ''
    out.write_bytes(model.SerializeToString())
    if passport is not None:
        entries[PASSPORT_KEY] = passport.model_copy(update={'network': network_identity(out)}).to_json(indent=None)
    for key, value in entries.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    out.write_bytes(model.SerializeToString())
    packed = load_contract(out)
    PolicyRunner(packed)
    return packed


def _attach(contract: Contract, document: dict[str, Any]) -> dict[str, str]:
    """Return the files that a contract names as metadata, and name them so in the document.

    Raises:
        ModelFileError: one of them is not there.
    """
    entries, motion = {}, contract.file.motion
    try:
        if contract.file.golden is not None:
            document['golden'] = EMBEDDED
            entries[GOLDEN_KEY] = attached_text(contract, contract.file.golden, GOLDEN_KEY)
        if motion is not None and motion.file is not None:
            document['motion']['file'] = EMBEDDED
            entries[MOTION_KEY] = attached_text(contract, motion.file, MOTION_KEY)
    except (OSError, ValueError) as error:
        raise ModelFileError(f'cannot read what {contract.source} names: {error}') from None
    return entries


def _import_onnx() -> ModuleType:
    try:
        import onnx  # noqa: PLC0415 - optional
    except (ImportError, SystemError) as error:  # the second where it was built for another NumPy
        raise DependencyError(f'packing needs the package onnx ({error}): pip install onnx') from None
    return onnx
