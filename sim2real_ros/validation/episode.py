# SPDX-License-Identifier: Apache-2.0
"""`Episode`: what became of one randomised robot, and how its draws are written down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sim2real_ros.errors import NotFoundError

FELL, TRACKING, FILTER, DIVERGED = 'fell', 'tracking', 'filter', 'diverged'  # why an episode fails; or `fault <name>`


@dataclass(frozen=True, slots=True)
class EpisodeId:
    """Which episode: its draws follow from this and the study's seed alone, whoever runs it and beside whom."""

    scenario: str
    index: int  # in the sequence of the scenario's draws

    def __str__(self) -> str:
        return f'{self.scenario}:{self.index}'

    @classmethod
    def parse(cls, text: str) -> EpisodeId:
        """Return the id that a user wrote.

        Raises:
            NotFoundError: it is not of the form `scenario:number`.
        """
        match = re.fullmatch(r'([\w-]+):(\d{1,6})', text.strip())
        if match is None:
            raise NotFoundError(
                f'"{text}" is no episode; episodes are called scenario:number, as flat:17, with at most six digits'
            )
        return cls(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class Episode:
    """How it ended.

    Attributes:
        id: `scenario:index`.
        reason: why it failed: `fell`, `fault <name>` (the safety filter would have stopped the robot), `tracking`, `filter`
            (more torques altered than allowed), `diverged` (the simulation itself); '' for a success.
        end_s: s, when it failed; its whole length for a success.
        margin: how far from failing at the worst moment, in shares of what is allowed: above 0 for a success, below 0 for
            a failure (the earlier the lower), 1 for a robot that never left its nominal posture and speed.
        figures: `tilt_rad` (worst), `height_share` (lowest, of standing), `tracking_error` (worst mean over a command, in
            shares of what is allowed), `torque_share` (highest, of the effort limit), `altered_share` (of the joint
            torques), `distance_m`.
        draw: everything that was drawn, by name; lists for what is drawn per joint, per command or per push.
        digest: of the last state of the simulation, to compare runs bit for bit.
    """

    id: str
    reason: str
    end_s: float
    margin: float
    figures: Mapping[str, float]
    draw: Mapping[str, Any]
    digest: str

    @property
    def passed(self) -> bool:
        """Whether it is a success."""
        return not self.reason

    @property
    def scenario(self) -> str:
        """Name of its scenario."""
        return self.id.split(':')[0]

    def document(self) -> dict[str, Any]:
        """Return everything, for a line of JSON."""
        return asdict(self)


def lowest_margins(episodes: Iterable[Episode], count: int = 5) -> list[Episode]:
    """Return the episodes that came closest to failing, or failed first; the lowest margin first."""
    return sorted(episodes, key=lambda episode: (episode.margin, episode.id))[:count]
