# SPDX-License-Identifier: Apache-2.0
"""What a study means for the passport beside its policy: one is written, one is withdrawn, or one stays."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from sim2real_ros.errors import OutputError
from sim2real_ros.paths import write_text
from sim2real_ros.validation.admission import valid_passport
from sim2real_ros.validation.fingerprint import fingerprint
from sim2real_ros.validation.passport import Passport, passport_path, write_passport
from sim2real_ros.validation.study import Outcome
from sim2real_ros.validation.tolerances import Curve


def issue_passport(outcome: Outcome, curves: Sequence[Curve]) -> None:
    """Write the passport of a claim that holds beside its policy, and say so, or why there is none."""
    trial, console = outcome.study.trial, Console(highlight=False)
    if outcome.obstacle:
        console.print(f'no passport: {outcome.obstacle}', markup=False, soft_wrap=True)
        return
    borne = {curve.name: curve.tolerance for curve in curves if curve.tolerance is not None}
    passport = Passport.issue(
        outcome.verdict, trial.level, trial.contract, trial.robot, trial.seed, tolerances=borne, made_with=fingerprint(trial)
    )
    try:
        console.print(f'passport: {write_passport(passport, trial.contract)}', markup=False, soft_wrap=True)
    except OutputError as error:
        path = outcome.study.folder / 'passport.json'
        write_text(path, passport.to_json() + '\n', 'passport')
        console.print(f'{error}; it is in {path}, put it there', markup=False, soft_wrap=True)


def withdraw_passport(outcome: Outcome) -> None:
    """Take the passport away from a policy that fails in the same worlds; say of one that stays that it does.

    Only a study as large as its level wants speaks against a passport: a short one fails for want of episodes.
    """
    trial, console = outcome.study.trial, Console(highlight=False)
    path = passport_path(trial.contract)
    passport = valid_passport(trial.contract)
    level, study = trial.level, outcome.study
    whole = outcome.verdict.decided and study.episodes >= level.episodes and not outcome.second_chance
    if passport is None or not path.is_file():
        return
    if whole and passport.worlds == level.model_dump(mode='json', by_alias=True):
        path.unlink()
        console.print(f'withdrawn: {path}, which said the contrary', markup=False, soft_wrap=True)
    else:
        console.print(f'{path} stays: {passport.sentence}', markup=False, soft_wrap=True)
