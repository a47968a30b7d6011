# SPDX-License-Identifier: Apache-2.0
"""The draft of a contract, as an importer makes it: fields by path, and the assumptions among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim2real_ros.contract.schema import Assumption
from sim2real_ros.errors import FormatError


@dataclass(frozen=True)
class Hints:
    """What the user said beside the source.

    Attributes:
        workspace: a folder of its own, to unpack and convert in; it is gone after the import.
        robot: name of the robot.
        name: name of the policy.
        joints: joint names, in the order that the importer's documentation says (policy order unless stated).
        network: the network file, where the one that the source names is not meant.
        preset: name of a preset, for formats that are told by one.
        overrides: fields of the contract that the user sets, by path; applied after the importer has read.
    """

    workspace: Path
    robot: str | None = None
    name: str | None = None
    joints: tuple[str, ...] | None = None
    network: Path | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None

    def sets(self, path: str) -> bool:
        """Return whether the user sets a field, so that the importer need not complain that the source lacks it."""
        return any(path == given or path.startswith(f'{given}.') for given in self.overrides)


@dataclass
class Imported:
    """The draft of a contract.

    Attributes:
        contract: plain values in the form of a contract file, without `schema`, `model` and `assumptions`.
        network: the ONNX file.
        assumptions: what the source does not say.
        notes: sentences for the reader.
    """

    contract: dict[str, Any]
    network: Path
    assumptions: list[Assumption] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def assume(self, path: str, value: Any, source: str, *, put: bool = True) -> None:
        """Set a field that the source does not state, and say why just so.

        Args:
            path: `phase.period_s`, `inputs.obs.terms.2.scale`.
            value: plain value, as in a contract file.
            source: why it is taken: the place in the upstream code, the convention, the robot's own table.
            put: False where the draft holds the value already.
        """
        if put:
            put_field(self.contract, path, value)
        self.assumptions.append(Assumption(field=path, value=_short(value), source=source))


def put_field(tree: Any, path: str, value: Any) -> None:
    """Set `a.b.2.c` in nested dicts and lists; dicts that are missing on the way are made.

    A key that holds dots (a pattern of joint names) is taken as one where the tree has it.

    Raises:
        FormatError: the path leads into a list at an index that is not there, or below a plain value.
    """
    parts = _split(tree, path)
    for i, part in enumerate(parts[:-1]):
        tree = _child(tree, part, path, ready=parts[i + 1])
    last = parts[-1]
    if isinstance(tree, list):
        tree[_index(tree, last, path)] = value
    elif isinstance(tree, dict):
        tree[last] = value
    else:
        raise FormatError(f'--set {path}: there is no field "{last}" below the value {_short(tree)}')


def _split(tree: Any, path: str) -> list[str]:
    """Return the parts of a path; keys of the tree that hold dots stay whole."""
    parts: list[str] = []
    rest = path
    while rest:
        keys = [key for key in tree if isinstance(key, str)] if isinstance(tree, dict) else []
        fitting = [key for key in keys if rest == key or rest.startswith(f'{key}.')]
        part = max(fitting, key=len) if fitting else rest.split('.', 1)[0]
        parts.append(part)
        rest = rest[len(part) + 1 :]
        if isinstance(tree, dict):
            tree = tree.get(part)
        elif isinstance(tree, list) and part.isdecimal() and int(part) < len(tree):
            tree = tree[int(part)]
        else:
            tree = None
    return parts


def _child(tree: Any, part: str, path: str, ready: str) -> Any:
    if isinstance(tree, list):
        return tree[_index(tree, part, path)]
    if not isinstance(tree, dict):
        raise FormatError(f'--set {path}: there is no field "{part}" below the value {_short(tree)}')
    if tree.get(part) is None:
        tree[part] = {}
    return tree[part]


def _index(tree: list[Any], part: str, path: str) -> int:
    if not part.isdecimal() or int(part) >= len(tree):
        raise FormatError(f'--set {path}: "{part}" is not an index of a list of {len(tree)}, 0 to {len(tree) - 1}')
    return int(part)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f'{text[:297]}...'
