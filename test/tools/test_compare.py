# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real compare`: one command gives table, JSON and page; what cannot work is refused before it is tried."""

import json
import sys

import pytest
from recordings import Recording, Swing

from sim2real_ros.tools.cli import main


@pytest.fixture(scope='module')
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp('runs')
    bodies = {'a': Swing(), 'b': Swing(delay=0.010)}
    return {name: str(Recording(body=body).write(folder / name)) for name, body in bodies.items()}


def test_one_command_gives_table_figures_and_a_page(runs, tmp_path, capsys):
    pytest.importorskip('plotly')
    html, figures = tmp_path / 'page.html', tmp_path / 'figures.json'
    assert main(['compare', runs['a'], runs['b'], '--html', str(html), '--json', str(figures)]) == 0
    shown = capsys.readouterr().out
    assert 'B is 10.0 ms later' in shown
    assert 'FL_hip_joint' in shown
    told = json.loads(figures.read_text())
    assert told['lag_s'] == pytest.approx(0.010, abs=1e-3)
    assert told['quantities']['torque']['signals']['FR_calf_joint']['lag_s'] == pytest.approx(0.010, abs=1e-3)
    page = html.read_text()
    assert 'B is 10.0 ms later' in page
    assert page.count('Plotly.newPlot(') == 4


def test_a_run_compared_with_itself_gives_zeros_and_says_so(runs, tmp_path, capsys):
    assert main(['compare', runs['a'], runs['a'], '--json', str(tmp_path / 'figures.json')]) == 0
    assert 'identical: every difference is zero' in capsys.readouterr().out
    told = json.loads((tmp_path / 'figures.json').read_text())
    assert told['identical'] is True
    largest = [signal['largest'] for quantity in told['quantities'].values() for signal in quantity['signals'].values()]
    assert len(largest) == 39
    assert not any(largest)


def test_a_missing_run_is_one_line(runs, capsys):
    assert main(['compare', runs['a'], 'nonesuch']) == 1
    assert 'there is no recording nonesuch' in capsys.readouterr().err


def test_a_page_without_plotly_is_refused_before_anything_is_read(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'plotly', None)
    assert main(['compare', 'nonesuch', 'nonesuch', '--html', str(tmp_path / 'page.html')]) == 1
    assert 'sim2real_ros[report]' in capsys.readouterr().err
