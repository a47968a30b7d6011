# SPDX-License-Identifier: Apache-2.0
"""`NoveltyMonitor`: tells at every policy tick whether the policy still sees what it saw in simulation.

Outside of that a network computes something, but nobody knows what. `docs/novelty.md` says what is found, and what not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim2real_ros.contract import Contract
from sim2real_ros.policy.components import Components
from sim2real_ros.policy.statistics import NEEDED, WINDOW, ObservationStatistics, load_statistics

RECENT = (1 << WINDOW) - 1


@dataclass(frozen=True, slots=True)
class Finding:
    """What is unfamiliar."""

    kind: Literal['not_finite', 'range', 'combination']
    component: str  # the worst one
    message: str  # one sentence


class NoveltyMonitor:
    """Watches one robot. An alarm takes 5 of the last 10 ticks beyond a threshold of the statistics.

    Attributes:
        components: the numbers that are watched.
        level: score of the last tick over its threshold, the worse of the two; above 1 the tick is unfamiliar, NaN when
            a number is not finite.
    """

    def __init__(self, statistics: ObservationStatistics, contract: Contract) -> None:
        """Watch for the policy of `contract`, whose components the statistics must be of (`load_statistics` checks)."""
        self.components = Components(contract)
        self._statistics = statistics
        self._limits = statistics.thresholds.tolist()
        self.reset()

    @staticmethod
    def of(contract: Contract) -> NoveltyMonitor | None:
        """Return the monitor that a contract names, None if it names none; raises what `load_statistics` raises."""
        statistics = load_statistics(contract)
        return None if statistics is None else NoveltyMonitor(statistics, contract)

    def reset(self) -> None:
        """Forget the past ticks: at activation, and wherever the runner is reset."""
        self._far, self._odd = 0, 0  # beyond the threshold of reach, of distance: one bit per tick, the newest lowest
        self._last_far = self._last_odd = np.zeros(0)  # the newest such ticks
        self.level = 0.0

    def update(self, observation: Mapping[str, np.ndarray], action: np.ndarray) -> Finding | None:
        """Judge one policy tick.

        Args:
            observation: input tensors (width,) by name: `PolicyRunner.observation` after its step.
            action: (m,): `PolicyRunner.action` after its step.

        Returns:
            What is unfamiliar, at every tick while the alarm is on; None otherwise.
        """
        vector = self.components.join(observation, action)
        finite = math.isfinite(vector.sum())
        reach, distance = map(float, self._statistics.scores(vector)) if finite else (math.nan, math.nan)
        reach_limit, distance_limit = self._limits
        self._far = (self._far << 1 | (not reach <= reach_limit)) & RECENT  # NaN counts as beyond
        self._odd = (self._odd << 1 | (not distance <= distance_limit)) & RECENT
        self.level = max(reach / reach_limit, distance / distance_limit)
        if self._far & 1:
            self._last_far = vector
        if self._odd & 1:
            self._last_odd = vector
        if self._far.bit_count() >= NEEDED:
            return self._out_of_range(self._last_far)
        return self._odd_together(self._last_odd) if self._odd.bit_count() >= NEEDED else None

    def _out_of_range(self, vector: np.ndarray) -> Finding:
        if not np.isfinite(vector).all():
            return self._not_finite(vector)
        statistics = self._statistics
        i = int(statistics.reaches(vector).argmax())
        what = self.components.each[i]
        low, high = sorted((statistics.minimum[i] / what.scale, statistics.maximum[i] / what.scale))
        message = f'{what.label} is {what.tell(vector[i])}, in simulation it lay between {low:.4g} and {high:.4g}'
        return Finding('range', what.label, message)

    def _odd_together(self, vector: np.ndarray) -> Finding:
        """Name the component that fits the others least: the one without which the squared distance is least.

        With the precision matrix P = W'W, z the standardised numbers and g = P z, leaving i out lowers the squared distance
        by g_i^2 / P_ii, and the others let expect z_i - g_i / P_ii (conditional mean of a normal distribution).
        """
        statistics = self._statistics
        precision, standard = statistics.whitening.T @ statistics.whitening, statistics.standardised(vector)
        gradient, own = precision @ standard, np.diag(precision)
        i = int((gradient**2 / own).argmax())
        others = statistics.mean[i] + statistics.spread[i] * (standard[i] - gradient[i] / own[i])
        what = self.components.each[i]
        expected = what.tell(others)
        message = f'{what.label} is {what.tell(vector[i])}, in simulation it would be about {expected} beside the other numbers'
        return Finding('combination', what.label, message)

    def _not_finite(self, vector: np.ndarray) -> Finding:
        label = self.components.each[int((~np.isfinite(vector)).argmax())].label
        return Finding('not_finite', label, f'{label} is not finite')
