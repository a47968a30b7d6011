# SPDX-License-Identifier: Apache-2.0
"""`Calm`: for how long nothing has been wrong. A robot that was just in trouble is not armed."""

from __future__ import annotations

import math

GREEN_S = 1.0  # nothing may have been wrong for so long
JUST_BEGUN = 'the sensors have just begun to be watched'


class Calm:
    """Remembers the last trouble and its reason."""

    def __init__(self) -> None:
        self._stamp, self._why = -math.inf, JUST_BEGUN

    def begin(self, stamp: float | None) -> None:
        """Begin to watch at a stamp in s; None before there was any state."""
        self._stamp, self._why = -math.inf if stamp is None else stamp, JUST_BEGUN

    def first(self, stamp: float) -> None:
        """Take note of the first state, at a stamp in s: what was before it is not known."""
        self._stamp = max(self._stamp, stamp)

    def disturb(self, stamp: float, why: str) -> None:
        """Take note of trouble at a stamp in s."""
        self._stamp, self._why = stamp, why

    def ahead(self, stamp: float) -> bool:
        """Return whether the last trouble lies after a stamp in s, as when the clock was set back."""
        return stamp < self._stamp

    def refusals(self, stamp: float, *, latched: bool) -> list[str]:
        """Return why it is too early at a stamp in s to be armed.

        Args:
            stamp: of the last state.
            latched: whether a fault is latched, whose cause must be gone.
        """
        if stamp == self._stamp and latched:
            return [f'the cause is still there: {self._why}']
        left = GREEN_S - (stamp - self._stamp)
        return [f'wait {left:.1f} s more: {self._why}'] if left > 1e-9 else []
