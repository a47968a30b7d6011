# SPDX-License-Identifier: Apache-2.0
"""Which change would mend it: a policy that fails meets the same calm worlds again, with one thing changed at a time.

What a policy does not get on with is often the same in every episode (a gain twice as high, a motor of half the strength), so
nothing that was drawn explains it. Undoing it does: the margins of the same episodes rise. They do so visibly where nothing
else tips the robot over: on flat ground, without pushes. Changes are tried one by one; two faults that hide each other are
not found, and a change that helps is a pointer to where to look, no proof. Every change meets a few worlds; the best of
them then meet many others, which alone tell what they do: figures that chose would flatter what they chose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.validation.draws import Draws
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.episodes import Trial, run
from sim2real_ros.validation.plan import Chunk, chunks, lanes, plan
from sim2real_ros.validation.schema import NOT_NEGATIVE
from sim2real_ros.validation.workers import Workers

EPISODES, MORE = 24, 96  # that meet each change, and that meet those that do best
FINALISTS = 6
LEAST = 0.02  # margin that a change must gain on average
PUSHES = ('push_speed_m_s', 'push_turn_rad_s', 'force_n')
LUCK = 0.05  # chance that any useless change is shown (Wilcoxon's signed ranks, all finalists together)

Seen = Callable[[Sequence[Episode]], None]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one drawn parameter in every episode: its value times `factor`, plus `offset`.

    Attributes:
        part: joint or axis, by number; None for all.
    """

    name: str
    factor: float = 1.0
    offset: float = 0.0
    part: int | None = None

    def on(self, draws: Draws) -> Draws:
        """Return draws with the change."""
        values = {name: np.array(value) for name, value in draws.values.items()}
        place = values[self.name] if self.part is None else values[self.name][:, self.part]
        place *= self.factor
        place += self.offset
        if self.name in NOT_NEGATIVE:
            np.maximum(values[self.name], 0.0, out=values[self.name])
        return replace(draws, values=values)


@dataclass(frozen=True, slots=True)
class Supposed(Trial):
    """A trial in which something is otherwise than drawn."""

    changes: tuple[Change, ...] = ()

    @classmethod
    def of_trial(cls, trial: Trial, *changes: Change) -> Supposed:
        """Return a trial with changes, on top of those that it has."""
        own = {field.name: getattr(trial, field.name) for field in fields(Trial)}
        return cls(**own, changes=(*getattr(trial, 'changes', ()), *changes))

    def draw(self, scenario: str, indices: Sequence[int], z: np.ndarray | None = None) -> Draws:
        """Draw episodes of a scenario, changed."""
        draws = Trial.draw(self, scenario, indices, z)
        for change in self.changes:
            draws = change.on(draws)
        return draws


@dataclass(frozen=True, slots=True)
class Mend:
    """What a change did.

    Attributes:
        text: the change, for people.
        gain: mean rise of the margin, paired.
        chance: of as much by luck, over all finalists.
        mended: failures that became successes.
        failures: before.
    """

    text: str
    gain: float
    chance: float
    mended: int
    failures: int

    @property
    def shown(self) -> bool:
        """Whether it is more than luck."""
        return self.gain >= LEAST and self.chance < LUCK

    @property
    def sentence(self) -> str:
        """What it did, for people."""
        return f'{self.text}: margin {self.gain:+.2f}, mends {self.mended} of {self.failures} failures'

    def document(self) -> dict[str, Any]:
        """Return everything, for a JSON file."""
        return asdict(self)


def calm(trial: Trial) -> Trial:
    """Return a trial of the level's flat scenarios, where it has any, without pushes and forces; episodes keep their names."""
    scenarios = trial.level.scenarios
    flat = {name: scenario for name, scenario in scenarios.items() if scenario.ground == 'flat'} or scenarios
    still = trial.level.ranges.model_copy(update=dict.fromkeys(PUSHES, [0.0, 0.0]))
    return replace(trial, level=trial.level.model_copy(update={'scenarios': flat, 'ranges': still}))


def remedies(trial: Trial) -> dict[str, Trial]:
    """Return the changes that are tried, by what they are for people."""
    robot, every = trial.robot, dict[str, Trial]()

    def change(text: str, *changes: Change) -> None:
        every[text] = Supposed.of_trial(trial, *changes)

    change('no delay of the targets', Change('action_delay_s', 0.0))
    change('no delay of the torque', Change('command_delay_s', 0.0))
    change('no delay of the sensors', Change('joint_delay_s', 0.0), Change('imu_delay_s', 0.0))
    change('half the stiffness', Change('stiffness_factor', 0.5))
    change('twice the stiffness', Change('stiffness_factor', 2.0))
    change('half the damping', Change('damping_factor', 0.5))
    change('twice the damping', Change('damping_factor', 2.0))
    change('no payload', Change('payload_kg', 0.0))
    change('no encoder offsets', Change('joint_offset_rad', 0.0))
    for i, joint in enumerate(robot.joints):
        change(f'twice the torque of {joint}', Change('motor_strength_factor', 2.0, part=i))
    if robot.floating:
        change('friction of 1', Change('friction', 0.0, 1.0))
        for axis, name in enumerate('xy'):
            for angle in (0.1, -0.1):
                change(f'the IMU turned by {angle:+g} rad about {name}', Change('imu_mount_rad', 1.0, angle, axis))
    reversed_ = reverse_history(trial.contract)
    if reversed_ is not None:
        every['the history in the other order'] = replace(trial, contract=reversed_)
    return every


def reverse_history(contract: Contract) -> Contract | None:
    """Return a contract whose histories run the other way, None where there is none."""
    document = json.loads(contract.to_json())
    if not _reverse(document['inputs']):
        return None
    return resolve(validate(ContractFile, document, contract.source), contract.source, contract.folder)


def workload(changes: int, episodes: int = EPISODES, more: int = MORE) -> int:
    """Return how many episodes `mends` runs for a number of changes."""
    if changes <= FINALISTS:
        return (1 + changes) * more
    return (1 + changes) * episodes + (1 + FINALISTS) * more


def mends(
    trial: Trial,
    workers: Workers,
    *,
    tried: Mapping[str, Trial] | None = None,
    episodes: int = EPISODES,
    more: int = MORE,
    seen: Seen | None = None,
) -> list[Mend]:
    """Try changes; returns what the finalists did, the surest first.

    Args:
        trial: of a policy that fails; `calm` makes small effects visible.
        workers: run the episodes.
        tried: changed trials instead of `remedies(trial)`, by their text.
        episodes: that meet each change, the first of the plan: chosen by their outcome, any change would help them. None do
            where all changes may be finalists.
        more: that meet the finalists, the next ones of the plan.
        seen: is shown each batch.
    """
    rest = dict(remedies(trial) if tried is None else tried)
    order, seen = plan(trial.level, episodes + more), seen or (lambda _: None)
    if len(rest) > FINALISTS:
        heat = _compare(trial, rest, order[:episodes], workers, seen)
        rest = {mend.text: rest[mend.text] for mend in heat[:FINALISTS]}
    return _compare(trial, rest, order[episodes:], workers, seen)


def _compare(trial: Trial, tried: Mapping[str, Trial], order: Sequence[EpisodeId], workers: Workers, seen: Seen) -> list[Mend]:
    """Return what each change does to episodes, the surest first."""
    every = {'': trial, **tried}
    results: dict[str, dict[str, Episode]] = {text: {} for text in every}
    dealt = list(chunks(order, (), lanes(len(order) * len(every), workers.jobs)))
    for (text, _), part in workers.each(partial(_with, every), [(text, chunk) for text in every for chunk in dealt]):
        results[text].update((episode.id, episode) for episode in part)
        seen(part)
    before = results.pop('')
    found = [_mend(text, before, after) for text, after in results.items()]
    found.sort(key=lambda mend: (mend.chance, -mend.gain))
    return [replace(mend, chance=min(1.0, len(found) * mend.chance)) for mend in found]


def _with(every: Mapping[str, Trial], task: tuple[str, Chunk]) -> list[Episode]:
    text, chunk = task
    return run(every[text], chunk.scenario, chunk.indices)


def _mend(text: str, before: Mapping[str, Episode], after: Mapping[str, Episode]) -> Mend:
    """Return what a change did; the chance is of this one alone."""
    from scipy.stats import wilcoxon  # noqa: PLC0415 - optional; the draws have needed it before

    rise = np.array([after[name].margin - episode.margin for name, episode in sorted(before.items())])
    chance = float(wilcoxon(rise, alternative='greater').pvalue) if rise.any() else 1.0
    failed = [name for name, episode in before.items() if not episode.passed]
    return Mend(text, float(rise.mean()), chance, sum(after[name].passed for name in failed), len(failed))


def _reverse(part: Any) -> bool:
    """Reverse every history of a document; returns whether there is any longer than one."""
    found = False
    for key, inner in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if key == 'lags' and inner and len(inner) > 1:
            part[key] = inner[::-1]
            found = True
        else:
            found = _reverse(inner) or found
    return found
