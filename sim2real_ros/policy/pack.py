# SPDX-License-Identifier: Apache-2.0
"""One file that is the whole policy: an ONNX with contract, golden vectors and weights inside, and nothing of this machine."""

from __future__ import annotations

import base64
from pathlib import Path
from types import ModuleType

import yaml

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.load import EMBEDDED, GOLDEN_KEY, METADATA_KEY
from sim2real_ros.errors import DependencyError, ModelFileError
from sim2real_ros.policy.runner import PolicyRunner


def pack(policy: str, out: Path) -> Contract:
    """Write a policy into one ONNX file; returns its contract as read back and run once.

    Other metadata of the network and every doc string are dropped: exporters leave paths and names of people there.
    Statistics of the novelty monitor stay behind.

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
    document = contract.file.model_dump(mode='json', by_alias=True, exclude_none=True)
    document |= {'model': {'file': out.name}, 'novelty': None, 'golden': None}
    entries = {}
    if contract.file.golden is not None:
        document['golden'] = EMBEDDED
        entries[GOLDEN_KEY] = golden_text(contract)
    entries[METADATA_KEY] = yaml.safe_dump(document, sort_keys=False)
    del model.metadata_props[:]
    for key, value in entries.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    model.doc_string = model.graph.doc_string = ''
    for node in model.graph.node:
        node.doc_string = ''
    out.write_bytes(model.SerializeToString())
    packed = load_contract(out)
    PolicyRunner(packed)
    return packed


def golden_text(contract: Contract) -> str:
    """Return the golden vectors as text for the metadata."""
    from sim2real_ros.policy.golden import golden_bytes  # noqa: PLC0415

    return base64.b64encode(golden_bytes(contract)).decode('ascii')


def _import_onnx() -> ModuleType:
    try:
        import onnx  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'packing needs the package onnx ({error}): pip install onnx') from None
    return onnx
