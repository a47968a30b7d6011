# SPDX-License-Identifier: Apache-2.0
"""The figures of a validation's report: what came out, what it depends on, what the policy bears, how an episode went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim2real_ros.report.page import require_plotly
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.influence import Influence
from sim2real_ros.validation.parameters import Parameter
from sim2real_ros.validation.tolerances import Curve
from sim2real_ros.validation.traces import Trace
from sim2real_ros.validation.verdict import Verdict

GOOD, BAD, ASKED, MACHINE = '#2f7de1', '#e8743b', '#6c8893', '#945ecf'  # readable on white and on black
REASONS = ('#e8743b', '#d4a017', '#945ecf', '#b3556b', '#8a6d3b', '#6c8893')
BAND = 'rgba(47, 125, 225, 0.2)'
COLUMNS, PANEL = 4, 190  # of small multiples; height in pixels
DOTS = 400  # successes in a panel; all failures are there
BINS = 40  # of margins
POINTS = 1000  # of a line over time
TITLE = 11.5  # font size of a panel
VELOCITIES = ('forward, m/s', 'sideways, m/s', 'turn, rad/s')


def strata_figure(verdict: Verdict) -> Any:
    """Return success by scenario with Wilson's intervals, and the claim."""
    strata = [stratum for stratum in verdict.strata if stratum.n][::-1]
    share = [100.0 * (1.0 - stratum.failures / stratum.n) for stratum in strata]
    figure = _objects().Figure()
    figure.add_scatter(
        x=share, y=[stratum.scenario for stratum in strata], mode='markers+text', marker={'size': 11, 'color': GOOD},
        text=[f'{stratum.failures} of {stratum.n} failed' for stratum in strata], textposition='top center', cliponaxis=False,
        error_x={
            'type': 'data', 'symmetric': False, 'thickness': 2, 'width': 6, 'color': GOOD,
            'array': [100.0 * stratum.high - s for stratum, s in zip(strata, share, strict=True)],
            'arrayminus': [s - 100.0 * stratum.low for stratum, s in zip(strata, share, strict=True)],
        },
        hovertemplate='%{y}: %{x:.1f} %<extra></extra>', showlegend=False,
    )  # fmt: skip
    figure.add_vline(x=100.0 * verdict.success, line={'color': ASKED, 'dash': 'dash', 'width': 1.5})
    figure.add_annotation(x=100.0 * verdict.success, yref='paper', y=1.0, yanchor='bottom', text='claimed', showarrow=False)
    lowest = min((100.0 * stratum.low for stratum in strata), default=0.0)
    figure.update_xaxes(range=[min(lowest, 100.0 * verdict.success) - 3.0, 101.0], title='success, %', zeroline=False)
    figure.update_yaxes(range=[-0.6, len(strata) - 0.3], showgrid=False)
    figure.update_layout(height=90 + 62 * len(strata))
    return figure


def margins_figure(episodes: Sequence[Episode]) -> Any:
    """Return the distribution of the margins, coloured by what became of the episodes."""
    reasons = [reason for reason, _ in Counter(episode.reason for episode in episodes if episode.reason).most_common()]
    figure, edges = _objects().Figure(), np.linspace(-1.0, 1.0, BINS + 1)
    for reason, colour in zip(
        ['', *reasons], [GOOD, *(REASONS[min(i, len(REASONS) - 1)] for i in range(len(reasons)))], strict=True
    ):
        margins = np.array([episode.margin for episode in episodes if episode.reason == reason])
        counts, _ = np.histogram(np.clip(margins, -1.0, 1.0), edges)
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2.0, y=counts, name=f'{reason or "success"}: {len(margins)}', marker={'color': colour},
            hovertemplate='%{y} with a margin of %{x:.2f}<extra>' + (reason or 'success') + '</extra>',
        )  # fmt: skip
    figure.add_vline(x=0.0, line={'color': ASKED, 'dash': 'dash', 'width': 1.5})
    figure.update_layout(height=300, barmode='stack', bargap=0.08, showlegend=True)
    figure.update_xaxes(title='margin: 0 is the limit, 1 never left its posture and speed', range=[-1.03, 1.03], zeroline=False)
    figure.update_yaxes(title='episodes')
    return figure


def influence_figure(influences: Sequence[Influence]) -> Any:
    """Return, for each parameter, the share of success and the margins against its value."""
    rows = -(-len(influences) // COLUMNS)
    titles = [t for i in range(0, len(influences), COLUMNS) for t in _titles(influences[i : i + COLUMNS])]
    specs = ([[{}] * COLUMNS, [{}] * COLUMNS, [None] * COLUMNS] * rows)[:-1]  # success, margins, a gap for the next titles
    figure = _panels(len(specs), titles, row_heights=([0.34, 0.5, 0.16] * rows)[:-1], specs=specs, vertical_spacing=0.03 / rows)
    for place, influence in enumerate(influences):
        row, column = 3 * (place // COLUMNS) + 1, place % COLUMNS + 1
        factor = influence.parameter.factor
        _band(
            figure, row, column, [factor * (b.low + b.high) / 2.0 for b in influence.bins],
            *([100.0 * getattr(b, name) for b in influence.bins] for name in ('success', 'least', 'most')),
        )  # fmt: skip
        for failed, colour in ((False, GOOD), (True, BAD)):
            chosen = np.flatnonzero((influence.margins < 0) == failed)
            if not failed:
                chosen = chosen[:: max(1, -(-len(chosen) // DOTS))]
            figure.add_scatter(
                x=_short(factor * influence.values[chosen]), y=_short(influence.margins[chosen]), mode='markers',
                marker={'size': 5 if failed else 4, 'color': colour, 'opacity': 0.9 if failed else 0.45}, hoverinfo='x+y',
                name='failure' if failed else 'success', row=row + 1, col=column, showlegend=place == 0,
            )  # fmt: skip
        span = factor * np.array([influence.values[0], influence.values[-1]])
        span += 0.03 * (span[1] - span[0]) * np.array([-1.0, 1.0])
        figure.update_xaxes(range=span, zeroline=False, row=row, col=column, showticklabels=False)
        figure.update_xaxes(range=span, zeroline=False, row=row + 1, col=column, nticks=5)
        figure.update_yaxes(
            range=[0, 104], row=row, col=column, tickvals=[0, 50, 100], title='success, %' if column == 1 else ''
        )
        figure.update_yaxes(range=[-1.08, 1.08], row=row + 1, col=column, title='margin' if column == 1 else '', nticks=5)
    figure.update_layout(height=60 + 300 * rows)
    return figure


def curves_figure(curves: Sequence[Curve], success: float, measured: Mapping[str, float]) -> Any:
    """Return what the policy bears.

    Args:
        curves: of some parameters.
        success: share that is claimed.
        measured: what this machine has of a parameter, by its name.
    """
    rows = -(-len(curves) // COLUMNS)
    figure = _panels(rows, [_axis(Parameter(curve.name)) for curve in curves], vertical_spacing=0.2 / rows)
    for place, curve in enumerate(curves):
        row, column, parameter = place // COLUMNS + 1, place % COLUMNS + 1, Parameter(curve.name)
        points = [(p, parameter.factor * p.value) for p in curve.points]
        shares = ([100.0 * getattr(p, name) for p, _ in points] for name in ('success', 'low', 'high'))
        _band(figure, row, column, [value for _, value in points], *shares)
        figure.add_hline(y=100.0 * success, line={'color': ASKED, 'dash': 'dot', 'width': 1}, row=row, col=column)
        lines = [(curve.tolerance, GOOD, 'bears', 0), (measured.get(curve.name), MACHINE, 'this machine', 18)]
        for value, colour, words, lift in lines:
            if value is not None:
                figure.add_vline(
                    x=parameter.factor * value, line={'color': colour, 'width': 1.5, 'dash': 'dash'}, row=row, col=column,
                    annotation={'text': f'{words} {parameter.factor * value:.3g}', 'font': {'size': 11}, 'yshift': lift},
                    annotation_position='bottom right',
                )  # fmt: skip
        backwards = points[-1][1] < points[0][1]
        figure.update_xaxes(autorange='reversed' if backwards else True, zeroline=False, nticks=6, row=row, col=column)
        figure.update_yaxes(
            range=[0, 104], row=row, col=column, tickvals=[0, 50, 100], title='success, %' if column == 1 else ''
        )
    figure.update_layout(height=60 + 240 * rows)
    return figure


def trace_figure(trace: Trace, episode: Episode) -> Any:
    """Return how an episode went: posture, effort, and how it followed its commands; pushes are dotted."""
    figure = _panels(2, ['tilt, rad', 'height, share of standing', 'torque and altered, share', *VELOCITIES], columns=3,
                     vertical_spacing=0.2)  # fmt: skip
    every = max(1, -(-len(trace.time_s) // POINTS))
    step = every * float(np.median(np.diff(trace.time_s))) if len(trace.time_s) > 1 else 1.0
    upper = ((trace.tilt_rad, 1, GOOD, 'actual'), (trace.height, 2, GOOD, ''), (trace.torque_share, 3, GOOD, ''),
             (trace.altered_share, 3, BAD, 'altered by the limits'))  # fmt: skip
    for values, column, colour, name in upper:
        _line(figure, 1, column, step, values[::every], colour, name)
    for axis in range(len(VELOCITIES)):
        _line(figure, 2, axis + 1, step, trace.velocity[::every, axis], GOOD, '')
        _line(figure, 2, axis + 1, step, trace.command[::every, axis], ASKED, 'command' if axis == 0 else '', dash='dash')
    end = float(trace.time_s[-1]) if len(trace.time_s) else 0.0
    for push in episode.draw.get('push_s', ()):
        if push <= end:
            figure.add_vline(x=push, line={'color': ASKED, 'dash': 'dot', 'width': 1})
    figure.update_xaxes(range=[0.0, 1.01 * end], zeroline=False)
    figure.update_xaxes(title='s', row=2)
    figure.update_yaxes(zeroline=False, nticks=5)
    figure.update_layout(height=2 * PANEL, showlegend=True)
    return figure


def _titles(influences: Sequence[Influence]) -> list[str]:
    """Return the titles of a row of parameters, and the empty ones of the panels below them."""
    told = [f'{100.0 * influence.explained:.0f} %' if influence.shown else 'luck' for influence in influences]
    titles = [f'{_axis(influence.parameter)}: {text}' for influence, text in zip(influences, told, strict=True)]
    return titles + [''] * (2 * COLUMNS - len(titles))


def _axis(parameter: Parameter) -> str:
    unit = '' if parameter.name.endswith('_factor') else parameter.unit
    return f'{parameter.words}, {unit}' if unit else parameter.words


def _line(figure: Any, row: int, column: int, step: float, values: np.ndarray, colour: str, name: str, dash: str = '') -> None:
    line = {'color': colour, 'width': 1.4, 'dash': dash or 'solid'}
    figure.add_scatter(x0=0.0, dx=step, y=_short(values), mode='lines', line=line, name=name, showlegend=bool(name),
                       hovertemplate='%{x:.2f} s: %{y:.3g}', row=row, col=column)  # fmt: skip


def _band(
    figure: Any, row: int, column: int, x: Sequence[float], share: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> None:
    """Draw shares in %, with an interval around them."""
    for edge, fill in ((low, None), (high, 'tonexty')):
        figure.add_scatter(x=x, y=edge, mode='lines', line={'width': 0}, fill=fill, fillcolor=BAND, hoverinfo='skip',
                           showlegend=False, row=row, col=column)  # fmt: skip
    figure.add_scatter(x=x, y=share, mode='lines+markers', line={'color': GOOD, 'width': 2}, marker={'size': 5},
                       showlegend=False, hovertemplate='%{x:.3g}: %{y:.1f} %<extra></extra>', row=row, col=column)  # fmt: skip


def _panels(rows: int, titles: Sequence[str], columns: int = COLUMNS, **layout: Any) -> Any:
    require_plotly()
    from plotly.subplots import make_subplots  # noqa: PLC0415 - an optional extra

    figure = make_subplots(rows, columns, subplot_titles=titles, horizontal_spacing=0.06, **layout)
    figure.update_annotations(font_size=TITLE)
    return figure


def _objects() -> Any:
    require_plotly()
    from plotly import graph_objects  # noqa: PLC0415 - an optional extra

    return graph_objects


def _short(values: np.ndarray) -> np.ndarray:
    """Return numbers in half the bytes."""
    return np.asarray(values, np.float32)
