# SPDX-License-Identifier: Apache-2.0
"""How late this machine wakes a bare loop at 500 Hz: what the stack's own misses are to be held against.

`python -m bench.baseline FILE` measures until SIGINT or SIGTERM and writes its figures to the JSON file.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import numpy as np

PERIOD_S = 0.002
BINS_PER_DECADE, SMALLEST_S, DECADES = 50, 1e-6, 7


class Lateness:
    """Histogram of how late each wake-up was, and those over a period one by one."""

    def __init__(self) -> None:
        self._bins = np.zeros(BINS_PER_DECADE * DECADES, dtype=int)
        self.count = 0
        self.worst = 0.0
        self.late: list[tuple[float, float]] = []  # s on the steady clock, s late

    def see(self, now: float, late: float) -> None:
        """Take note of a wake-up at `now`, late by `late` s."""
        place = int(BINS_PER_DECADE * np.log10(max(late, SMALLEST_S) / SMALLEST_S))
        self._bins[min(place, len(self._bins) - 1)] += 1
        self.count += 1
        self.worst = max(self.worst, late)
        if late > PERIOD_S:
            self.late.append((now, late))

    def quantile(self, q: float) -> float:
        """Return the upper edge of the bin of a quantile, s."""
        place = int(np.searchsorted(np.cumsum(self._bins), q * self.count))
        return float(SMALLEST_S * 10 ** ((place + 1) / BINS_PER_DECADE))

    def figures(self) -> dict[str, object]:
        """Return the figures, times in ms."""
        return {
            'wakes': self.count, 'misses': len(self.late), 'miss_rate': len(self.late) / max(1, self.count),
            'p50_ms': 1e3 * self.quantile(0.5), 'p99_ms': 1e3 * self.quantile(0.99), 'p999_ms': 1e3 * self.quantile(0.999),
            'max_ms': 1e3 * self.worst, 'late': self.late,
        }  # fmt: skip


def main() -> int:
    """Measure until told to stop."""
    path, running = Path(sys.argv[1]), [True]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: running.clear())
    lateness, deadline = Lateness(), time.monotonic()
    while running:
        deadline += PERIOD_S
        if (left := deadline - time.monotonic()) > 0:
            time.sleep(left)
        now = time.monotonic()
        lateness.see(now, now - deadline)
        deadline = max(deadline, now - PERIOD_S)  # deadlines that a stall has swallowed are one miss, not a hundred
    path.write_text(json.dumps(lateness.figures()), encoding='utf-8')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
