# SPDX-License-Identifier: Apache-2.0
"""False alarms: hours of simulated walking through the very `SafetyFilter`, at the ranges of `sim2real evaluate`.

`python -m bench.alarms --hours 2`. Each episode is another randomised robot that is stood up, walks for a minute and is
pushed. A trip of a robot that has really fallen is right; every other one is a false alarm. Beside the counts stands how
near each monitor came to its threshold: a threshold should be 1.5 times the largest value of all episodes or more.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import evidence
from bench.margins import Margins
from bench.walk import Episode, Walk
from sim2real_ros.contract import load_contract
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.paths import writable_file
from sim2real_ros.robot import load_robot
from sim2real_ros.safety.certificate import certify
from sim2real_ros.tools.arguments import not_negative, positive

POLICY = 'go2_velocity'
ALTERED_BAR = 0.01
WIDTH = 150  # of a log
MARGIN = 1.5  # a threshold over the largest value of all episodes
FALLING = 0.6  # rad: a robot that leans so far when the filter trips was about to fall
SEED = 60000  # novelty has 30000, evaluate 20000, training 1


def main() -> int:
    """Measure; returns 0 when there was no false alarm and few torques were altered."""
    arguments = _arguments()
    for option in ('json', 'markdown'):
        if getattr(arguments, option) is not None:
            writable_file(getattr(arguments, option), f'--{option}')
    episodes: list[Episode] = []
    with Progress(disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task('walking', total=arguments.hours * 3600)
        for batch in _rounds(arguments, lambda s: progress.advance(bar, s)):
            episodes += batch
            walked = sum(e.walked_s for e in episodes)
            progress.update(bar, completed=walked)
            print(f'{walked / 3600:.2f} h walked in {len(episodes)} episodes; {_line(episodes)}', flush=True)
    figures = summary(episodes, arguments)
    show(figures)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')
    if arguments.markdown is not None:
        evidence.put(arguments.markdown, 'alarms', markdown(figures))
    return 0 if not figures['false_alarms'] and figures['altered_share']['any'] < ALTERED_BAR else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m bench.alarms', description=__doc__.splitlines()[0])
    parser.add_argument('--hours', type=float, default=2.0, help='of walking (default 2)')
    parser.add_argument('--episode', type=float, default=60.0, help='s of walking of each robot (default 60)')
    parser.add_argument('--robots', type=positive, default=40, help='simulated side by side (default 40)')
    parser.add_argument('--seed', type=not_negative, default=SEED, help='of everything random')
    parser.add_argument('--jobs', type=positive, default=1, help='processes (default 1)')
    parser.add_argument('--json', type=Path, help='also write the figures and every alarm here')
    parser.add_argument('--markdown', type=Path, help='put the figures into this document, as docs/safety-evidence.md')
    arguments = parser.parse_args()
    if not (0 < arguments.hours <= 1000 and 5 <= arguments.episode <= 3600):
        parser.error('--hours: up to 1000, and --episode: 5 to 3600 s, are possible')
    return arguments


def _rounds(arguments: argparse.Namespace, progress: Callable[[float], None]) -> Iterator[list[Episode]]:
    """Yield the episodes of one round after the other until the time is full; those of robots that fell are shorter."""
    left, seed, spawn = arguments.hours * 3600, arguments.seed, multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(arguments.jobs, mp_context=spawn) as pool:  # starts no process before it is used
        while left > 0:
            jobs, robots = arguments.jobs, min(arguments.robots, math.ceil(left / arguments.episode / arguments.jobs))
            if jobs == 1:
                rounds = [walk(seed, robots, arguments.episode, progress)]
            else:
                rounds = list(pool.map(walk, range(seed, seed + jobs), [robots] * jobs, [arguments.episode] * jobs))
            for episodes in rounds:
                left -= sum(e.walked_s for e in episodes)
                yield episodes
            seed += jobs


def walk(seed: int, robots: int, seconds: float, progress: Callable[[float], None] = lambda _: None) -> list[Episode]:
    """Walk one round of robots."""
    contract = load_contract(POLICY)
    robot = load_robot(contract.file.robot)
    round_ = Walk(robot, contract, robots, seed, certify(robot))
    return round_.run(seconds, lambda: progress(0.1 * np.count_nonzero(round_.active)))


def _line(episodes: list[Episode]) -> str:
    alarms = Counter(f'{a.name}{" after a fall" if a.fallen else ""}' for e in episodes for a in e.alarms)
    said = ', '.join(f'{name} {count}' for name, count in sorted(alarms.items()))
    return f'{sum(e.fell for e in episodes)} falls; trips: {said or "none"}'


def summary(episodes: list[Episode], arguments: argparse.Namespace) -> dict:
    """Return all figures."""
    robot, upright = load_robot(load_contract(POLICY).file.robot), [e for e in episodes if not e.fell]
    torques, walked = sum(e.torques for e in episodes), sum(e.walked_s for e in episodes)
    alarms = [asdict(a) for e in episodes for a in e.alarms]
    false = [a for a in alarms if not a['fallen']]
    warned: dict[str, list[float]] = {}
    for e in episodes:
        for name, seconds in e.warned_s.items():
            warned.setdefault(name, []).append(seconds)
    levels = Margins(robot, 1, 1.0 / load_contract(POLICY).file.rate_hz).levels
    margins = {
        name: {'unit': level.unit, 'threshold': level.threshold, **_extremes(upright, name)} for name, level in levels.items()
    }
    each = len(robot.joints) / max(1, torques)
    entry = np.array([e.entry_s for e in episodes])
    return {
        'policy': POLICY, 'seed': arguments.seed, 'episode_s': arguments.episode, 'episodes': len(episodes),
        'walked_h': walked / 3600, 'falls': sum(e.fell for e in episodes), 'alarms': alarms, 'false_alarms': len(false),
        'false_by_name': dict(Counter(a['name'] for a in false)),
        'false_while_falling': sum(a['lean'] > FALLING for a in false),
        'after_falls_by_name': dict(Counter(a['name'] for a in alarms if a['fallen'])),
        'never_activated': sum(bool(np.isnan(t)) and not e.alarms for t, e in zip(entry, episodes, strict=True)),
        'entry_s': [float(np.nanquantile(entry, q)) for q in (0.5, 1.0)] if not np.isnan(entry).all() else None,
        'warnings': {name: {'episodes': len(s), 'seconds': float(sum(s))} for name, s in sorted(warned.items())},
        'novelty': {'onsets': sum(sum(e.novel.values()) for e in episodes), 'episodes': sum(bool(e.novel) for e in episodes),
                    'by_component': dict(sum((Counter(e.novel) for e in episodes), Counter()).most_common())},
        'altered_share': {name: sum(e.altered[name] for e in episodes) / max(1, torques) for name in episodes[0].altered},
        'altered_when_calm': sum(e.calm[1] for e in episodes) / max(1, sum(e.calm[0] for e in episodes)),
        'altered_by_joint': {j: each * sum(e.altered_at[j] for e in episodes) for j in robot.joints},
        'altered_worst_episode': max((e.altered['any'] / e.torques for e in episodes if e.torques), default=0.0),
        'margins': margins,
    }  # fmt: skip


def _extremes(episodes: list[Episode], name: str) -> dict[str, float]:
    if not episodes:
        raise Sim2RealError('every robot fell: nothing can be said about the monitors')
    highest, lasting = (max(e.levels[name][k] for e in episodes) for k in (0, 1))
    return {'highest': highest, 'lasting': lasting, 'wanted': MARGIN * lasting}


def _rows(figures: dict) -> list[list[str]]:
    rows = []
    for name, m in figures['margins'].items():
        good = m['threshold'] >= m['wanted']
        share = '' if m['threshold'] == 0 else f'{m["lasting"] / m["threshold"]:.0%}'
        rows.append(
            [name, f'{m["threshold"]:g} {m["unit"]}', f'{m["highest"]:.3g}', f'{m["lasting"]:.3g}', share,
             'yes' if good else f'no: {m["wanted"]:.2g} wanted']
        )  # fmt: skip
    return rows


HEADER = ('monitor', 'threshold', 'highest', 'lasting', 'of the threshold', f'{MARGIN:g} times clear')


def _said(figures: dict) -> list[str]:
    def counts(of: dict) -> str:
        return ', '.join(f'{name} {count}' for name, count in of.items()) or 'none'

    f, warnings = (
        figures,
        {name: f'in {w["episodes"]} episodes, {w["seconds"]:.1f} s' for name, w in figures['warnings'].items()},
    )
    altered = f['altered_share']
    by = ', '.join(f'{name.lower()} {share:.2%}' for name, share in altered.items() if share and name != 'any')
    worst = max(f['altered_by_joint'], key=f['altered_by_joint'].__getitem__)
    entry = 'no robot' if f['entry_s'] is None else f'median {f["entry_s"][0]:.1f} s, longest {f["entry_s"][1]:.1f} s'
    return [
        f'Walked: {f["walked_h"]:.2f} h in {f["episodes"]} episodes, seeds from {f["seed"]}; {f["falls"]} robots fell.',
        f'False alarms (trips and withdrawals of robots that had not fallen): {f["false_alarms"]} '
        f'({counts(f["false_by_name"])}; {f["false_while_falling"]} of them while leaning over {FALLING:g} rad).',
        f'Trips of fallen robots, which are right: {counts(f["after_falls_by_name"])}.',
        f'Warnings while upright: {"; ".join(f"{name} {said}" for name, said in warnings.items()) or "none"}.',
        f'Novelty alarms: {f["novelty"]["onsets"]} in {f["novelty"]["episodes"]} episodes '
        f'({counts(f["novelty"]["by_component"])}).',
        f'Torques altered: {altered["any"]:.2%} ({by or "none"}); bar: under {ALTERED_BAR:.0%}. '
        f'More than 1 s after a push {f["altered_when_calm"]:.2%}; worst episode {f["altered_worst_episode"]:.2%}; '
        f'most at {worst} ({f["altered_by_joint"][worst]:.2%}).',
        f'From the start to the mode active: {entry}; {f["never_activated"]} robots could not be activated.',
    ]


def markdown(figures: dict) -> str:
    """Return the figures for a document."""
    said = '\n'.join(f'- {line}' for line in _said(figures))
    return f'{said}\n\nEpisodes without a fall:\n\n{evidence.table(HEADER, _rows(figures))}'


def show(figures: dict) -> None:
    """Print the figures."""
    console = Console(markup=False, width=None if sys.stdout.isatty() else WIDTH)
    for line in _said(figures):
        console.print(line)
    table = Table(title='monitors, episodes without a fall', title_justify='left')
    for column in HEADER:
        table.add_column(column)
    for row in _rows(figures):
        table.add_row(*row)
    console.print(table)
    for alarm in [a for a in figures['alarms'] if not a['fallen']][:20]:
        console.print(
            f'{alarm["name"]} in the mode {alarm["mode"]} after {alarm["at_s"]:.1f} s, '
            f'base leaning by {alarm["lean"]:.2f} rad: {alarm["message"]}'
        )


if __name__ == '__main__':
    raise SystemExit(main())
