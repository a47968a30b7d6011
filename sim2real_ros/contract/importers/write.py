# SPDX-License-Identifier: Apache-2.0
"""A contract as clean YAML: what was read, without defaults, short lists in one line."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from sim2real_ros.contract.load import read_model
from sim2real_ros.contract.schema import ContractFile

WIDTH = 110


class _Dumper(yaml.SafeDumper):
    """Writes lists and mappings of plain values in one line, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True


def _list(dumper: _Dumper, data: list[Any]) -> yaml.Node:
    return dumper.represent_sequence('tag:yaml.org,2002:seq', data, flow_style=all(_plain(value) for value in data))


def _dict(dumper: _Dumper, data: dict[str, Any]) -> yaml.Node:
    numbers = len(data) > 1 and all(isinstance(value, (int, float)) for value in data.values())
    flow = numbers or (all(_plain(value) for value in data.values()) and len(str(data)) < 100)
    return dumper.represent_mapping('tag:yaml.org,2002:map', data, flow_style=flow)


_Dumper.add_representer(list, _list)
_Dumper.add_representer(dict, _dict)


def write_contract(file: ContractFile, path: Path) -> None:
    """Write a contract to a YAML file beside its network, policy.onnx, whose hash it states."""
    actual = hashlib.sha256(read_model(path.parent / 'policy.onnx')).hexdigest()
    path.write_text(contract_yaml(file, actual), encoding='utf-8')


def contract_yaml(file: ContractFile, sha256: str | None = None) -> str:
    """Return a contract as YAML text."""
    data = file.model_dump(mode='json', by_alias=True, exclude_unset=True)
    for name in ('default_position', 'stiffness', 'damping'):
        data[name] = shortened(data[name])
    data['model'] = {'file': 'policy.onnx'} | ({'sha256': sha256} if sha256 else {})
    ordered = {field.alias or key: data[field.alias or key] for key, field in ContractFile.model_fields.items()
               if (field.alias or key) in data}  # fmt: skip
    return yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)


def shortened(table: dict[str, float]) -> dict[str, float]:
    """Return a table by joint, as one entry where every joint has the same value."""
    values = set(table.values())
    return {'.*': values.pop()} if len(values) == 1 else table


def _plain(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 8 and all(not isinstance(part, (list, dict)) for part in value)
    return not isinstance(value, dict)
