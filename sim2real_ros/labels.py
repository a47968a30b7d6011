# SPDX-License-Identifier: Apache-2.0
"""What the label of a Float64MultiArray says: the message has numbers and no header, so its stamp travels in the label.

Controllers and plots ignore it; the simulator, the flight recorder and the reader of recordings do not.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_STAMP_DIGITS = 19  # of ns, 292 years


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a command comes from; a foreign command has no stamp."""

    who: str = ''  # node
    stamp_ns: int | None = None  # of the joint state that it answers
    mode: str = ''  # of the safety node when it was computed

    @property
    def label(self) -> str:
        """As text, `<who>:<stamp in ns>:<mode>`."""
        return f'{self.who}:{self.stamp_ns}:{self.mode}'

    @classmethod
    def of(cls, label: str) -> Origin:
        """Return what the label of a command says; an empty origin when it is not one of ours."""
        parts = label.split(':')
        if len(parts) != 3 or not _is_stamp(parts[1]):
            return cls()
        return cls(parts[0], int(parts[1]), parts[2])


@dataclass(frozen=True, slots=True)
class TickLabel:
    """Which numbers of `policy/trace` are what: the observation, then the action, then the velocity command."""

    stamp_ns: int  # of the joint state
    observation: int  # numbers
    action: int  # numbers
    first: bool  # whether the policy began afresh in this tick

    @property
    def label(self) -> str:
        """As text, `<stamp in ns>:<numbers of the observation>:<numbers of the action>:<first or next>`."""
        return f'{self.stamp_ns}:{self.observation}:{self.action}:{"first" if self.first else "next"}'

    @classmethod
    def of(cls, label: str) -> TickLabel:
        """Return what the label of a tick says; raises ValueError when it is none."""
        parts = label.split(':')
        if len(parts) != 4 or not all(_is_stamp(part) for part in parts[:3]) or parts[3] not in ('first', 'next'):
            raise ValueError(f'"{label}" is no label of a policy tick')
        stamp, observation, action = map(int, parts[:3])
        return cls(stamp, observation, action, parts[3] == 'first')


def _is_stamp(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_STAMP_DIGITS
