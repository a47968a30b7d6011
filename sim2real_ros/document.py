# SPDX-License-Identifier: Apache-2.0
"""YAML files checked against a pydantic schema, every fault in one message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from sim2real_ros.errors import DocumentError, NotFoundError


class Section(BaseModel):
    """Base of every part of a document: unknown keys are refused, numbers must be finite, nothing is guessed."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=())


class StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, which besides refuses a key that occurs twice and leaves dates as text."""

    yaml_implicit_resolvers = {
        first: [(tag, expression) for tag, expression in resolvers if tag != 'tag:yaml.org,2002:timestamp']
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raises ConstructorError on a key that occurs twice."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f'the key {", ".join(twice)} occurs twice', node.start_mark)
        return super().construct_mapping(node, deep)


Document = TypeVar('Document', bound=Section)


def read_yaml(path: Path) -> Any:
    """Read a YAML file with the safe loader.

    Raises:
        NotFoundError: the file does not exist or cannot be read.
        DocumentError: it is not YAML, or not text.
    """
    try:
        text = path.read_text(encoding='utf-8')
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
                return json.loads(text)  # YAML would read JSON's \ud83d\ude00 as two broken characters, not as one
            except json.JSONDecodeError:
                pass  # a YAML mapping in flow style
        return yaml.load(text, Loader=StrictLoader)
    except Exception as error:  # besides YAMLError whatever a tag's constructor raises on a value that it cannot read
        raise DocumentError(source, [f'not valid YAML: {" ".join(str(error).split())}']) from None


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
