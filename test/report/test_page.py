# SPDX-License-Identifier: Apache-2.0
"""Promises of the report: one file that needs no network, shows what it was given, and runs nothing of it."""

import re
import sys
from html.parser import HTMLParser

import pytest

from sim2real_ros.errors import DependencyError, OutputError
from sim2real_ros.report import Cell, Page

HOSTILE = '<script>alert(1)</script> & "quotes"'


class Reader(HTMLParser):
    """Collects the visible text, the scripts' count and every address that a browser would fetch."""

    def __init__(self, html):
        super().__init__()
        self.text, self.scripts, self.fetched, self.open = '', 0, [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == 'script'
        self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ('src', 'href', 'srcset', 'data')]

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] not in ('script', 'style'):
            self.text += data + ' '


@pytest.fixture
def page():
    page = Page('Two runs', 'the second line')
    page.verdict('good', 'They agree.', ['to 1 mm'])
    page.facts({'robot': 'go2'})
    page.heading('Joints', 'one by one')
    page.table(('joint', 'RMSE'), [('FL_hip', Cell('0.012', level='bad', share=0.3)), ('FR_hip', '0.5')], 'positions')
    return page


def test_everything_given_is_in_the_page_in_its_order(page):
    words = 'Two runs|the second line|They agree.|to 1 mm|robot|go2|Joints|one by one|positions|joint|FL_hip|0.012|FR_hip|0.5'
    text = Reader(page.html()).text
    places = [text.index(word) for word in words.split('|')]
    assert places == sorted(places)


def test_texts_are_shown_and_never_run():
    page = Page(HOSTILE, HOSTILE)
    page.verdict('bad', HOSTILE, [HOSTILE])
    page.facts({HOSTILE: HOSTILE})
    page.heading(HOSTILE, HOSTILE)
    page.table((HOSTILE,), [(HOSTILE,), (Cell(HOSTILE),)], HOSTILE)
    read = Reader(page.html())
    assert read.scripts == 0
    assert read.text.count(HOSTILE) == 13


def test_a_page_without_figures_is_small_and_needs_no_plotly(page, monkeypatch):
    monkeypatch.setitem(sys.modules, 'plotly', None)
    assert len(page.html()) < 10_000


def test_figures_bring_their_script_once_and_nothing_is_fetched(page):
    graph_objects = pytest.importorskip('plotly.graph_objects')
    for name in ('first', 'second'):
        page.figure(graph_objects.Figure(graph_objects.Scatter(x=[0, 1], y=[2, 3])), name)
    html = page.html()
    read = Reader(html)
    assert html.count('Plotly.newPlot(') == 2
    assert len(re.findall(r'plotly\.js v\d', html)) == 1
    assert read.fetched == []
    assert 'first' in read.text


def test_without_plotly_a_figure_is_refused_with_the_command_that_installs_it(page, monkeypatch):
    monkeypatch.setitem(sys.modules, 'plotly', None)
    with pytest.raises(DependencyError, match=r'pip install "sim2real_ros\[report\]"'):
        page.figure(None)


def test_a_place_that_cannot_be_written_is_named(page, tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(OutputError, match='--html'):
        page.write(tmp_path / 'file' / 'report.html')
