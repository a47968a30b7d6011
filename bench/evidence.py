# SPDX-License-Identifier: Apache-2.0
"""Figures as Markdown, put between two marks of a document: `<!-- name -->` ... `<!-- /name -->`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sim2real_ros.errors import OutputError


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ['---'] * len(header), *rows]
    return '\n'.join('| ' + ' | '.join(cell.replace('|', '\\|') for cell in line) + ' |' for line in lines)


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks `name` of a document.

    Raises:
        OutputError: the document has no such marks.
    """
    begin, end = f'<!-- {name} -->\n', f'<!-- /{name} -->'
    document = path.read_text(encoding='utf-8') if path.is_file() else ''
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise OutputError(f'--markdown: {path} has no lines {begin.strip()} and {end}')
    path.write_text(f'{before}{begin}\n{text.strip()}\n\n{end}{after}', encoding='utf-8')


def machine() -> str:
    """Return what a reader must know of the machine beside a time."""
    model = 'unknown processor'
    info = Path('/proc/cpuinfo')
    if info.is_file():
        names = [line.partition(':')[2].strip() for line in info.read_text().splitlines() if line.startswith('model name')]
        model = names[0] if names else model
    return f'{os.cpu_count()} cores, {model}'
