# SPDX-License-Identifier: Apache-2.0
"""`Verdict`: what a study says about a policy: whether the claim holds, on what grounds, and where it failed.

The claim is about the mixture of scenarios by their shares. Wilson's intervals of the strata show where to look; they are
many, each by itself, and claim nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sim2real_ros.errors import RunError
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.plan import plan
from sim2real_ros.validation.schema import ClaimSection, ValidationFile
from sim2real_ros.validation.sequential import Decision, Design
from sim2real_ros.validation.statistics import episodes_needed, percent, wilson


@dataclass(frozen=True, slots=True)
class Stratum:
    """The episodes of one scenario.

    Attributes:
        low: Wilson's interval of the success rate, 95 %.
        high: its other end.
    """

    scenario: str
    n: int
    failures: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim.

    Attributes:
        level: its name.
        success: rate that is claimed.
        confidence: of the claim.
        planned: episodes at most.
        holds: whether the claim does; the exit code follows from it alone.
        decided: whether the test came to its end.
        n: episodes that count.
        failures: in them.
        bound: success rate that they prove with that confidence; None while it is undecided.
        reasons: why episodes failed, the most frequent first.
        strata: by scenario.
        sentence: all of it for people.
    """

    level: str
    success: float
    confidence: float
    planned: int
    holds: bool
    decided: bool
    n: int
    failures: int
    bound: float | None
    reasons: Mapping[str, int]
    strata: tuple[Stratum, ...]
    sentence: str

    @classmethod
    def of(
        cls, level: ValidationFile, episodes: Sequence[Episode], planned: int | None = None, *, early: bool = True
    ) -> Verdict:
        """Judge a study.

        Args:
            level: gives scenarios and claim.
            episodes: in any order; those that are not in the plan do not count.
            planned: episodes of the plan, as fixed before the first one; the level's when None.
            early: whether the test might stop before its end, as fixed before the first one.

        Raises:
            RunError: an episode is there twice, with different outcomes.
        """
        planned, claim = level.episodes if planned is None else planned, level.claim
        order, there = [str(episode) for episode in plan(level, planned)], by_id(episodes)
        missing = next((k for k, name in enumerate(order) if name not in there), len(order))
        counted = [there[name] for name in order[:missing]]
        design = Design.of(planned, claim.success, claim.confidence, early)
        decision = design.decide([not episode.passed for episode in counted])
        if decision is not None:
            counted = counted[: decision.n]
        failed = [episode for episode in counted if not episode.passed]
        reasons = dict(Counter(episode.reason for episode in failed).most_common())
        if decision is None:
            sentence = _undecided(len(counted), len(failed), order, missing)
        elif planned < (needed := episodes_needed(claim.success, claim.confidence)):
            sentence = f'{_count(planned, "episode")} are too few: {_claim(claim)} needs {needed}, even without a failure'
        else:
            sentence = _decided(decision, design, claim, reasons)
        return cls(
            level.name, claim.success, claim.confidence, planned, decision is not None and decision.passed,
            decision is not None, len(counted), len(failed), None if decision is None else decision.bound, reasons,
            tuple(_stratum(name, counted) for name in level.scenarios), sentence,
        )  # fmt: skip

    @property
    def exit_code(self) -> int:
        """0 where the claim holds, else 1."""
        return 0 if self.holds else 1

    def document(self) -> dict[str, Any]:
        """Return everything, for a JSON file."""
        return asdict(self)


def by_id(episodes: Sequence[Episode]) -> dict[str, Episode]:
    """Return episodes by their ids, each once.

    Raises:
        RunError: one of them is there twice, with different outcomes.
    """
    table: dict[str, Episode] = {}
    for episode in episodes:
        if table.setdefault(episode.id, episode) != episode:
            raise RunError(f'episode {episode.id} is there twice with different outcomes: they are not of one study')
    return table


def _stratum(scenario: str, counted: Sequence[Episode]) -> Stratum:
    outcomes = [episode.passed for episode in counted if episode.scenario == scenario]
    n, failures = len(outcomes), outcomes.count(False)
    return Stratum(scenario, n, failures, *wilson(failures, n))


def _decided(decision: Decision, design: Design, claim: ClaimSection, reasons: Mapping[str, int]) -> str:
    seen = f'{_count(decision.failures, "failure")} in {_count(decision.n, "episode")}'
    if decision.passed:
        end = '; no more were needed' if decision.n < design.looks[-1] else ''
        return f'{_claim(claim)} holds: {seen} prove at least {percent(decision.bound)}{end}'
    why = ', '.join(f'{count} {reason}' for reason, count in reasons.items())
    allowed = f'{design.looks[-1]} may have {design.allowed[-1]}'
    return f'{_claim(claim)} does not hold: {seen}, and {allowed} ({why}); they prove {percent(decision.bound)}'


def _undecided(n: int, failures: int, order: Sequence[str], missing: int) -> str:
    if not n:
        return 'nothing can be said: no episode has been run'
    seen = f'{n} of {len(order)} episodes have been run, with {_count(failures, "failure")}'
    return f'undecided: {seen}; the next is {order[missing]}. Run the study again, it goes on there'


def _claim(claim: ClaimSection) -> str:
    return f'the claim of {percent(claim.success)} success with {percent(claim.confidence)} confidence'


def _count(n: int, what: str) -> str:
    return f'{n} {what}' if n == 1 else f'{n or "no"} {what}s'
