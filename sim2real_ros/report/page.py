# SPDX-License-Identifier: Apache-2.0
"""`Page`: one HTML file that needs nothing else, not even a network: the script of plotly is inside it, once.

    page = Page('Comparison', 'simulator against robot')
    page.verdict('good', 'The runs agree')
    page.table(('joint', 'RMSE rad'), [('FL_hip_joint', Cell('0.012', share=0.3))])
    page.figure(figure, 'positions')                       # a plotly figure; takes the page's look
    page.write(Path('report.html'))

All texts are escaped. The look follows the reader's system, light or dark; figures too, since the style sheet colours them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

from sim2real_ros.errors import DependencyError
from sim2real_ros.paths import write_text
from sim2real_ros.report.style import COLOURS, STYLE

Level = Literal['good', 'warn', 'bad', 'plain']
MISSING = 'plotly is missing, which draws the figures of reports: pip install "sim2real_ros[report]"'


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table that is more than its text."""

    text: str
    level: Level = 'plain'  # colours it
    share: float | None = None  # 0 to 1: draws a bar behind it


class Page:
    """A page, filled from top to bottom."""

    def __init__(self, title: str, subtitle: str = '') -> None:
        """Begin with a title, and a line below it."""
        self._title, self._figures = title, 0
        self._parts = [f'<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>']

    def verdict(self, level: Level, sentence: str, details: Iterable[str] = ()) -> None:
        """Add the sentence that a reader who reads only one should read, with details below it."""
        items = ''.join(f'<li>{escape(text)}</li>' for text in details)
        self._parts.append(
            f'<section class="verdict {level}"><p>{escape(sentence)}</p>{f"<ul>{items}</ul>" if items else ""}</section>'
        )

    def heading(self, text: str, remark: str = '') -> None:
        """Begin a section, with a remark below its heading."""
        self._parts.append(f'<h2>{escape(text)}</h2>')
        if remark:
            self.text(remark)

    def subheading(self, text: str) -> None:
        """Begin a part of a section."""
        self._parts.append(f'<h3>{escape(text)}</h3>')

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f'<p>{escape(text)}</p>')

    def code(self, text: str) -> None:
        """Add a command to copy."""
        self._parts.append(f'<pre><code>{escape(text)}</code></pre>')

    def chips(self, label: str, texts: Iterable[str]) -> None:
        """Add a line of short texts that should catch the eye, after what they are."""
        items = ''.join(f'<li>{escape(text)}</li>' for text in texts)
        self._parts.append(f'<div class="chips"><span>{escape(label)}</span><ul>{items}</ul></div>')

    def facts(self, facts: Mapping[str, str]) -> None:
        """Add a row of facts, each a small name and a large value."""
        items = (f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>' for name, value in facts.items())
        self._parts.append(f'<dl class="facts">{"".join(items)}</dl>')

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str | Cell]], caption: str = '') -> None:
        """Add a table; the first column names its rows, the others are set as numbers are."""
        head = ''.join(f'<th scope="col">{escape(name)}</th>' for name in columns)
        body = ''.join(f'<tr>{"".join(_cell(value) for value in row)}</tr>' for row in rows)
        title = f'<caption>{escape(caption)}</caption>' if caption else ''
        self._parts.append(
            f'<div class="table"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def figure(self, figure: Any, caption: str = '') -> None:
        """Add a plotly figure.

        Raises:
            DependencyError: plotly is not installed.
        """
        plotly = require_plotly()
        self._figures += 1
        figure.update_layout(
            template='none', colorway=COLOURS, paper_bgcolor='rgba(0,0,0,0)', plot_bgcolor='rgba(0,0,0,0)',
            font={'family': 'inherit', 'size': 12}, hoverlabel={'bgcolor': '#222', 'font': {'color': '#fff'}},
            margin={'l': 56, 'r': 16, 't': 52, 'b': 36},
            legend={'orientation': 'h', 'x': 1, 'xanchor': 'right', 'y': 1, 'yanchor': 'top', 'yref': 'container'},
        )  # fmt: skip
        drawn = plotly.io.to_html(
            figure, full_html=False, include_plotlyjs=False, div_id=f'figure-{self._figures}',
            config={'displayModeBar': False, 'responsive': True},
        )  # fmt: skip
        title = f'<figcaption>{escape(caption)}</figcaption>' if caption else ''
        self._parts.append(f'<figure>{title}{drawn}</figure>')

    def html(self) -> str:
        """Return the whole page."""
        script = f'<script>{require_plotly().offline.get_plotlyjs()}</script>' if self._figures else ''
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{escape(self._title)}</title><style>{STYLE}</style>{script}</head>'
            f'<body><main>{"".join(self._parts)}</main></body></html>\n'
        )

    def write(self, path: Path, option: str = '--html') -> None:
        """Write the page to a file; raises OutputError when it cannot be written."""
        write_text(path, self.html(), option)


def require_plotly() -> Any:
    """Return plotly.

    Raises:
        DependencyError: it is not installed; ask before a long computation.
    """
    try:
        import plotly  # noqa: PLC0415 - an optional extra
        import plotly.io  # noqa: PLC0415
        import plotly.offline  # noqa: PLC0415
    except ImportError:
        raise DependencyError(MISSING) from None
    return plotly


def _cell(value: str | Cell) -> str:
    cell = value if isinstance(value, Cell) else Cell(value)
    bar = '' if cell.share is None else f' style="--share:{100 * min(max(cell.share, 0.0), 1.0):.0f}%"'
    names = ' '.join(name for name in ('bar' if bar else '', '' if cell.level == 'plain' else cell.level) if name)
    return f'<td{f" class={chr(34)}{names}{chr(34)}" if names else ""}{bar}>{escape(cell.text)}</td>'
