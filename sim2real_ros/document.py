# SPDX-License-Identifier: Apache-2.0
"""YAML files checked against a pydantic schema, every fault in one message."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.paths import read_file
from sim2real_ros.strict_yaml import StrictLoader


class Section(BaseModel):
    """Base of every part of a document: unknown keys are refused, numbers must be finite, nothing is guessed."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=())


Document = TypeVar('Document', bound=Section)


def read_yaml(path: Path) -> Any:
    """Read a YAML file with the safe loader.

    Raises:
        NotFoundError: the file does not exist or cannot be read.
        DocumentError: it is not YAML, or not text.
    """
    try:
        text = read_file(path).decode('utf-8-sig')
    except UnicodeDecodeError:
        raise DocumentError(str(path), ['this is not a text file; a YAML file is expected here']) from None
    except OSError as error:
        raise NotFoundError(f'cannot read {path}: {error.strerror}') from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str) -> Any:
    """Parse YAML or JSON text; `source` names it in errors."""
    try:
        if text.startswith('{'):
            try:
                # YAML would read JSON's \ud83d\ude00 as two broken characters, not as one
                return json.loads(text, object_pairs_hook=_once)
            except json.JSONDecodeError:
                pass  # a YAML mapping in flow style
        return yaml.load(text, Loader=StrictLoader)
    except RecursionError:
        raise DocumentError(source, ['not valid YAML: nested too deeply']) from None
    except Exception as error:  # besides YAMLError whatever a tag's constructor raises on a value that it cannot read
        raise DocumentError(source, [f'not valid YAML: {" ".join(str(error).split())}']) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raises ValueError on a key that occurs twice."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = sorted(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f'the key {", ".join(twice)} occurs twice')
    return table


def validate(schema: type[Document], data: Any, source: str) -> Document:
    """Check parsed YAML against a schema.

    Raises:
        DocumentError: with one line per fault, each with its path in the file.
    """
    if not isinstance(data, dict):
        raise DocumentError(source, [f'a mapping with the keys {_keys(schema)} is expected'])
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        raise DocumentError(source, [_fault(item, schema, data) for item in error.errors()]) from None


def _keys(schema: type[BaseModel]) -> str:
    return ', '.join(field.alias or name for name, field in schema.model_fields.items())


def _fault(item: Any, schema: type[BaseModel], data: Any) -> str:
    kind, message = item['type'], item['msg']
    path = '.'.join(_path(item['loc'], data, kind == 'missing')) or 'document'
    if kind == 'missing':
        message = 'is missing; it has no default'
    elif kind == 'extra_forbidden':
        message = 'is not a known key'
        if len(item['loc']) == 1:
            message += f'; known keys are {_keys(schema)}'
    else:
        given = item.get('input')
        message = message.removeprefix('Value error, ')
        if isinstance(given, (str, int, float, bool)):
            message += f' (got {given!r})'
    return f'{path}: {message}'


def _path(loc: tuple[int | str, ...], data: Any, missing: bool) -> list[str]:
    """Return the parts of a location that stand in the file; pydantic adds marks for the branches of a union."""
    path = []
    for i, part in enumerate(loc):
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]  # type: ignore[index]
        elif not (missing and i == len(loc) - 1):
            continue
        path.append(str(part))
    return path
