# SPDX-License-Identifier: Apache-2.0
"""A comparison as a page to read: verdict, tables, and both runs drawn over each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.comparison.comparison import BASE, Comparison, Quantity
from sim2real_ros.report import Cell, Page
from sim2real_ros.report.page import Level
from sim2real_ros.report.style import COLOURS

NO_LAG_S = 5e-4
MOST_POINTS = 3000  # of a line
COLUMNS = 3  # of small figures
ROW_PX = 150
TITLES = {'position': 'Joint positions', 'velocity': 'Joint velocities', 'torque': 'Torques'}


def sentence(comparison: Comparison) -> tuple[Level, str]:
    """Return the one sentence that matters, and how good it is."""
    bad = next((finding.text for finding in comparison.findings if finding.level == 'bad'), None)
    if bad is not None:
        return 'bad', f'These runs should not be compared: {bad}.'
    if comparison.identical:
        return 'good', 'The runs are identical: every difference is zero.'
    measures = comparison.quantities['position'].measures
    seconds = measures.lag_of_all_s
    lag = '' if not np.isfinite(seconds) else 'No lag; ' if abs(seconds) < NO_LAG_S else f'B is {_later(seconds)}; '
    rmse = float(np.sqrt(np.nanmean(measures.rmse**2)))
    alike = f', correlation {measures.correlation_of_all:.3f}' if np.isfinite(measures.correlation_of_all) else ''
    level: Level = 'warn' if any(finding.level == 'warn' for finding in comparison.findings) else 'plain'
    return level, f'{lag}joint positions differ by {rmse:.3g} rad (RMSE){alike}.'


def facts(comparison: Comparison) -> dict[str, str]:
    """Return what was compared, by name."""
    a, b = comparison.runs
    alignment = comparison.alignment
    robot, contract = a.robot or b.robot or 'unknown', a.contract or b.contract
    return {
        'robot': robot,
        'policy': contract.file.name if contract is not None else 'unknown',
        'aligned by': alignment.by,
        'A begins at': f'{alignment.begin[0]:.3f} s',
        'B begins at': f'{alignment.begin[1]:.3f} s ({1e3 * (alignment.begin[1] - alignment.begin[0]):+.1f} ms)',
        'compared': f'{alignment.counts.mean() * alignment.time[-1]:.2f} of {alignment.time[-1]:.2f} s',
    }


def quantity_rows(quantity: Quantity) -> list[tuple[str, ...]]:
    """Return signal, RMSE, bias, largest difference, lag in ms and correlation of each signal, as text."""
    m = quantity.measures
    columns = (m.rmse, m.bias, m.largest, m.lag_s, m.correlation)
    write: tuple[Callable[[float], str], ...] = (_number, _signed, _number, _ms, _share)
    return [
        (name, *(f(float(values[i])) for f, values in zip(write, columns, strict=True)))
        for i, name in enumerate(quantity.signals)
    ]


def age_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return run, median, 95 %, 99 % and largest age of the commands in ms, as text."""
    quantiles = (0.5, 0.95, 0.99, 1.0)
    return [
        (letter, *(f'{1e3 * np.quantile(ages, q):.2f}' if len(ages) else '-' for q in quantiles))
        for letter, ages in zip('AB', comparison.ages, strict=True)
    ]


def page(comparison: Comparison) -> Page:
    """Return the page.

    Raises:
        DependencyError: plotly is not installed.
    """
    a, b = (run.source for run in comparison.runs)
    made = Page('Two runs', f'A: {a}  ·  B: {b}')
    made.verdict(*sentence(comparison), (finding.text for finding in comparison.findings))
    made.facts(facts(comparison))
    _base(made, comparison)
    made.heading('Age of the commands', 'From a joint state to the torque that answers it.')
    made.table(('run', 'median ms', '95 %', '99 %', 'largest'), age_rows(comparison))
    for name, title in TITLES.items():
        if (quantity := comparison.quantities.get(name)) is not None:
            made.heading(title)
            _table(made, quantity)
            made.figure(_small_figures(comparison, quantity), f'{quantity.unit} over s since {comparison.alignment.by}')
    return made


def _base(made: Page, comparison: Comparison) -> None:
    quantity = comparison.quantities.get('base')
    if quantity is None:
        return
    made.heading('Velocity of the base', 'Forward and left in m/s, yaw in rad/s, and what was commanded.')
    _table(made, quantity)
    figure = _figure(1, len(BASE), [f'{name} {unit}' for name, unit in BASE], 240)
    for i in range(len(BASE)):
        _lines(figure, comparison, quantity, i, 1, i + 1)
        if comparison.alignment.commands is not None:
            command = comparison.alignment.commands[0][:, i]
            _line(figure, comparison.alignment.time, command, 'command', COLOURS[5], 1, i + 1, named=i == 0, dash='dot')
    made.figure(figure)


def _table(made: Page, quantity: Quantity) -> None:
    worst = max(float(np.nanmax(quantity.measures.rmse)), 1e-12)
    rows: list[list[str | Cell]] = [
        [name, Cell(rmse, share=float(np.nan_to_num(quantity.measures.rmse[i])) / worst), *others]
        for i, (name, rmse, *others) in enumerate(quantity_rows(quantity))
    ]
    unit = f' {quantity.unit}' if quantity.unit else ''
    made.table(('', f'RMSE{unit}', f'bias{unit}', f'largest{unit}', 'lag ms', 'correlation'), rows)


def _small_figures(comparison: Comparison, quantity: Quantity) -> Any:
    rows = -(-len(quantity.signals) // COLUMNS)
    figure = _figure(rows, COLUMNS, list(quantity.signals), ROW_PX * rows + 60)
    for i in range(len(quantity.signals)):
        _lines(figure, comparison, quantity, i, i // COLUMNS + 1, i % COLUMNS + 1)
    return figure


def _figure(rows: int, columns: int, titles: list[str], height: int) -> Any:
    from plotly.subplots import make_subplots  # noqa: PLC0415 - an optional extra

    figure = make_subplots(
        rows, columns, shared_xaxes='all', subplot_titles=titles,
        vertical_spacing=0.35 / max(rows, 1), horizontal_spacing=0.06,
    )  # fmt: skip
    figure.update_layout(height=height)
    figure.update_annotations(font_size=12)
    return figure


def _lines(figure: Any, comparison: Comparison, quantity: Quantity, i: int, row: int, column: int) -> None:
    for letter, values, colour in zip('AB', (quantity.a, quantity.b), COLOURS, strict=False):
        _line(figure, comparison.alignment.time, values[:, i], letter, colour, row, column, named=i == 0)


def _line(
    figure: Any, time: np.ndarray, values: np.ndarray, name: str, colour: str, row: int, column: int, *,
    named: bool, dash: str = 'solid',
) -> None:  # fmt: skip
    every = slice(None, None, -(-len(time) // MOST_POINTS))
    figure.add_scatter(
        x=time[every].astype(np.float32), y=values[every].astype(np.float32), name=name, legendgroup=name, showlegend=named,
        mode='lines', line={'color': colour, 'width': 1.2, 'dash': dash}, row=row, col=column,
    )  # fmt: skip


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the page to a file; raises DependencyError without plotly, OutputError where it cannot be written."""
    page(comparison).write(path)


def _later(seconds: float) -> str:
    return f'{_ms(abs(seconds))} ms {"later" if seconds > 0 else "earlier"}'


def _number(value: float) -> str:
    return '-' if not np.isfinite(value) else f'{value:.3g}'


def _signed(value: float) -> str:
    return '-' if not np.isfinite(value) else f'{value:+.2g}'


def _ms(seconds: float) -> str:
    return '-' if not np.isfinite(seconds) else f'{1e3 * seconds + 0.0:.1f}'.replace('-0.0', '0.0')


def _share(value: float) -> str:
    return '-' if not np.isfinite(value) else f'{value:.3f}'
