# SPDX-License-Identifier: Apache-2.0
"""How two signals differ: RMSE, bias, the time by which one is later, and how alike they are once that is taken out.

Signals are (k, w): k samples on one grid, w signals side by side. NaN is what could not be measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LARGEST_LAG_S = 0.1  # that is looked for: less than half of the period of any gait
LAG_OVER_S = 60.0  # of a run, at most: the rest of a long one tells nothing new
STILL = 1e-9  # standard deviation below which a signal has no correlation
BELIEVED = 0.5  # correlation from which on a lag means something


@dataclass(frozen=True, slots=True)
class Measures:
    """Of w pairs of signals, each (w,)."""

    rmse: np.ndarray
    bias: np.ndarray  # mean of b - a
    largest: np.ndarray  # of |b - a|
    lag_s: np.ndarray  # by which b is later than a; NaN where they are too unlike to say, or it is larger than is looked for
    correlation: np.ndarray  # with that lag taken out, or without where there is none; NaN where one stands still
    lag_of_all_s: float  # of all signals together, each by what it moves
    correlation_of_all: float


def measure(a: np.ndarray, b: np.ndarray, counts: np.ndarray, step_s: float) -> Measures:
    """Measure.

    Args:
        a: (k, w) signals.
        b: (k, w) the same signals of the other run, on the same grid.
        counts: (k,) bool, the samples that count.
        step_s: of the grid.
    """
    difference = (b - a)[counts]
    rmse, bias, largest = np.sqrt(_mean(difference**2)), _mean(difference), np.abs(difference).max(axis=0, initial=0.0)
    head = slice(0, max(round(LAG_OVER_S / step_s), 2))
    shifts = np.arange(-round(LARGEST_LAG_S / step_s), round(LARGEST_LAG_S / step_s) + 1)
    moments = np.array([_moments(a[head], b[head], counts[head], int(shift)) for shift in shifts])  # (s, 3, w)
    each = [_peak(moments[:, :, i], shifts, step_s) for i in range(a.shape[1])]
    lag, correlation = np.array(each).reshape(-1, 2).T
    same = largest == 0
    lag[same & np.isfinite(correlation)], correlation[same & np.isfinite(correlation)] = 0.0, 1.0
    known = np.isfinite(rmse)
    lag_all, correlation_all = _peak(moments[:, :, known].sum(axis=2), shifts, step_s)
    if same[known].all() and np.isfinite(correlation_all):
        lag_all, correlation_all = 0.0, 1.0
    return Measures(rmse, bias, largest, lag, correlation, lag_all, correlation_all)


def _moments(a: np.ndarray, b: np.ndarray, counts: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return covariance and both variances (w,) of a and the b that is `shift` samples later, where both count."""
    k = len(a)
    early, late = slice(max(-shift, 0), k - max(shift, 0)), slice(max(shift, 0), k - max(-shift, 0))
    both = counts[early] & counts[late]
    left, right = a[early][both], b[late][both]
    left, right = left - _mean(left), right - _mean(right)
    return _mean(left * right), _mean(left * left), _mean(right * right)


def _peak(moments: np.ndarray, shifts: np.ndarray, step_s: float) -> tuple[float, float]:
    """Return lag in s and correlation at the peak, between samples by a parabola through three of them."""
    covariance, left, right = moments.T
    middle = len(shifts) // 2
    if not (left[middle] > STILL**2 and right[middle] > STILL**2):
        return np.nan, np.nan
    with np.errstate(divide='ignore', invalid='ignore'):
        correlation = np.nan_to_num(covariance / np.sqrt(left * right), nan=-1.0)
    top = int(correlation.argmax())
    if correlation[top] < BELIEVED or top in (0, len(shifts) - 1):
        return np.nan, float(np.clip(correlation[middle], -1, 1))
    before, at, after = correlation[top - 1 : top + 2]
    bend = before - 2 * at + after
    offset = 0.0 if bend == 0 else 0.5 * (before - after) / bend
    return float((shifts[top] + offset) * step_s), float(min(at - 0.25 * (before - after) * offset, 1.0))


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)
