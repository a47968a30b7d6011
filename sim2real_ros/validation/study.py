# SPDX-License-Identifier: Apache-2.0
"""A study: the episodes of a plan, run by workers, written into a ledger, until the test of the claim comes to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sim2real_ros.sim.verdict import SETTLE_S
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.ledger import Ledger
from sim2real_ros.validation.plan import Chunk, chunks, lanes, plan
from sim2real_ros.validation.sequential import Decision, Design
from sim2real_ros.validation.verdict import Verdict
from sim2real_ros.validation.workers import Workers

LEAST_CLAIM = 0.8  # success rate, for a passport
FOLDER = Path('runs') / 'validation'

Seen = Callable[[Sequence[Episode]], None]  # of a batch that has come to its end


@dataclass(frozen=True, slots=True)
class Study:
    """What is asked.

    Attributes:
        trial: policy, robot, level and seed.
        episodes: at most so many.
        early: whether it may end before, at the looks of its design.
    """

    trial: Trial
    episodes: int
    early: bool = True

    @property
    def design(self) -> Design:
        """The test of the level's claim."""
        claim = self.trial.level.claim
        return Design.of(self.episodes, claim.success, claim.confidence, self.early)

    @property
    def terms(self) -> str:
        """What its verdict stands on, for people; fixed before the first episode."""
        claim = self.trial.level.claim
        end = 'may end before' if self.early else 'all of them'
        return f'{self.episodes} episodes, {end}, {claim.success:g} with confidence {claim.confidence:g}'

    @property
    def folder(self) -> Path:
        """Where its files go, from the folder in which it was started."""
        return FOLDER / f'{self.trial.contract.file.name}-{self.trial.level.name}-{self.trial.seed}'


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out.

    Attributes:
        study: what was asked.
        episodes: in the order of the plan, up to the end of the test.
        verdict: on the claim.
        began_as: terms of the study that began the ledger; whoever judges its episodes by others has a second chance.
    """

    study: Study
    episodes: list[Episode]
    verdict: Verdict
    began_as: str = ''

    @property
    def obstacle(self) -> str:
        """Why a claim that holds earns no passport all the same; '' where it does."""
        trial = self.study.trial
        level, success = trial.level, trial.level.success
        tracked = success.tracking_m_s is not None or success.tracking_rad_s is not None
        if not level.passport:
            return f'level {level.name} earns none, validate at the level standard'
        if level.claim.success < LEAST_CLAIM:
            return f'level {level.name} claims {level.claim.success:.0%}, {LEAST_CLAIM:.0%} is the least'
        if tracked and min(level.episode_s, level.command_s) <= SETTLE_S:
            return f'in episodes of {level.episode_s:g} s no command is judged, whose first {SETTLE_S:g} s do not count'
        if trial.robot.floating and trial.contract.file.commands.velocity is not None and not tracked:
            return f'level {level.name} does not judge whether commands are followed: validate at the level standard'
        if self.second_chance:
            return (
                f'these episodes were begun as a study of {self.began_as}, and are judged as {self.study.terms}: that is a '
                'second chance to be lucky. Ask for the first once more, or start over with --fresh'
            )
        return ''

    @property
    def second_chance(self) -> bool:
        """Whether the same episodes were begun under other terms."""
        return self.began_as not in ('', self.study.terms)


def conduct(study: Study, ledger: Ledger, workers: Workers, seen: Seen | None = None) -> Outcome:
    """Run what is missing from a ledger, and decide.

    Which episodes count is settled by the plan, never by which worker was first: the outcome is the same with any number
    of workers, and after any interruption.

    Args:
        study: what is asked.
        ledger: gets every episode; what it has is not run again.
        workers: run them.
        seen: is shown each batch when it is in the ledger.

    Raises:
        RunError: a batch kills its workers.
        OutputError: the ledger cannot be written.
    """
    order, design = plan(study.trial.level, study.episodes), study.design
    ids = [str(episode) for episode in order]
    decision = _decide(design, ids, ledger)

    def missing() -> Iterator[Chunk]:
        for chunk in chunks(order, set(ledger.episodes), lanes(study.episodes, workers.jobs)):
            if decision is not None:
                return  # what is under way comes to its end, nothing new begins
            yield chunk

    for _, episodes in workers.each(partial(run_chunk, study.trial), missing()):
        ledger.append(episodes)
        decision = decision or _decide(design, ids, ledger)
        if seen is not None:
            seen(episodes)
    counted = [ledger.episodes[name] for name in ids if name in ledger.episodes]
    verdict = Verdict.of(study.trial.level, counted, study.episodes, early=study.early)
    return Outcome(study, counted[: verdict.n], verdict, ledger.terms)


def run_chunk(trial: Trial, chunk: Chunk) -> list[Episode]:
    """Run a batch."""
    return run(trial, chunk.scenario, chunk.indices)


def _decide(design: Design, ids: Sequence[str], ledger: Ledger) -> Decision | None:
    failed = []
    for name in ids:
        episode = ledger.episodes.get(name)
        if episode is None:
            break
        failed.append(not episode.passed)
    return design.decide(failed)
