# SPDX-License-Identifier: Apache-2.0
"""Why two recordings of the same quantity differ: simple causes are tried one by one until one leaves nothing over.

All arrays are (k, w): k ticks, w numbers. A cause is believed when what it predicts agrees with the trainer's numbers to
`TOLERANCE` of their size in every tick, which no accident does over a hundred ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

TOLERANCE = 2e-5


@dataclass(frozen=True, slots=True)
class Cause:
    """An explanation that holds."""

    kind: str  # order | scale | offset | normaliser | delay | ahead | clip | unclipped | zeros
    sentence: str
    value: Any = None  # permutation, scale, offset or clip, for the mended contract


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether two recordings agree."""
    size = max(1.0, float(np.abs(theirs).max(initial=0.0)))
    return ours.shape == theirs.shape and bool(np.abs(ours - theirs).max(initial=0.0) <= TOLERANCE * size)


def explain(ours: np.ndarray, theirs: np.ndarray) -> Cause | None:
    """Return the simplest cause that explains the difference, or None.

    Args:
        ours: what the contract builds.
        theirs: what the trainer's deployment fed.
    """
    for find in (_zeros, _delay, _order, _scale, _offset, _clip, _unclipped, _affine, _order_and_scale):
        for cause in find(ours, theirs):
            return cause
    return None


def _zeros(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    if not theirs.any() and ours.any():
        yield Cause('zeros', 'the trainer feeds zeros here', 0.0)


def _delay(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    for ticks in (1, 2):
        if len(ours) > 2 * ticks and np.ptp(ours, axis=0).any():
            if same(ours[:-ticks], theirs[ticks:]):
                yield Cause('delay', f'the trainer feeds what was measured {ticks} tick(s) earlier', ticks)
            if same(ours[ticks:], theirs[:-ticks]):
                yield Cause('ahead', f'the trainer feeds what we feed {ticks} tick(s) later', ticks)


def _order(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    order = matching(ours, theirs, lambda a, b: float(np.abs(a - b).max()))
    if order is not None and same(ours[:, order], theirs):
        yield Cause('order', f'the numbers are in another order: the trainer takes ours as {order}', order)


def _scale(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    power = float((ours * ours).sum())
    if power > 0:
        factor = float((ours * theirs).sum()) / power
        if same(factor * ours, theirs):
            silent = np.flatnonzero(~ours.any(axis=0) & (ours.shape[1] > 1))
            told = (
                '' if not len(silent) else f'; {silent.tolist()} of its numbers are always 0 here, which tells nothing of them'
            )
            each = np.where(ours.any(axis=0), factor, 1.0).tolist()
            yield Cause('scale', _say_factor(factor) + told, each if len(silent) else factor)
    each = _each_scale(ours, theirs)
    if same(ours * each, theirs):
        yield Cause('scale', f'each number has a scale of its own: {np.round(each, 4).tolist()}', each.tolist())


def _offset(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    offset = np.median(theirs - ours, axis=0)
    if same(ours + offset, theirs):
        yield Cause('offset', f'the trainer adds {np.round(offset, 4).tolist()}', offset.tolist())


def _clip(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    limit = float(np.abs(theirs).max())
    if limit < float(np.abs(ours).max()) and same(np.clip(ours, -limit, limit), theirs):
        yield Cause('clip', f'the trainer clips at {limit:g}', limit)


def _unclipped(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    limits = np.abs(ours).max(axis=0)
    if (limits < np.abs(theirs).max(axis=0)).any() and same(ours, np.clip(theirs, -limits, limits)):
        yield Cause('unclipped', 'the contract clips where the trainer does not')


def _affine(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    centre, other = ours.mean(axis=0), theirs.mean(axis=0)
    each = _each_scale(ours - centre, theirs - other)
    offset = other - each * centre
    if (np.ptp(ours, axis=0) > 0).any() and same(each * ours + offset, theirs):
        yield Cause(
            'normaliser',
            f'each number has a scale and an offset of its own, as a normaliser gives: scale {np.round(each, 4).tolist()}, '
            f'offset {np.round(offset, 4).tolist()}',
            (each.tolist(), offset.tolist()),
        )


def _order_and_scale(ours: np.ndarray, theirs: np.ndarray) -> Iterator[Cause]:
    order = matching(ours, theirs, lambda a, b: 1.0 - _alike(a, b))
    if order is None:
        return
    each = _each_scale(ours[:, order], theirs)
    if same(ours[:, order] * each, theirs):
        sentence = f'another order, {order}, and another scale or sign, {np.round(each, 4).tolist()}'
        yield Cause('order', sentence, order)


def matching(ours: np.ndarray, theirs: np.ndarray, distance: Callable[[np.ndarray, np.ndarray], float]) -> list[int] | None:
    """Return which of our columns each of theirs is, every one once and not all at their place, or None."""
    width = ours.shape[1]
    free, order = list(range(width)), []
    for j in range(width):
        if not free:
            return None
        at = min(free, key=lambda i: (distance(ours[:, i], theirs[:, j]), i != j))
        free.remove(at)
        order.append(at)
    return order if order != list(range(width)) else None


def _alike(a: np.ndarray, b: np.ndarray) -> float:
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return abs(float(a @ b)) / norm if norm > 0 else float(not a.any() and not b.any())


def _each_scale(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    power = (ours * ours).sum(axis=0)
    return np.divide((ours * theirs).sum(axis=0), power, out=np.ones_like(power), where=power > 1e-12)


def _say_factor(factor: float) -> str:
    if abs(factor + 1) < 1e-4:
        return 'the sign is the other way round'
    if abs(abs(factor) - 9.81) < 0.01:
        sign = ' upwards' if factor < 0 else ''
        return f'the trainer feeds gravity in m/s^2{sign}, not its direction (factor {factor:.4g})'
    if abs(abs(factor) * 9.81 - 1) < 1e-3:
        return "the trainer feeds gravity's direction, the contract m/s^2"
    return f'the scale is another one: the trainer has {factor:.6g} times ours'
