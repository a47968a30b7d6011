# SPDX-License-Identifier: Apache-2.0
"""What a count of failures says about a policy: exact bounds for claims, intervals for plots, the paired comparison.

Clopper-Pearson bounds hold their confidence for every true rate, which is what a claim needs. Wilson's interval is closer to
it on average and not above it everywhere, which is what an error bar needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

HALVINGS = 64  # of a bisection: past the resolution of a float


def binomial(n: int, rate: float, most: int) -> np.ndarray:
    """Return the probabilities of 0 to `most` failures in n independent episodes, (most + 1,).

    Args:
        n: episodes.
        rate: at which each fails.
        most: number of failures of the last entry; entries past n are 0.
    """
    chances, top = np.zeros(most + 1), min(n, most)
    if 0.0 < rate < 1.0:
        k = np.arange(top + 1)
        chances[: top + 1] = np.exp(_log_choose(n, top) + k * np.log(rate) + (n - k) * np.log1p(-rate))
    elif rate <= 0.0:
        chances[0] = 1.0
    elif top == n:
        chances[n] = 1.0
    return chances


@lru_cache(maxsize=256)
def _log_choose(n: int, top: int) -> np.ndarray:
    """Return the logarithms of n over k for k from 0 to `top`."""
    k = np.arange(1, top + 1)
    return np.concatenate(([0.0], np.cumsum(np.log(n - k + 1) - np.log(k))))


def at_most(failures: int, n: int, rate: float) -> float:
    """Return the probability of that many failures or fewer in n episodes."""
    return min(1.0, float(binomial(n, rate, failures).sum())) if failures < n else 1.0


def largest_rate(chance: Callable[[float], float], least: float) -> float:
    """Return the largest rate of failure at which a chance that falls with it is still `least`, never too low."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance(middle) > least else (low, middle)
    return high


def lower_bound(failures: int, n: int, confidence: float) -> float:
    """Return the success rate that n episodes, a number fixed beforehand, prove with this confidence (one-sided)."""
    if failures >= n:
        return 0.0
    return 1.0 - largest_rate(lambda rate: at_most(failures, n, rate), 1.0 - confidence)


def interval(failures: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of the success rate (two-sided)."""
    one_sided = 0.5 * (1.0 + confidence)
    return lower_bound(failures, n, one_sided), 1.0 - lower_bound(n - failures, n, one_sided)


def wilson(failures: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of the success rate, for plots."""
    if not n:
        return 0.0, 1.0
    z, rate = NormalDist().inv_cdf(0.5 * (1.0 + confidence)), 1.0 - failures / n
    centre = rate + z * z / (2 * n)
    half = z * np.sqrt(rate * (1.0 - rate) / n + z * z / (4 * n * n))
    scale = 1.0 + z * z / n
    return max(0.0, float((centre - half) / scale)), min(1.0, float((centre + half) / scale))


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
    return min(1.0, 2.0 * at_most(min(first_only, second_only), first_only + second_only, 0.5))


def percent(share: float) -> str:
    """Return a share as a percentage, rounded down to a hundredth: a bound must not look better than it is."""
    return f'{math.floor(1e4 * share + 1e-6) / 100:g} %'
