# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers in some joint order, as the tables by name that a contract has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def significant_digits(value: float) -> int:
    """Return how many significant digits a number has as written: 3 for 40.2, 1 for 100.0, 0 for 0."""
    return len(f'{abs(value):.12g}'.split('e')[0].replace('.', '').strip('0'))


def note_rounding(imported: Imported, fields: Mapping[str, Sequence[float]], source: str) -> None:
    """Record that numbers look rounded: to 3 significant digits, or typed by hand with 2.

    Args:
        imported: receives an assumption for each field that is rounded.
        fields: values by path of the contract.
        source: who rounds.
    """
    for path, values in fields.items():
        error = rounding_error([value for value in values if value])
        if error is not None:
            why = f'{source}; the numbers look rounded, so the true ones differ by up to {100 * error:.2g} %'
            imported.assume(path, 'as written, rounded', why, put=False)


def rounding_error(values: Sequence[float]) -> float | None:
    """Return by how much the true numbers may differ, as a share; None where numbers do not look rounded.

    Rounded are numbers of at most 3 digits, some of which have all three, and three or more different ones of at most 2
    digits that are no multiples of 5 in the last: 0.55, 0.44, 0.07.
    """
    digits = max((significant_digits(value) for value in values), default=0)
    if digits == 3:
        return max(0.5 * 10.0 ** (_exponent(value) - 2) / abs(value) for value in values)
    odd = [
        value for value in values if significant_digits(value) == 2 and round(abs(value) / 10.0 ** (_exponent(value) - 1)) % 5
    ]
    if digits == 2 and len(set(values)) >= 3 and odd:
        decimals = max(len(f'{value:.12g}'.partition('.')[2]) for value in values)
        return max(0.5 * 10.0**-decimals / abs(value) for value in values)
    return None


def _exponent(value: float) -> int:
    return int(f'{abs(value):e}'.split('e')[1])
