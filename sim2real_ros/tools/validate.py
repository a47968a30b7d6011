# SPDX-License-Identifier: Apache-2.0
"""`sim2real validate POLICY`: thousands of randomised worlds, a verdict with statistics, and where and why the policy fails."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import Any

from rich.console import Console

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import ParameterError
from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.report.page import require_plotly
from sim2real_ros.robot import load_robot
from sim2real_ros.tools.arguments import milliseconds, not_negative, positive
from sim2real_ros.tools.replay_episode import replay
from sim2real_ros.tools.study_passport import issue_passport, withdraw_passport
from sim2real_ros.tools.study_progress import StudyProgress
from sim2real_ros.tools.study_summary import print_curves, print_found, print_mends, print_outcome
from sim2real_ros.validation.comparison import Comparison
from sim2real_ros.validation.episode import lowest_margins
from sim2real_ros.validation.episodes import Trial
from sim2real_ros.validation.fingerprint import fingerprint
from sim2real_ros.validation.ledger import Ledger
from sim2real_ros.validation.mending import Mend, calm, mends, remedies, workload
from sim2real_ros.validation.report import write_report
from sim2real_ros.validation.schema import MOST_EPISODES, ValidationFile, load_validation
from sim2real_ros.validation.study import Outcome, Study, conduct
from sim2real_ros.validation.tolerances import EPISODES as CURVE_EPISODES
from sim2real_ros.validation.tolerances import Curve, sweeps, tolerances
from sim2real_ros.validation.workers import Workers
from sim2real_ros.validation.worst import WALKS, Found, search

OUTPUTS = ('html', 'json', 'video')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--robot', help="instead of the contract's own")
    parser.add_argument('--level', default='standard', help='quick, standard (default), hard, arm, or a YAML file')
    parser.add_argument('--episodes', type=positive, help="at most so many, instead of the level's")
    parser.add_argument('--seed', type=not_negative, default=1, help='of the worlds (default 1)')
    parser.add_argument('--no-early-stop', action='store_true', help='run every episode, whatever is known before')
    parser.add_argument('--fresh', action='store_true', help='forget the episodes that an earlier run left')
    parser.add_argument('--jobs', type=positive, help='processes (default: one per core)')
    parser.add_argument('--scheduler', help='a cluster instead: tcp://HOST:PORT of Dask, or ray://HOST:PORT')
    parser.add_argument('--against', metavar='POLICY_B', help='compare with another policy in the same worlds')
    parser.add_argument('--tolerances', action='store_true', help='measure how much delay, payload and so on it bears')
    parser.add_argument('--worst', action='store_true', help='search for the most plausible failures')
    parser.add_argument('--replay', metavar='ID', help='run one episode again: flat:17, or worst:3 of the last --worst')
    parser.add_argument('--view', action='store_true', help="with --replay: show it in MuJoCo's window")
    parser.add_argument('--video', type=Path, metavar='FILE.gif', help='with --replay: write an animation')
    parser.add_argument('--html', type=Path, metavar='FILE', help='write a report that opens in any browser')
    parser.add_argument(
        '--command-age-ms',
        type=milliseconds,
        help='for the report: how old commands are where it will run, as in sim2real preflight',
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='write everything but the single episodes')
    parser.epilog = (
        'Episodes are kept in runs/validation/POLICY-LEVEL-SEED/episodes.jsonl; an interrupted study goes on there. '
        'Exit code 0 only when the claim holds. When it does not, changes are tried one by one to find the cause.'
    )


def main(arguments: argparse.Namespace) -> int:
    """Validate; returns 0 when the claim holds."""
    _refuse_nonsense(arguments)
    if arguments.video is not None and not os.environ.get('DISPLAY'):
        os.environ.setdefault('MUJOCO_GL', 'egl')  # before MuJoCo is imported
    trial, episodes = _trial(arguments, arguments.policy)
    study = Study(trial, episodes, early=not (arguments.no_early_stop or arguments.against))
    _refuse_inputs(arguments, trial)
    if arguments.replay:
        return replay(trial, study.folder, arguments.replay, view=arguments.view, video=arguments.video)
    rival = _rival(arguments, study) if arguments.against else None
    with Workers(arguments.jobs, arguments.scheduler) as workers:
        outcome = _run(study, workers, arguments.fresh)
        comparison = _compare(outcome, rival, workers, arguments.fresh) if rival is not None else None
        curves = _curves(outcome, workers) if arguments.tolerances else []
        found = _worst(outcome, workers) if arguments.worst else []
        mended = [] if outcome.verdict.holds or not outcome.verdict.failures else _mends(outcome, workers)
    if outcome.verdict.holds:
        issue_passport(outcome, curves)
    else:
        withdraw_passport(outcome)
    document = _document(outcome, curves, found, mended, comparison)
    _write(study.folder / 'verdict.json', document, 'verdict')
    if arguments.json is not None:
        _write(arguments.json, document, '--json')
    if arguments.html is not None:
        _report(arguments, outcome, curves, found, mended, comparison)
    return 1 if outcome.second_chance else outcome.verdict.exit_code


def _refuse_nonsense(arguments: argparse.Namespace) -> None:
    """Refuse what would be left out without a word, or be found wrong after a long run only."""
    if (arguments.view or arguments.video) and not arguments.replay:
        raise ParameterError('--view and --video show one episode: say which with --replay ID')
    others = [name for name in ('against', 'tolerances', 'worst', 'html', 'json') if getattr(arguments, name)]
    if arguments.replay and others:
        raise ParameterError(f'--replay shows one episode; leave out {", ".join(f"--{name}" for name in others)}')
    if arguments.episodes is not None and arguments.episodes > MOST_EPISODES:
        raise ParameterError(f'--episodes: at most {MOST_EPISODES} are possible, {arguments.episodes} given')
    for option in OUTPUTS:
        if getattr(arguments, option) is not None:
            writable_file(getattr(arguments, option), f'--{option}')
    if arguments.html is not None:
        require_plotly()


def _refuse_inputs(arguments: argparse.Namespace, trial: Trial) -> None:
    """Refuse to write over what is read, or twice into one file."""
    taken = {Path(trial.contract.source), trial.contract.model_path, trial.robot.path, trial.robot.urdf, Path(arguments.level)}
    seen = {path.resolve() for path in taken if path is not None}
    for option in OUTPUTS:
        path = getattr(arguments, option)
        if path is not None and path.resolve() in seen:
            raise ParameterError(f'--{option}: {path} is read or written here already; give another file')
        if path is not None:
            seen.add(path.resolve())


def _trial(arguments: argparse.Namespace, policy: str) -> tuple[Trial, int]:
    level, _ = load_validation(arguments.level)
    contract = load_contract(policy)
    robot = load_robot(arguments.robot or contract.file.robot)
    return Trial.of(level, robot, contract, arguments.seed), arguments.episodes or level.episodes


def _run(study: Study, workers: Workers, fresh: bool) -> Outcome:
    with Ledger(study.folder / 'episodes.jsonl', fingerprint(study.trial), study.terms, fresh=fresh) as ledger:
        done = len(ledger.episodes)
        if done:
            Console(highlight=False).print(f'{done} episodes were run before: {ledger.path}', markup=False, soft_wrap=True)
        name = f'{study.trial.contract.file.name}, {study.trial.level.name}'
        try:
            with StudyProgress(name, study.episodes, min(done, study.episodes)) as progress:
                outcome = conduct(study, ledger, workers, progress)
        except KeyboardInterrupt:
            kept = f'{len(ledger.episodes)} episodes are kept in {ledger.path}: the same command goes on there'
            Console(highlight=False).print(kept, markup=False, soft_wrap=True)
            raise
    print_outcome(outcome, progress.sentence)
    return outcome


def _rival(arguments: argparse.Namespace, study: Study) -> Study:
    """Return the study of the policy to compare with."""
    trial, episodes = _trial(arguments, arguments.against)
    rival = Study(trial, episodes, early=False)
    if study.trial.contract.id == trial.contract.id:
        raise ParameterError(f'--against: {arguments.against} is the same policy')
    if rival.folder == study.folder:
        name = trial.contract.file.name
        raise ParameterError(f'--against: both policies are called {name}; give one another `name` in its contract')
    return rival


def _compare(outcome: Outcome, rival: Study, workers: Workers, fresh: bool) -> Comparison:
    second = _run(rival, workers, fresh)
    comparison = Comparison.of(outcome.episodes, second.episodes)
    one, other = (study.trial.contract.file.name for study in (outcome.study, rival))
    Console(highlight=False).print(comparison.sentence(one, other), markup=False, soft_wrap=True)
    return comparison


def _curves(outcome: Outcome, workers: Workers) -> list[Curve]:
    trial = outcome.study.trial
    tried = sweeps(trial.robot)
    with StudyProgress('tolerances', CURVE_EPISODES * sum(len(sweep.values) for sweep in tried)) as progress:
        curves = tolerances(trial, workers, tried=tried, seen=progress)
    print_curves(curves, trial.level)
    return curves


def _worst(outcome: Outcome, workers: Workers) -> list[Found]:
    with StudyProgress(f'worst cases, {WALKS} walks', WALKS) as progress:
        found = search(outcome.study.trial, workers, outcome.episodes, seen=progress.advance)
    _write(outcome.study.folder / 'worst.json', [failure.document() for failure in found], '--worst')
    print_found(found)
    return found


def _mends(outcome: Outcome, workers: Workers) -> list[Mend]:
    trial = calm(outcome.study.trial)
    tried = remedies(trial)
    with StudyProgress('what would mend it', workload(len(tried))) as progress:
        mended = mends(trial, workers, tried=tried, seen=progress)
    print_mends(mended)
    return mended


def _document(
    outcome: Outcome, curves: list[Curve], found: list[Found], mended: list[Mend], comparison: Comparison | None
) -> dict[str, Any]:
    level: ValidationFile = outcome.study.trial.level
    worst = lowest_margins(outcome.episodes)
    return {
        'schema': 1, 'study': fingerprint(outcome.study.trial), 'verdict': outcome.verdict.document(),
        'level': level.model_dump(mode='json', by_alias=True), 'worst': [episode.document() for episode in worst],
        'tolerances': [curve.document() for curve in curves], 'found': [failure.document() for failure in found],
        'mends': [mend.document() for mend in mended], 'comparison': None if comparison is None else comparison.document(),
    }  # fmt: skip


def _report(
    arguments: argparse.Namespace,
    outcome: Outcome,
    curves: list[Curve],
    found: list[Found],
    mended: list[Mend],
    comparison: Comparison | None,
) -> None:
    words = ['sim2real', 'validate', arguments.policy, '--level', arguments.level, '--seed', str(arguments.seed)]
    words += ['--robot', arguments.robot] if arguments.robot else []
    age = None if arguments.command_age_ms is None else 1e-3 * arguments.command_age_ms
    write_report(
        arguments.html, outcome, command=shlex.join(words), curves=curves, found=found, mends=mended, comparison=comparison,
        other=arguments.against or '', command_age_s=age,
    )  # fmt: skip
    Console(highlight=False).print(f'report: {arguments.html}', markup=False)


def _write(path: Path, document: Any, option: str) -> None:
    write_text(path, json.dumps(document, indent=2) + '\n', option)
