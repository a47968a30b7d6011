# SPDX-License-Identifier: Apache-2.0
"""Joint orders, matched by name, once.

A robot has at least three joint orders: the policy's, the driver's command order and whatever the last joint-state
message used. Nothing in this package copies joint values by position between two of them; it asks a `JointMap`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_ros.errors import JointError


class JointMap:
    """Picks the joints of one order out of another.

    `target = source[..., index]`, where `source` is in the order `source_names` and `target` in `target_names`.

    Attributes:
        target_names: joint names of the result, in order.
        index: (n,) positions of the target joints in the source order.
        identity: True when both orders are the same, so that nothing needs to be copied.

    Raises:
        JointError: a target joint is missing from the source or a name occurs twice; with `exact`, also when the
            source has joints that the target lacks.
    """

    def __init__(
        self,
        source_names: Sequence[str],
        target_names: Sequence[str],
        *,
        source: str = 'source',
        target: str = 'target',
        exact: bool = False,
    ) -> None:
        twice = {name for names in (source_names, target_names) for name, count in Counter(names).items() if count > 1}
        duplicate = sorted(twice)
        missing = [name for name in target_names if name not in source_names]
        extra = [name for name in source_names if name not in target_names] if exact else []
        if duplicate or missing or extra:
            raise JointError(_describe(source, target, source_names, missing, extra, duplicate), missing, extra, duplicate)
        self.target_names = tuple(target_names)
        position = {name: i for i, name in enumerate(source_names)}
        self.index = np.array([position[name] for name in target_names], dtype=np.intp)
        self.identity = tuple(source_names) == self.target_names

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Reorder values.

        Args:
            values: (..., m) in the source order.

        Returns:
            (..., n) in the target order; the input itself when both orders are the same.
        """
        return values if self.identity else values[..., self.index]


def _describe(
    source: str,
    target: str,
    source_names: Sequence[str],
    missing: Sequence[str],
    extra: Sequence[str],
    duplicate: Sequence[str],
) -> str:
    parts = []
    if missing:
        parts.append(f'{source} lacks {", ".join(missing)}, which {target} needs')
    if extra:
        parts.append(f'{source} has {", ".join(extra)}, which {target} does not know')
    if duplicate:
        parts.append(f'{", ".join(duplicate)} occurs more than once')
    return f'joint names do not match: {"; ".join(parts)}. {source} has: {", ".join(source_names) or "none"}'


def by_name(
    table: Mapping[str, float],
    names: Sequence[str],
    faults: list[str],
    where: str,
    *,
    literal: bool = False,
    partial: bool = False,
) -> np.ndarray:
    """Expand a table of values per joint name or regular expression.

    Every joint must be matched exactly once; a regular expression must match the whole name. What is wrong is
    appended to `faults`, so that a file's faults can be shown together.

    Args:
        table: value by joint name or regular expression.
        names: joint names, in the order of the result.
        faults: receives one line per fault.
        where: path of the table in its file, for the message.
        literal: take every key as a name; for documents from other processes, whose patterns might take for ever.
        partial: the table need not say something about every joint.

    Returns:
        (n,) values in the order of `names`; NaN where the table says nothing.
    """
    values = np.full(len(names), np.nan)
    owner: dict[str, str] = {}
    for pattern, value in table.items():
        try:
            matched = [name for name in names if name == pattern or (not literal and re.fullmatch(pattern, name))]
        except (re.error, OverflowError, RecursionError) as error:
            faults.append(f'{where}.{pattern}: not a regular expression ({error})')
            continue
        if not matched:
            faults.append(f'{where}.{pattern}: matches no joint; joints are {", ".join(names)}')
        for name in matched:
            if name in owner:
                faults.append(f'{where}: {name} is matched by both "{owner[name]}" and "{pattern}"')
            owner[name] = pattern
            values[names.index(name)] = value
    missing = [name for name in names if name not in owner]
    if missing and names and not partial:
        faults.append(f'{where}: no value for {", ".join(missing)}')
    return values
