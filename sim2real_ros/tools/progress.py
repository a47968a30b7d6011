# SPDX-License-Identifier: Apache-2.0
"""A progress bar over policy ticks, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.progress import track


def ticks(seconds: float, period: float, text: str) -> Iterator[int]:
    """Yield the ticks of a simulated time."""
    count = round(seconds / period)
    yield from track(range(count), text, transient=True, disable=not sys.stderr.isatty())
