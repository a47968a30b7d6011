# SPDX-License-Identifier: Apache-2.0
"""`Finding`: what a check says, in one sentence: what is so, and what to do where it should not be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """What a finding means for the robot."""

    OK = 'ok'
    SKIPPED = 'skipped'  # there was nothing to check
    WARNING = 'warning'
    REFUSED = 'refused'  # do not arm it


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    level: Level
    text: str


Verdict = tuple[Level, str]  # what a check returns
