# SPDX-License-Identifier: Apache-2.0
"""`Comparison`: two policies in the same worlds, episode by episode.

Only the episodes in which one of them failed and the other did not tell the two apart (McNemar). That needs far fewer
episodes than two independent rates, as what is hard about a world is hard for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sim2real_ros.errors import RunError
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.statistics import mcnemar
from sim2real_ros.validation.verdict import by_id

OWN = ('commands',)  # draws that follow from the policy's own range of commands


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two policies, called first and second.

    Attributes:
        pairs: episodes that both ran.
        both_failed: of them.
        first_lost: ids of episodes in which the first one alone failed.
        second_lost: ids of episodes in which the second one alone failed.
        unpaired: episodes that one of them alone ran; they do not count.
        p_value: of the hypothesis that both fail equally often; two-sided, exact.
    """

    pairs: int
    both_failed: int
    first_lost: tuple[str, ...]
    second_lost: tuple[str, ...]
    unpaired: int
    p_value: float

    @classmethod
    def of(cls, first: Sequence[Episode], second: Sequence[Episode]) -> Comparison:
        """Compare two studies.

        Raises:
            RunError: they have no episode in common, or episodes of one name were drawn differently.
        """
        one, other = by_id(first), by_id(second)
        names = [name for name in one if name in other]
        if not names:
            raise RunError('the two studies have no episode in common: run both with one level and one seed')
        for name in names:
            different = [key for key in _draw(one[name]) if _draw(one[name])[key] != _draw(other[name]).get(key)]
            if different:
                raise RunError(
                    f'episode {name} was drawn differently in the two studies ({", ".join(different[:3])}): '
                    'run both with one level, one seed and one robot'
                )
        lost = [(not one[name].passed, not other[name].passed) for name in names]
        first_lost = tuple(name for name, outcome in zip(names, lost, strict=True) if outcome == (True, False))
        second_lost = tuple(name for name, outcome in zip(names, lost, strict=True) if outcome == (False, True))
        unpaired = len(one) + len(other) - 2 * len(names)
        p_value = mcnemar(len(first_lost), len(second_lost))
        return cls(len(names), lost.count((True, True)), first_lost, second_lost, unpaired, p_value)

    def sentence(self, first: str, second: str, confidence: float = 0.95) -> str:
        """Return it for people; `first` and `second` are the names of the policies."""
        one, other = len(self.first_lost), len(self.second_lost)
        seen = f'{first} alone failed in {one}, {second} alone in {other}, both in {self.both_failed} of {self.pairs} worlds'
        left = f'; {self.unpaired} episodes that one alone ran do not count' if self.unpaired else ''
        if self.p_value > 1.0 - confidence:
            return f'no difference is shown (p {self.p_value:.2g}): {seen}{left}'
        better = second if one > other else first
        return f'{better} is better (p {self.p_value:.2g}): {seen}{left}'

    def document(self) -> dict[str, Any]:
        """Return everything, for a JSON file."""
        return asdict(self)


def _draw(episode: Episode) -> dict[str, Any]:
    return {name: values for name, values in episode.draw.items() if name not in OWN}
