# SPDX-License-Identifier: Apache-2.0
"""YAML with Python tags, read without executing anything: slices, tuples and numpy scalars are data, all else is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.paths import read_file
from sim2real_ros.strict_yaml import StrictLoader

PYTHON = 'tag:yaml.org,2002:python/'
APPLY = f'{PYTHON}object/apply:'
MAX_BYTES = 20_000_000


class InertLoader(StrictLoader):
    """The strict loader, which besides knows the Python tags that trainers leave in their files."""

    def refuse(self, suffix: str, node: yaml.Node) -> Any:
        """Raise ConstructorError: the tag would have Python run something."""
        raise yaml.constructor.ConstructorError(
            None, None, f'the tag !!python/{suffix} asks to run Python code: refused; slice, tuple and numpy scalars are read',
            node.start_mark,
        )  # fmt: skip


def load_inert(path: Path) -> Any:
    """Read a YAML file of a trainer.

    Raises:
        NotFoundError: it does not exist or cannot be read.
        DocumentError: it is not YAML, or holds a tag that would run code.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DocumentError(str(path), [f'is larger than {MAX_BYTES // 1_000_000} MB; this is no configuration'])
        text = read_file(path).decode('utf-8-sig')
    except UnicodeDecodeError:
        raise DocumentError(str(path), ['this is not a text file; a YAML file is expected here']) from None
    except OSError as error:
        raise NotFoundError(f'cannot read {path}: {error.strerror}') from None
    return parse_inert(text, str(path))


def parse_inert(text: str, source: str) -> Any:
    """Parse YAML text; `source` names it in errors."""
    try:
        return yaml.load(text, Loader=InertLoader)
    except RecursionError:
        raise DocumentError(source, ['not valid YAML: nested too deeply']) from None
    except Exception as error:  # besides YAMLError whatever a constructor raises on a value that it cannot read
        raise DocumentError(source, [f'not valid YAML: {" ".join(str(error).split())}']) from None


def _sequence(loader: InertLoader, node: yaml.Node) -> list[Any]:
    """Return the arguments of a tag, as a list."""
    if not isinstance(node, yaml.SequenceNode):
        raise yaml.constructor.ConstructorError(None, None, f'a list is expected after {node.tag}', node.start_mark)
    return loader.construct_sequence(node, deep=True)


def _slice(loader: InertLoader, node: yaml.Node) -> slice:
    return slice(*_sequence(loader, node))


def _dtype(loader: InertLoader, node: yaml.Node) -> str:
    """Return the name of a number type; what else a dtype can hold is not read."""
    if isinstance(node, yaml.MappingNode):
        name = loader.construct_mapping(node, deep=True).get('args', [''])[0]
    else:
        name = _sequence(loader, node)[0]
    if np.dtype(name).kind not in 'biuf':
        raise yaml.constructor.ConstructorError(None, None, f'{name!r} is not a type of numbers', node.start_mark)
    return str(name)


def _scalar(loader: InertLoader, node: yaml.Node) -> Any:
    name, data = _sequence(loader, node)
    return np.frombuffer(data, np.dtype(name).newbyteorder('<'), 1)[0].item()


InertLoader.add_constructor(f'{PYTHON}tuple', _sequence)
InertLoader.add_constructor(f'{APPLY}builtins.slice', _slice)
InertLoader.add_constructor(f'{APPLY}numpy.dtype', _dtype)
for module in ('core', '_core'):
    InertLoader.add_constructor(f'{APPLY}numpy.{module}.multiarray.scalar', _scalar)
InertLoader.add_multi_constructor(PYTHON, InertLoader.refuse)
