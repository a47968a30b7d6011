# SPDX-License-Identifier: Apache-2.0
"""`sim2real validate --replay ID`: one episode once more, exactly: what was drawn, what happened, how it looked."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sim2real_ros.errors import NotFoundError, Sim2RealError
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.episode import Episode, EpisodeId
from sim2real_ros.validation.episodes import Trial, Watch, run
from sim2real_ros.validation.fingerprint import fingerprint
from sim2real_ros.validation.ledger import Ledger
from sim2real_ros.validation.pictures import Film, Window
from sim2real_ros.validation.plant import Plant
from sim2real_ros.validation.worst import Found

WORST = 'worst'  # scenario of the ids `worst:1`, `worst:2` ... of what a search found


def replay(trial: Trial, folder: Path, name: str, *, view: bool, video: Path | None) -> int:
    """Run an episode again and print it; returns 0 when it came out as before, or for the first time.

    Args:
        trial: it belongs to.
        folder: of the study, which may not exist.
        name: `flat:17`, or `worst:3` of the last search.
        view: show it in MuJoCo's window.
        video: write an animation here.
    """
    wanted, z, before = _find(trial, folder, EpisodeId.parse(name))
    watches: list[Watch] = []
    with ExitStack() as stack:
        if view:
            watches.append(stack.enter_context(Window(trial, wanted.scenario)))
        if video is not None:
            watches.append(stack.enter_context(Film(trial, wanted.scenario, video)))
        episode = run(trial, wanted.scenario, [wanted.index], z=z, watch=_all(watches) if watches else None)[0]
    _print(episode)
    if video is not None:
        Console(highlight=False).print(f'written: {video}', markup=False, soft_wrap=True)
    return _compare(episode, before)


def _find(trial: Trial, folder: Path, wanted: EpisodeId) -> tuple[EpisodeId, np.ndarray | None, Episode | str]:
    """Return the episode, its coordinates where a search gave them, and how it came out before, or why that is unknown."""
    scenarios = trial.level.scenarios
    if wanted.scenario == WORST and WORST not in scenarios:
        path = folder / f'{WORST}.json'
        try:
            found = [Found.read(document) for document in json.loads(path.read_text(encoding='utf-8'))]
        except OSError:
            raise NotFoundError(f'there is no {path}: search for the worst cases first, with --worst') from None
        except (ValueError, TypeError, KeyError):
            raise NotFoundError(f'{path} is not what --worst writes: search again') from None
        if not 1 <= wanted.index <= len(found):
            raise NotFoundError(f'there is no {wanted}: {path} has {len(found)}, from {WORST}:1 on')
        one = found[wanted.index - 1]
        return EpisodeId.parse(one.episode.id), np.array([one.z]), one.episode
    if wanted.scenario not in scenarios:
        raise NotFoundError(f'level {trial.level.name} has no scenario "{wanted.scenario}"; it has {", ".join(scenarios)}')
    path = folder / 'episodes.jsonl'
    if not path.is_file():
        return wanted, None, 'there is no ledger of this study to compare it with'
    try:
        with Ledger(path, fingerprint(trial)) as ledger:
            return wanted, None, ledger.episodes.get(str(wanted), f'{path} does not have it')
    except Sim2RealError as error:
        return wanted, None, str(error)


def _all(watches: list[Watch]) -> Watch:
    def watch(now: float, plant: Plant, controls: Controls, command: np.ndarray) -> None:
        for one in watches:
            one(now, plant, controls, command)

    return watch


def _print(episode: Episode) -> None:
    console = Console(highlight=False)
    outcome = 'success' if episode.passed else f'failed: {episode.reason} at {episode.end_s:.2f} s'
    console.print(
        f'{episode.id}: {outcome}, margin {episode.margin:+.3f}, state {episode.digest}', markup=False, soft_wrap=True
    )
    for title, numbers in (('what happened', episode.figures), ('what was drawn', episode.draw)):
        table = Table(title=title, title_justify='left', show_header=False)
        for name, value in numbers.items():
            table.add_row(name, _shown(value))
        console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ('\n' if value and isinstance(value[0], list) else '  ').join(_shown(one) for one in value)
    return f'{value:.4g}' if isinstance(value, float) else str(value)


def _compare(episode: Episode, before: Episode | str) -> int:
    console = Console(highlight=False)
    if isinstance(before, str):
        console.print(f'not compared: {before}', markup=False, soft_wrap=True)
        return 0
    if before == episode:
        console.print('the same as in the study, bit for bit', markup=False, soft_wrap=True)
        return 0
    console.print(
        f'NOT the same as in the study: there it ended with "{before.reason or "success"}", state {before.digest}. '
        'Machine, versions or files have changed since',
        markup=False,
        soft_wrap=True,
    )
    return 1
