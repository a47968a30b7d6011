# SPDX-License-Identifier: Apache-2.0
"""`Fault`: why the robot was stopped."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A named reason, and the sentence that explains it."""

    name: str
    message: str

    @property
    def abrupt(self) -> bool:
        """Whether nothing that was computed before may be trusted: damping starts at once, without a ramp."""
        return self.name.startswith('non_finite')
