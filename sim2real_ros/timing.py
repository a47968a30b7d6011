# SPDX-License-Identifier: Apache-2.0
"""When a policy tick is due, from the stamps of the joint states alone, and how a simulator keeps real time."""

from __future__ import annotations

import time
from math import floor

SLACK_S = 1e-6  # stamps come in whole ns; multiples of a period do not
MAX_LAG_S = 0.01  # what a stalled simulator catches up; more would be a burst of states that no robot sends


def tick_due(stamp: float, previous: float, period: float) -> bool:
    """Return whether a multiple of the policy period lies in (previous, stamp]; a stamp that went back starts afresh.

    Args:
        stamp: s, of this joint state.
        previous: s, of the one before.
        period: s.
    """
    return floor((stamp + SLACK_S) / period) != floor((previous + SLACK_S) / period)


class Pacer:
    """Holds simulated time back to a multiple of real time."""

    def __init__(self, factor: float) -> None:
        """Begin now; `factor` is simulated s per real s, 0 for as fast as possible."""
        self._factor, self._begin = factor, time.monotonic()
        self._origin: float | None = None

    def pace(self, simulated: float) -> None:
        """Sleep until real time has come to a simulated time in s."""
        if self._factor <= 0:
            return
        if self._origin is None:
            self._origin = simulated
        late = time.monotonic() - (self._begin + (simulated - self._origin) / self._factor)
        if late < 0:
            time.sleep(-late)
        elif late > MAX_LAG_S:
            self._begin += late - MAX_LAG_S
