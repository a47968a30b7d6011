# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers in some joint order, as the tables by name that a contract has."""

from __future__ import annotations

from collections.abc import Sequence

from sim2real_ros.contract.importers.draft import Imported


def by_joint(joints: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Return a table by name of values in the order of `joints`."""
    return dict(zip(joints, values, strict=True))


def one_or_list(values: Sequence[float]) -> float | list[float]:
    """Return the number that all values are, or the list."""
    return values[0] if len(set(values)) == 1 else list(values)


def one_or_table(joints: Sequence[str], values: Sequence[float]) -> float | dict[str, float]:
    """Return the number that all values are, or a table by name."""
    return values[0] if len(set(values)) == 1 else by_joint(joints, values)


def limits(low: Sequence[float], high: Sequence[float], none_beyond: float = float('inf')) -> list[float] | None:
    """Return [low, high] that holds for all; None where they reach beyond what counts as no limit.

    Raises:
        ValueError: they differ from joint to joint.
    """
    if len(set(low)) > 1 or len(set(high)) > 1:
        raise ValueError('limits differ from joint to joint')
    return None if not low or max(-low[0], high[0]) >= none_beyond else [low[0], high[0]]


def significant_digits(value: float) -> int:
    """Return how many significant digits a number has as written: 3 for 40.2, 1 for 100.0, 0 for 0."""
    return len(f'{abs(value):.12g}'.split('e')[0].replace('.', '').strip('0'))


def note_rounding(imported: Imported, fields: dict[str, Sequence[float]], source: str) -> None:
    """Record that numbers look rounded to three digits: none has more, and some have three.

    Args:
        imported: receives an assumption for each field that is rounded.
        fields: values by path of the contract.
        source: who rounds.
    """
    for path, values in fields.items():
        if max((significant_digits(value) for value in values), default=0) != 3:
            continue
        widest = max(_half_step(value) / abs(value) for value in values if value)
        why = f'{source}: no number has more than 3 significant digits, so the true ones differ by up to {100 * widest:.2g} %'
        imported.assume(path, 'as written, rounded', why, put=False)


def _half_step(value: float) -> float:
    """Return half a unit in the third significant digit."""
    return 0.5 * 10.0 ** (int(f'{abs(value):e}'.split('e')[1]) - 2)
