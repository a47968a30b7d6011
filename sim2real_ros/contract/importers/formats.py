# SPDX-License-Identifier: Apache-2.0
"""The formats, one line each, and which of them a source is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.sources import unreadable
from sim2real_ros.errors import FormatError

FORMATS: dict[str, str] = {  # name of the format: module of this folder
    'unitree_rl_lab': 'unitree_rl_lab',
    'rl_sar': 'rl_sar',
    'unitree_rl_gym': 'unitree_rl_gym',
    'berkeley_humanoid_lite': 'berkeley',
    'legged_rl_deploy': 'legged_rl_deploy',
    'mjlab': 'mjlab',  # and whole_body_tracking, legged_control2
    'holosoma': 'holosoma',
    'io_descriptors': 'io_descriptors',
    'isaac_lab_env': 'env_yaml',
    'playground': 'playground',
    'kinfer': 'kinfer',
}


class Format(Protocol):
    """What a module of a format has."""

    NEEDS: str
    detect: Callable[[Path], float]
    read: Callable[[Path, Hints], Imported]


def format_named(name: str) -> Format:
    """Return the module of a format.

    Raises:
        FormatError: there is none of this name.
    """
    if name not in FORMATS:
        raise FormatError(f'--format {name}: there is no such format; known are auto, {", ".join(FORMATS)}')
    return cast(Format, importlib.import_module(f'sim2real_ros.contract.importers.{FORMATS[name]}'))


def detect_format(source: Path) -> str:
    """Return the name of the format that a source is most likely of.

    Raises:
        FormatError: of none, or as likely of two; the message says what each format needs.
    """
    scores = {name: format_named(name).detect(source) for name in FORMATS}
    best = max(scores.values(), default=0.0)
    if best <= 0:
        raise FormatError(f'{source} is of no format that can be imported:\n{_needs()}{unreadable(source)}')
    first = [name for name, score in scores.items() if score == best]
    if len(first) > 1:
        raise FormatError(f'{source} looks like {" and ".join(first)}; say which with --format')
    return first[0]


def _needs() -> str:
    return '\n'.join(f'  - {name}: {format_named(name).NEEDS}' for name in FORMATS)
