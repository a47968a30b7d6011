# SPDX-License-Identifier: Apache-2.0
"""What a count of failures says about a policy: exact bounds for claims, intervals for plots, the paired comparison.

Clopper-Pearson bounds hold their confidence for every true rate, which is what a claim needs. Wilson's interval is closer to
it on average and not above it everywhere, which is what an error bar needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

HALVINGS = 64  # of a bisection: past the resolution of a float


def _stats() -> Any:
    from scipy import stats  # noqa: PLC0415 - a robot that only shows what a passport says has none

    return stats


def binomial(n: int, rate: float, most: int) -> np.ndarray:
    """Return the probabilities of 0 to `most` failures in n independent episodes, (most + 1,).

    Args:
        n: episodes.
        rate: at which each fails.
        most: number of failures of the last entry; entries past n are 0.
    """
    chances: np.ndarray = _stats().binom.pmf(np.arange(most + 1), n, rate)
    return chances


def largest_rate(chance: Callable[[float], float], least: float) -> float:
    """Return the largest rate of failure at which a chance that falls with it is still `least`, never too low."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance(middle) > least else (low, middle)
    return high


def lower_bound(failures: int, n: int, confidence: float) -> float:
    """Return the success rate that n episodes, a number fixed beforehand, prove with this confidence (one-sided)."""
    return float(_stats().beta.ppf(1.0 - confidence, n - failures, failures + 1)) if failures < n else 0.0


def wilson(failures: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of the success rate, for plots."""
    if not n:
        return 0.0, 1.0
    low, high = _stats().binomtest(n - failures, n).proportion_ci(confidence, 'wilson')
    return float(low), float(high)


def episodes_needed(success: float, confidence: float) -> int:
    """Return how many episodes without any failure prove a success rate."""
    n = max(1, round(np.log(1.0 - confidence) / np.log(success)) - 1)
    while success**n > 1.0 - confidence:
        n += 1
    return n


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p-value that two policies fail equally often, from paired episodes.

    Args:
        first_only: pairs in which the first one alone failed.
        second_only: pairs in which the second one alone failed; pairs with one outcome say nothing.
    """
    pairs = first_only + second_only
    return float(_stats().binomtest(first_only, pairs).pvalue) if pairs else 1.0


def percent(share: float) -> str:
    """Return a share as a percentage, rounded down to a hundredth: a bound must not look better than it is."""
    return f'{math.floor(1e4 * share + 1e-6) / 100:g} %'
