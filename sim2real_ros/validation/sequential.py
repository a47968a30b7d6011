# SPDX-License-Identifier: Apache-2.0
"""`Design`: a test of a claim that may stop early and keeps its guarantee, fixed before the first episode.

Looking at Clopper-Pearson after every batch and stopping when it is good enough proves nothing: each look is another chance
to be lucky. A group-sequential design shares the allowed error out among its looks (alpha spending after Lan and DeMets,
1983; here in proportion to the episodes). As failures are counted, the chance of every course can be computed exactly
(Jennison and Turnbull, Group Sequential Methods, 2000, 12.1): so the false-pass rate is at most 1 - confidence for
every policy below the claim, whatever the looks.

A run fails as soon as no course of the remaining episodes could pass. That costs nothing: the verdict is that of the whole run.

The bound after a stop orders the outcomes by how well they speak for the policy: passing at an earlier look, then with fewer
failures, then failing later (stagewise, Jennison and Turnbull, Technometrics 1983). It is at or above the claim exactly
where the claim holds. With one look it is Clopper-Pearson's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sim2real_ros.validation.statistics import binomial, largest_rate, lower_bound

LOOKS = 20


@dataclass(frozen=True, slots=True)
class Decision:
    """How a test ended.

    Attributes:
        passed: whether the claim holds.
        n: episodes it took.
        failures: in them.
        bound: success rate that they prove with the design's confidence.
    """

    passed: bool
    n: int
    failures: int
    bound: float


@dataclass(frozen=True, slots=True)
class Design:
    """When to look, and how many failures may have been there by then.

    Attributes:
        success: rate that is claimed.
        confidence: of the claim.
        early: whether it may stop before its end.
        looks: numbers of episodes after which the claim may be found to hold, ascending; the last ends the test.
        allowed: failures that each look allows; -1 where none can pass yet.
    """

    success: float
    confidence: float
    early: bool
    looks: tuple[int, ...]
    allowed: tuple[int, ...]

    @classmethod
    def of(cls, episodes: int, success: float, confidence: float, early: bool = True) -> Design:
        """Lay out a test of a claim with at most so many episodes; not `early`: one look after all of them."""
        error, rate = 1.0 - confidence, 1.0 - success
        # no look allows more than one look at the end would
        most = int(np.searchsorted(np.cumsum(binomial(episodes, rate, episodes)), error, side='right')) - 1
        if not early or most < 0:
            return cls(success, confidence, False, (episodes,), (most,))
        looks = sorted({-(-episodes * k // LOOKS) for k in range(1, LOOKS + 1)})
        alive, spent, allowed = _nobody(most), 0.0, []
        for before, look in pairwise((0, *looks)):
            alive = _go_on(alive, look - before, rate)
            chances = spent + np.cumsum(alive)
            allowed.append(int(np.searchsorted(chances, error * look / episodes, side='right')) - 1)
            spent += _take(alive, allowed[-1])
        end = allowed.index(allowed[-1])  # later looks find nobody left
        return cls(success, confidence, True, tuple(looks[: end + 1]), tuple(allowed[: end + 1]))._shortened()

    def _shortened(self) -> Design:
        """Return the design with the earliest end that keeps the guarantee, so that nothing of the error is left over."""
        error, rate, most = 1.0 - self.confidence, 1.0 - self.success, self.allowed[-1]
        end = 1 + bisect_left(range(1, self.looks[-1]), True, key=lambda n: self.chance(n, most, rate) <= error)
        looks = [look for look in self.looks if look < end]
        return replace(self, looks=(*looks, end), allowed=(*self.allowed[: len(looks)], most))

    def decide(self, failed: Sequence[bool]) -> Decision | None:
        """Return how the test ends, None while it goes on.

        Args:
            failed: whether each episode failed, in the order of the plan; what comes after the end is not looked at.
        """
        if not self.early:
            n, most = self.looks[0], self.allowed[0]
            failures = sum(failed[:n])
            return (
                Decision(failures <= most, n, failures, lower_bound(failures, n, self.confidence)) if len(failed) >= n else None
            )
        failures, most, looks = 0, self.allowed[-1], dict(zip(self.looks, self.allowed, strict=True))
        for n, one in enumerate(failed, 1):
            failures += one
            if failures > most:
                return Decision(False, n, failures, _bound(self, n - 1, most))
            if failures <= looks.get(n, -1):
                return Decision(True, n, failures, _bound(self, n, failures))
        return None

    def chance(self, n: int, failures: int, rate: float) -> float:
        """Return the chance, at a rate of failure, of passing before n episodes or of at most so many failures in n."""
        alive, passed, before = _nobody(self.allowed[-1]), 0.0, 0
        for look, most in zip(self.looks, self.allowed, strict=True):
            if look >= n:
                break
            alive, before = _go_on(alive, look - before, rate), look
            passed += _take(alive, most)
        return passed + float(_go_on(alive, n - before, rate)[: failures + 1].sum())


@lru_cache(maxsize=4096)
def _bound(design: Design, n: int, failures: int) -> float:
    """Return the success rate at which an outcome, or a better one, has the chance of the design's error."""
    return 1.0 - largest_rate(lambda rate: design.chance(n, failures, rate), 1.0 - design.confidence)


def _nobody(most: int) -> np.ndarray:
    """Return the distribution of the failures, 0 to `most`, before the first episode."""
    return np.eye(1, most + 1)[0]


def _go_on(alive: np.ndarray, episodes: int, rate: float) -> np.ndarray:
    """Return the distribution of the failures after some more episodes; who has more than its length allows is out."""
    return np.convolve(alive, binomial(episodes, rate, len(alive) - 1))[: len(alive)]


def _take(alive: np.ndarray, most: int) -> float:
    """Take those with at most so many failures out of a distribution, and return how many they are."""
    taken = float(alive[: most + 1].sum())
    alive[: most + 1] = 0.0
    return taken
