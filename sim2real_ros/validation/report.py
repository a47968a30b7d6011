# SPDX-License-Identifier: Apache-2.0
"""The report of a study: one page on which somebody decides whether a policy goes on a robot.

The verdict first, then where it is weak, what that depends on, what it bears, its worst episodes over time, and
everything that is needed to repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from sim2real_ros.report.page import Page
from sim2real_ros.validation.comparison import Comparison
from sim2real_ros.validation.episode import Episode, lowest_margins
from sim2real_ros.validation.figures import curves_figure, influence_figure, margins_figure, strata_figure, trace_figure
from sim2real_ros.validation.fingerprint import fingerprint
from sim2real_ros.validation.influence import LUCK, influences
from sim2real_ros.validation.mending import Mend
from sim2real_ros.validation.parameters import outliers
from sim2real_ros.validation.schema import RangesSection, ScenarioSection, ValidationFile
from sim2real_ros.validation.statistics import percent
from sim2real_ros.validation.study import Outcome
from sim2real_ros.validation.tolerance import COMMAND_DELAY, command_age_margin
from sim2real_ros.validation.tolerances import Curve
from sim2real_ros.validation.traces import retrace
from sim2real_ros.validation.worst import Found

PANELS = 8  # parameters that are drawn
OUTLIERS = 6  # of an episode that are named
AT_REST = {'[0.0, 0.0]', '0.0', '[1.0, 1.0]', '[0.0, 0.0, 0.0]', 'None'}  # ranges in which nothing varies


def write_report(
    path: Path,
    outcome: Outcome,
    *,
    command: str,
    curves: Sequence[Curve] = (),
    found: Sequence[Found] = (),
    mends: Sequence[Mend] = (),
    comparison: Comparison | None = None,
    other: str = '',
    command_age_s: float | None = None,
) -> None:
    """Write the report; runs the worst episodes once more, for their traces.

    Args:
        path: of the HTML file.
        outcome: of the study.
        command: that made the study, to which `--replay ID` is added.
        curves: what the policy bears.
        found: failures that a search found.
        mends: what undoing a cause would change.
        comparison: with another policy.
        other: its name.
        command_age_s: s, how old commands are on the machine that will run the policy.

    Raises:
        DependencyError: plotly or scipy is not installed.
        OutputError: the file cannot be written.
    """
    trial = outcome.study.trial
    page = Page(
        f'{trial.contract.file.name} on {trial.robot.name}', f'validation at the level {trial.level.name}, {date.today()}'
    )
    _verdict(page, outcome, comparison, other)
    if outcome.episodes:
        _scenarios(page, outcome)
        _causes(page, outcome, mends)
    _tolerances(page, trial.level, curves, command_age_s)
    _worst(page, outcome, found, command)
    _ranges(page, trial.level)
    page.heading('What it was made with', 'A study with the same entries here has the same episodes, bit for bit.')
    page.table(('entry', 'value'), fingerprint(trial).items())
    page.write(path)


def _verdict(page: Page, outcome: Outcome, comparison: Comparison | None, other: str) -> None:
    verdict, level = outcome.verdict, outcome.study.trial.level
    margins = [episode.margin for episode in outcome.episodes]
    details = [success_words(level)]
    if verdict.reasons and (verdict.holds or not verdict.decided):  # else the sentence has them
        details.append('Failures: ' + ', '.join(f'{count} {reason}' for reason, count in verdict.reasons.items()) + '.')
    if comparison is not None:
        details.append(comparison.sentence(outcome.study.trial.contract.file.name, other))
    sentence = verdict.sentence[:1].upper() + verdict.sentence[1:] + '.'
    page.verdict('good' if verdict.holds else 'bad' if verdict.decided else 'warn', sentence, details)
    page.facts({
        'episodes': f'{verdict.n} of {verdict.planned}',
        'failures': str(verdict.failures),
        'proven success': percent(verdict.bound) if verdict.bound is not None else 'undecided',
        'claimed': f'{percent(verdict.success)} at {percent(verdict.confidence)}',
        'median margin': f'{np.median(margins):+.2f}' if margins else '-',
        'lowest margin': f'{min(margins):+.2f}' if margins else '-',
    })  # fmt: skip


def success_words(level: ValidationFile) -> str:
    """Return what a success is, for people."""
    success = level.success
    parts = [
        f'no fall (tilt above {np.degrees(success.fall_tilt_rad):.0f} deg, base below {success.fall_height:.0%} of standing)',
        'no fault of the safety filter',
    ]
    allowed = ((success.tracking_m_s, 'm/s'), (success.tracking_rad_s, 'rad/s'))
    limits = [f'{most:g} {unit}' for most, unit in allowed if most is not None]
    if limits:
        larger = f', or {success.tracking_share:.0%} of the command where that is more' if success.tracking_share else ''
        parts.append(f'the mean velocity over each command within {" and ".join(limits)} of it{larger}')
    parts.append(f'at most {success.altered_share:.0%} of the joint torques altered by the limits')
    return f'A success is {level.episode_s:g} s with ' + '; '.join(parts) + '.'


def _scenarios(page: Page, outcome: Outcome) -> None:
    page.heading('By scenario', 'Bars are Wilson intervals, 95 %: they show where to look. The claim is about the mixture.')
    page.figure(strata_figure(outcome.verdict))
    page.heading('How close to failing', 'The margin of an episode is its smallest distance from a limit, in shares of it.')
    page.figure(margins_figure(outcome.episodes))
    reasons = list(outcome.verdict.reasons)
    if reasons:
        rows = []
        for scenario in outcome.study.trial.level.scenarios:
            own = [episode.reason for episode in outcome.episodes if episode.scenario == scenario]
            rows.append((scenario, str(len(own)), *(str(own.count(reason) or '') for reason in reasons)))
        page.table(('scenario', 'episodes', *reasons), rows)


def _causes(page: Page, outcome: Outcome, mends: Sequence[Mend]) -> None:
    every = influences(outcome.episodes, outcome.study.trial.robot.joints)
    if every:
        shown = [f'{one.parameter.words} ({one.explained:.0%})' for one in every if one.shown]
        begin = 'Of the spread of the margins is explained by ' + ', '.join(shown) if shown else 'Nothing that was drawn'
        end = '.' if shown else ' explains the margins better than luck would.'
        luck = (
            f' The chance that luck alone names any is {LUCK:.0%}. A fault that is the same in every episode cannot show here.'
        )
        page.heading('What it depends on', begin + end + luck)
        page.figure(influence_figure(every[:PANELS]))
    if mends:
        page.heading('What would mend it', 'Calm worlds once more, with one thing changed at a time: a pointer, no proof.')
        rows = [(m.text, f'{m.gain:+.2f}', f'{m.mended} of {m.failures}') for m in mends if m.shown]
        if rows:
            page.table(('change', 'margin', 'failures mended'), rows)
        else:
            page.text('Of the changes that were tried, the most promising ones make no difference that is more than luck.')


def _tolerances(page: Page, level: ValidationFile, curves: Sequence[Curve], command_age_s: float | None) -> None:
    if not curves:
        return
    measured, remark = {}, f'Everything else as drawn; it bears a value when {level.claim.success:.0%} succeed there.'
    if command_age_s is not None:
        measured[COMMAND_DELAY] = command_age_s
        borne = {curve.name: curve.tolerance for curve in curves if curve.tolerance is not None}
        remark += f' On this machine {command_age_margin(borne, command_age_s)[1]}.'
    page.heading('What it bears', remark)
    page.figure(curves_figure(curves, level.claim.success, measured))


def _worst(page: Page, outcome: Outcome, found: Sequence[Found], command: str) -> None:
    if outcome.episodes:
        page.heading('Worst episodes', 'The lowest margins of the study. Pushes are dotted.')
        for episode in lowest_margins(outcome.episodes):
            _episode(page, outcome, episode, episode.id, f'{command} --replay {episode.id}')
    if found:
        page.heading(
            'Failures that a search found', 'The most plausible first: 0 % is the middle of every range, 100 % a corner.'
        )
        for number, one in enumerate(found, 1):
            title = f'worst:{number}, from {one.episode.id}, {one.distance:.0%} off the middle'
            _episode(page, outcome, one.episode, title, f'{command} --replay worst:{number}', np.array(one.z))


def _episode(page: Page, outcome: Outcome, episode: Episode, title: str, command: str, z: np.ndarray | None = None) -> None:
    trial = outcome.study.trial
    ended = episode.reason or 'success'
    if episode.end_s < trial.level.episode_s:
        ended += f' after {episode.end_s:.1f} s'
    page.subheading(f'{title}: {ended}, margin {episode.margin:+.2f}')
    unusual = outliers(episode.draw, trial.level, episode.scenario, trial.robot.joints)[:OUTLIERS]
    if unusual:
        page.chips('unusual', (f'{one.parameter.words}: {one.parameter.show(one.value)}' for one in unusual))
    trace = retrace(trial, episode, z)
    if len(trace.time_s):
        page.figure(trace_figure(trace, episode))
    if not trace.same:
        page.text('It came out otherwise when it was run again: versions or machine are not those of the study.')
    page.code(command)


def _ranges(page: Page, level: ValidationFile) -> None:
    page.heading('What was drawn', f'The ranges of the level {level.name}; what is not listed was not varied.')
    ranges = {name: getattr(level.ranges, name) for name in RangesSection.model_fields}
    page.table(
        ('range', 'from', 'to'), [_range_row(name, value) for name, value in ranges.items() if str(value) not in AT_REST]
    )
    page.table(('scenario', 'share', 'ground'), [(n, f'{s.share:.0%}', _ground(s)) for n, s in level.scenarios.items()])


def _range_row(name: str, value: float | Sequence[float]) -> tuple[str, str, str]:
    if not isinstance(value, Sequence):
        return name, 'standard deviation', f'{value:g}'
    if len(value) == 2:
        return name, f'{value[0]:g}', f'{value[1]:g}'
    return name, ', '.join(f'{-most:g}' for most in value), ', '.join(f'{most:g}' for most in value)


def _ground(scenario: ScenarioSection) -> str:
    if scenario.ground == 'slope':
        low, high = np.degrees(scenario.slope_rad)
        return f'slope, {low:.0f} to {high:.0f} deg'
    return f'{scenario.ground}, {100.0 * scenario.height_m:g} cm' if scenario.height_m else scenario.ground
