# SPDX-License-Identifier: Apache-2.0
"""Keys of a foreign YAML file: numbers, lists and names, with all faults in one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim2real_ros.errors import DocumentError

MISSING = object()
MAX_WHOLE = 10_000  # joints, frames, numbers: more is a mistake


class Keys:
    """A mapping of a foreign YAML file; what is missing or of a wrong type is collected and told at once.

    Attributes:
        data: the mapping.
        source: the file, for messages.
        faults: one line per fault, with the path of the key.
        where: path of the mapping in the file.
    """

    def __init__(self, data: Any, source: str, where: str = '', faults: list[str] | None = None) -> None:
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        self.source, self.where = source, where
        self.faults: list[str] = [] if faults is None else faults
        if not isinstance(data, dict):
            self.fault('', f'a mapping is expected, not {_kind(data)}')

    def __contains__(self, key: str) -> bool:
        return self.data.get(key) is not None

    def fault(self, key: str, message: str) -> None:
        """Collect a fault."""
        self.faults.append(f'{".".join(part for part in (self.where, key) if part) or "document"}: {message}')

    def raise_faults(self) -> None:
        """Raise DocumentError if there are any faults."""
        if self.faults:
            raise DocumentError(self.source, self.faults)

    def below(self, key: str) -> Keys:
        """Return a mapping under a key."""
        where = f'{self.where}.{key}' if self.where else key
        value = self.data.get(key)
        if value is None:
            self.fault(key, 'is missing')
            value = {}
        return Keys(value, self.source, where, self.faults)

    def number(self, key: str, default: Any = MISSING) -> float:
        """Return a number; 1e-3 without a dot, which YAML takes for text, is one too."""
        value = self._get(key, default)
        number = to_number(value)
        if number is not None:
            return number
        if value is default and default is not MISSING:
            return default
        if value is not MISSING:
            self.fault(key, f'a number is expected, not {_kind(value)}')
        return float('nan')

    def numbers(self, key: str, count: int | None = None, default: Any = MISSING) -> list[float]:
        """Return a list of numbers, `count` of them even where the list is wrong; one number stands for `count` equal ones."""
        value = self._get(key, default)
        wrong = [0.0] * (count or 0)
        if value is default:
            return wrong if default is MISSING else default
        if count is not None and to_number(value) is not None:
            value = [value] * count
        numbers = [to_number(part) for part in value] if isinstance(value, list) else [None]
        found = [number for number in numbers if number is not None]
        if len(found) != len(numbers):
            self.fault(key, f'a list of numbers is expected, not {_kind(value)}')
        elif count is not None and len(found) != count:
            self.fault(key, f'has {len(found)} numbers, {count} are expected')
        else:
            return found
        return wrong

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a whole number; 0 where there is none, which is a fault unless there is a default."""
        number = to_number(self.data.get(key)) if key in self else default
        if number is None or number != int(number) or abs(number) > MAX_WHOLE:
            self.fault(key, 'is missing' if key not in self else f'a whole number is expected, not {_kind(self.data[key])}')
            return 0
        return int(number)

    def indices(self, key: str, below: int | None = None, default: Sequence[int] | None = None) -> list[int]:
        """Return a list of different whole numbers from 0, all below a bound; empty where the list is wrong."""
        numbers = self.numbers(key, None, MISSING if default is None else list(default))
        wrong = [number for number in numbers if not 0 <= number < (below or MAX_WHOLE) or number != int(number)]
        if wrong:
            bound = '' if below is None else f' to {below - 1}'
            self.fault(key, f'whole numbers from 0{bound} are expected, not {wrong[0]:g}')
        elif len(set(numbers)) != len(numbers):
            self.fault(key, 'a number occurs twice')
        else:
            return [int(number) for number in numbers]
        return []

    def names(self, key: str, default: Any = MISSING) -> list[str]:
        """Return a list of texts."""
        value = self._get(key, default)
        if value is default:
            return [] if default is MISSING else default
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            self.fault(key, f'a list of names is expected, not {_kind(value)}')
            return []
        return value

    def _get(self, key: str, default: Any) -> Any:
        value = self.data.get(key)
        if value is None:
            if default is MISSING:
                self.fault(key, 'is missing')
            return default
        return value


def to_number(value: Any) -> float | None:
    """Return a finite number, or None for what is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float('inf') else None


def _kind(value: Any) -> str:
    text = f'{type(value).__name__} {str(value)[:60]!r}'
    return 'nothing' if value is None else text
