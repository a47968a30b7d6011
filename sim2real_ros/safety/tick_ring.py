# SPDX-License-Identifier: Apache-2.0
"""`TickRing`: the memory of the flight recorder, one row of numbers per tick, allocated once."""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.safety.trip_file import columns


class TickRing:
    """The rows, and the views into them that the loop writes to: slicing in the loop would double its time.

    Attributes:
        capacity: rows.
        count: ticks written, ever; the next one goes to row `count % capacity`.
        places: for each row its parts: the scalars, which come first, as one array, then one array per other column.
    """

    def __init__(self, n: int, capacity: int) -> None:
        """Allocate `capacity` rows for n joints."""
        self.capacity = capacity
        self.count = 0
        self._shapes = columns(n)
        ends = np.cumsum([math.prod(shape) for shape in self._shapes.values()]).tolist()
        self._slices = {name: slice(begin, end) for name, begin, end in zip(self._shapes, [0, *ends[:-1]], ends, strict=True)}
        self._rows = np.zeros((capacity, ends[-1]))
        wide = [place for name, place in self._slices.items() if self._shapes[name]]
        scalars = slice(0, len(self._slices) - len(wide))
        self.places = [(row[scalars], *(row[place] for place in wide)) for row in self._rows]

    @property
    def oldest(self) -> int:
        """Number of the oldest tick that is not being overwritten now."""
        return max(0, self.count + 1 - self.capacity)

    def read(self, first: int, end: int, row: int, before_s: float) -> tuple[int, dict[str, np.ndarray]]:
        """Copy ticks while the loop goes on writing.

        Args:
            first: number of the first tick.
            end: number after the last one.
            row: number of the tick that tripped.
            before_s: s before it; ticks from earlier are left out. They are counted back from the tick before, since the
                clock may have jumped at the trip.

        Returns:
            Number of the first tick that could be read, and the columns.

        Raises:
            OverflowError: the tick that tripped was overwritten.
        """
        rows = self._rows.take(np.arange(first, end) % self.capacity, axis=0)
        stamp = rows[: max(0, row - first), 0]
        early = np.flatnonzero(stamp < stamp[-1] - before_s - 1e-6) if len(stamp) else stamp
        begin = max(first + (int(early[-1]) + 1 if len(early) else 0), self.oldest)
        if begin > row:
            raise OverflowError('the files before it took so long to write that its ticks were overwritten')
        rows = rows[begin - first :]
        ticks = {name: rows[:, place].reshape(len(rows), *self._shapes[name]) for name, place in self._slices.items()}
        return begin, ticks | {'reasons': ticks['reasons'].astype(np.uint32)}
