# SPDX-License-Identifier: Apache-2.0
"""What `sim2real validate` prints: the verdict, the scenarios, the worst episodes, curves, failures that were found, mends."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim2real_ros.validation.episode import lowest_margins
from sim2real_ros.validation.mending import Mend
from sim2real_ros.validation.schema import ValidationFile
from sim2real_ros.validation.study import Outcome
from sim2real_ros.validation.tolerances import Curve
from sim2real_ros.validation.worst import Found

SHOWN = 5  # episodes, found failures, changes


def print_outcome(outcome: Outcome, took: str) -> None:
    """Print a verdict and what it stands on; `took` says how long."""
    verdict, console = outcome.verdict, Console(highlight=False)
    table = _table(
        f'{outcome.study.trial.contract.file.name} at the level {verdict.level}', 'scenario', 'n', 'failed', 'success'
    )
    for stratum in verdict.strata:
        success = f'{stratum.low:.1%} to {stratum.high:.1%}' if stratum.n else ''
        table.add_row(stratum.scenario, str(stratum.n), str(stratum.failures), success)
    console.print(table)
    worst = _table('lowest margins', 'episode', 'margin', 'why')
    for episode in lowest_margins(outcome.episodes, SHOWN):
        why = f'{episode.reason} at {episode.end_s:.1f} s' if episode.reason else ''
        worst.add_row(episode.id, f'{episode.margin:+.2f}', why)
    console.print(worst)
    console.print(Text(verdict.sentence, style='bold green' if verdict.holds else 'bold red'))
    if took:
        console.print(took, markup=False)


def print_curves(curves: Sequence[Curve], level: ValidationFile) -> None:
    """Print what a policy bears."""
    table = _table(f'what it bears, at {level.claim.success:.0%} of successes', 'parameter', 'value: successes', 'bears')
    for curve in curves:
        points = '  '.join(f'{point.value:g}: {point.success:.0%}' for point in curve.points)
        table.add_row(curve.name, points, curve.sentence.partition(': ')[2])
    Console(highlight=False).print(table)


def print_found(found: Sequence[Found]) -> None:
    """Print the most plausible failures."""
    console = Console(highlight=False)
    if not found:
        console.print('the search found no failure within the ranges of the level')
        return
    table = _table('the most plausible failures', 'replay', 'began at', 'off the middle', 'why')
    for number, failure in enumerate(found[:SHOWN], 1):
        episode = failure.episode
        table.add_row(f'worst:{number}', episode.id, f'{failure.distance:.0%}', f'{episode.reason} at {episode.end_s:.1f} s')
    console.print(table)


def print_mends(mended: Sequence[Mend]) -> None:
    """Print what would mend a policy that fails."""
    console, shown = Console(highlight=False), [mend for mend in mended if mend.shown]
    if not shown:
        console.print(
            'in calm worlds the most promising of the changes that were tried make no difference that is more than luck'
        )
        return
    table = _table('what would mend it: calm worlds, one change at a time', 'change', 'margin', 'mended')
    for mend in shown[:SHOWN]:
        table.add_row(mend.text, f'{mend.gain:+.2f}', f'{mend.mended} of {mend.failures}')
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify='left')
    for column in columns:
        table.add_column(column)
    return table
