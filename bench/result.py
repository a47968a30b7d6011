# SPDX-License-Identifier: Apache-2.0
"""One line of the table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured against which budget."""

    what: str
    measured: str
    budget: str
    met: bool
