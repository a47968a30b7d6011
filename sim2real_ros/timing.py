# SPDX-License-Identifier: Apache-2.0
"""When a policy tick is due, from the stamps of the joint states alone."""

from __future__ import annotations

from math import floor

SLACK_S = 1e-6  # stamps come in whole ns; multiples of a period do not


def tick_due(stamp: float, previous: float, period: float) -> bool:
    """Return whether a multiple of the policy period lies in (previous, stamp]; a stamp that went back starts afresh.

    Args:
        stamp: s, of this joint state.
        previous: s, of the one before.
        period: s.
    """
    return floor((stamp + SLACK_S) / period) != floor((previous + SLACK_S) / period)
