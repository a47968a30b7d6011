# SPDX-License-Identifier: Apache-2.0
"""Metadata of an ONNX file: comma-separated values with all faults in one message, and what rounding cost them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.network import as_onnx, tensors
from sim2real_ros.contract.importers.sources import MISSING, find_network, to_number
from sim2real_ros.errors import DocumentError, Sim2RealError

DECIMALS = 3


def metadata_of(source: Path) -> dict[str, str]:
    """Return the metadata of an ONNX file, or of the only one in a folder; {} for whatever else it is. For `detect`."""
    found = [source] if source.is_file() else sorted(source.glob('*.onnx'))
    if len(found) != 1 or found[0].suffix != '.onnx':
        return {}
    try:
        return tensors(found[0]).metadata
    except Sim2RealError:
        return {}


def network_of(source: Path, hints: Hints) -> Path:
    """Return the network as ONNX: what the user gave, the source itself, or the only one in it.

    Raises:
        DocumentError: there is none, or several.
        ModelFileError: it cannot be read.
    """
    if hints.network is None and source.is_file():
        return as_onnx(source, hints)
    return find_network(None, [source if source.is_dir() else source.parent], hints, str(source))


class Csv:
    """Comma-separated values by key; what is missing or wrong is collected and told at once."""

    def __init__(self, data: dict[str, str], source: str) -> None:
        self.data, self.source = data, source
        self.faults: list[str] = []

    def fault(self, key: str, message: str) -> None:
        """Collect a fault."""
        line = f'metadata {key}: {message}'
        if line not in self.faults:
            self.faults.append(line)

    def raise_faults(self) -> None:
        """Raise DocumentError if there are any faults."""
        if self.faults:
            raise DocumentError(self.source, self.faults)

    def names(self, key: str, default: Any = MISSING) -> list[str]:
        """Return a list of names."""
        text = self.data.get(key)
        if text is None:
            if default is MISSING:
                self.fault(key, 'is missing')
            return [] if default is MISSING else default
        return [part.strip() for part in text.split(',') if part.strip()]

    def numbers(self, key: str, count: int, default: Any = MISSING) -> list[float]:
        """Return `count` numbers; one number stands for as many equal ones."""
        if key not in self.data and default is not MISSING:
            return list(default)
        parts = self.names(key)
        values = [to_number(part) for part in parts]
        if any(value is None for value in values):
            self.fault(key, f'numbers are expected, not {self.data.get(key, "")[:60]!r}')
        elif len(values) == 1:
            values *= count
        elif len(values) != count and key in self.data:
            self.fault(key, f'has {len(values)} numbers, {count} are expected')
        numbers = [0.0 if value is None else value for value in values]
        return numbers if len(numbers) == count else [0.0] * count

    def integers(self, key: str, count: int, default: int) -> list[int]:
        """Return `count` whole numbers, which may be written as 5.000."""
        values = self.numbers(key, count, [float(default)] * count)
        if any(value != int(value) or not 0 <= value <= 1000 for value in values):
            self.fault(key, f'whole numbers from 0 to 1000 are expected, not {self.data.get(key, "")[:60]!r}')
            return [default] * count
        return [int(value) for value in values]

    def flags(self, key: str, count: int) -> list[bool]:
        """Return `count` truth values, which may be written as True or 1.000; true when the key is missing."""
        parts = self.names(key, ['True'] * count)
        if len(parts) != count:
            self.fault(key, f'has {len(parts)} values, {count} are expected')
        return [part.lower() not in ('false', '0', '0.000') for part in parts]

    def clips(self, key: str, count: int) -> list[list[float] | None]:
        """Return `count` pairs [low, high] or None, written as `[-inf, inf],...`, `-inf;inf,...` or None."""
        text = self.data.get(key)
        if text is None:
            return [None] * count
        pairs = text.replace('(', '[').replace(')', ']')
        parts = [part.strip(' [,') for part in pairs.split(']') if part.strip(' [,')] if '[' in pairs else pairs.split(',')
        if len(parts) != count:
            self.fault(key, f'has {len(parts)} pairs, {count} are expected')
            return [None] * count
        return [self._pair(key, part) for part in parts]

    def _pair(self, key: str, text: str) -> list[float] | None:
        if text.strip().lower() in ('none', 'null', ''):
            return None
        try:
            low, high = (float(part) for part in text.replace(';', ',').split(','))
        except ValueError:
            self.fault(key, f'a pair of numbers is expected, not {text[:40]!r}')
            return None
        bound = 1e30  # stands for no bound on this side: a contract has finite numbers
        return None if max(-low, high) >= bound and min(-low, high) >= bound else [max(low, -bound), min(high, bound)]


def note_decimals(imported: Imported, fields: dict[str, Sequence[float]]) -> None:
    """Record for each field that its numbers are rounded to three decimals, and by how much they may be off."""
    for path, values in fields.items():
        smallest = min((abs(value) for value in values if value), default=0.0)
        if not smallest or any(abs(round(value, DECIMALS) - value) > 1e-9 for value in values):
            continue
        worst = 100 * 0.5 * 10**-DECIMALS / smallest
        why = f'the exporter rounds to {DECIMALS} decimals: true numbers differ by up to 0.0005, {worst:.2g} % of the smallest'
        imported.assume(path, 'as written, rounded', why, put=False)
