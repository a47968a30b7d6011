# SPDX-License-Identifier: Apache-2.0
"""Promises of the report: one file without a network, with everything on it, that points at what was to blame."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from validation_rig import trial

pytest.importorskip('plotly', reason='the extra `report` is not installed')
pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from sim2real_ros.validation.draws import width  # noqa: E402
from sim2real_ros.validation.episode import lowest_margins  # noqa: E402
from sim2real_ros.validation.episodes import run  # noqa: E402
from sim2real_ros.validation.fingerprint import fingerprint  # noqa: E402
from sim2real_ros.validation.influence import influences  # noqa: E402
from sim2real_ros.validation.mending import Mend  # noqa: E402
from sim2real_ros.validation.parameters import Parameter, outliers, parameters  # noqa: E402
from sim2real_ros.validation.plan import chunks, plan  # noqa: E402
from sim2real_ros.validation.report import write_report  # noqa: E402
from sim2real_ros.validation.schema import RangesSection  # noqa: E402
from sim2real_ros.validation.study import Outcome, Study, run_chunk  # noqa: E402
from sim2real_ros.validation.tolerances import Curve, Point  # noqa: E402
from sim2real_ros.validation.traces import retrace  # noqa: E402
from sim2real_ros.validation.verdict import Verdict, by_id  # noqa: E402
from sim2real_ros.validation.worst import Found  # noqa: E402

COUNT = 80
COMMAND = "sim2real validate 'my policy' --level standard --seed 1"
CURVE = Curve('command_delay_s', 's', (Point(0.0, 50, 0, 0.93, 1.0), Point(0.006, 50, 9, 0.69, 0.9)), 0.004, False)
MENDS = [Mend('no delay of the targets', 0.3, 0.001, 7, 9), Mend('no payload', 0.0, 1.0, 0, 9)]


@pytest.fixture(scope='module')
def outcome() -> Outcome:
    """A study of two seconds in which targets are up to 100 ms late, which is more than the policy bears."""
    own = trial(ranges={'action_delay_s': [0.0, 0.1]})
    done = by_id([episode for chunk in chunks(plan(own.level, COUNT), (), 40) for episode in run_chunk(own, chunk)])
    episodes = [done[str(name)] for name in plan(own.level, COUNT)]
    return Outcome(Study(own, COUNT, early=False), episodes, Verdict.of(own.level, episodes, COUNT, early=False))


@pytest.fixture(scope='module')
def path(outcome, tmp_path_factory):
    path = tmp_path_factory.mktemp('report') / 'report.html'
    found = Found((0.5,) * width(), 0.12, lowest_margins(outcome.episodes)[0])
    write_report(path, outcome, command=COMMAND, curves=[CURVE], found=[found], mends=MENDS, command_age_s=0.0031)
    return path


@pytest.fixture(scope='module')
def text(path) -> str:
    """What is written in the page, without scripts and marks."""
    html = re.sub(r'<(script|style)\b.*?</\1>', '', path.read_text(encoding='utf-8'), flags=re.DOTALL)
    return re.sub(r'\s+', ' ', re.sub('<[^>]+>', ' ', html)).replace('&#x27;', "'")


def test_the_page_is_one_file_that_fetches_nothing(path):
    html = path.read_text(encoding='utf-8')
    assert path.stat().st_size < 6_000_000
    assert not re.search(r'<(script|img|iframe|link)\b[^>]*\b(src|href)=', html)
    assert '@import' not in html.partition('<script>')[0]


def test_the_verdict_comes_before_everything_else(text, outcome):
    sentence = outcome.verdict.sentence
    assert text.index(sentence[1:]) < text.index('By scenario')
    assert 'A success is 2 s with no fall' in text


def test_worst_episodes_are_there_with_the_command_that_replays_them(text, outcome):
    for episode in lowest_margins(outcome.episodes):
        assert f'{COMMAND} --replay {episode.id}' in text
    assert f'{COMMAND} --replay worst:1' in text


def test_every_range_and_every_version_is_there(text, outcome):
    ranges = outcome.study.trial.level.ranges
    for name in RangesSection.model_fields:
        assert (f' {name} ' in text) == (getattr(ranges, name) not in ([0.0, 0.0], [1.0, 1.0], 0.0, None)), name
    for name, value in fingerprint(outcome.study.trial).items():
        assert f'{name} {value}' in text


def test_the_parameter_that_is_to_blame_is_named_first(text, outcome):
    first = influences(outcome.episodes, outcome.study.trial.robot.joints)[0]
    assert first.parameter == Parameter('action_delay_s')
    assert first.shown
    assert first.bins[-1].success < first.bins[0].success
    assert 'explained by action delay' in text


def test_nothing_is_to_blame_where_margins_are_luck(outcome):
    luck = np.random.default_rng(3).uniform(-0.2, 1.0, COUNT)
    episodes = [replace(episode, margin=float(margin)) for episode, margin in zip(outcome.episodes, luck, strict=True)]
    assert not any(influence.shown for influence in influences(episodes, outcome.study.trial.robot.joints))


def test_a_single_weak_joint_is_named_among_all_of_them(outcome):
    joints = outcome.study.trial.robot.joints
    blame = [episode.draw['motor_strength_factor'][7] - 1.0 for episode in outcome.episodes]
    episodes = [replace(episode, margin=margin) for episode, margin in zip(outcome.episodes, blame, strict=True)]
    assert influences(episodes, joints)[0].parameter == Parameter('motor_strength_factor', joints[7])


def test_mends_tolerances_and_this_machine_are_told(text):
    assert 'no delay of the targets +0.30 7 of 9' in text
    assert 'no payload' not in text
    assert 'On this machine commands are 3.1 ms old, the policy bears 4.0 ms: 0.9 ms to spare' in text


def test_a_trace_is_the_episode_once_more(outcome):
    own, episode = outcome.study.trial, lowest_margins(outcome.episodes)[0]
    trace = retrace(own, episode)
    assert trace.same
    assert -1e-9 < episode.end_s - trace.time_s[-1] < own.contract.period_s
    assert trace.tilt_rad.max() == pytest.approx(episode.figures['tilt_rad'])
    assert trace.height.min() == pytest.approx(min(1.0, episode.figures['height_share']), abs=0.02)
    np.testing.assert_allclose(trace.command[0], episode.draw['commands'][0])
    assert not retrace(own, replace(episode, margin=0.5)).same


def test_a_trace_of_what_a_search_found_has_its_coordinates(outcome):
    own, z = outcome.study.trial, np.full(width(), 0.5)
    episode = run(own, 'flat', [3], z=z[None])[0]
    assert retrace(own, episode, z).same
    assert not retrace(own, episode).same


def test_what_is_unusual_about_an_episode_is_found(outcome):
    own = outcome.study.trial
    draw = dict(outcome.episodes[0].draw) | {'action_delay_s': 0.0999, 'push_speed_m_s': 0.0001, 'payload_kg': -0.9999}
    named = {outlier.parameter.name for outlier in outliers(draw, own.level, 'flat', own.robot.joints)}
    assert {'action_delay_s', 'payload_kg'} <= named
    assert 'push_speed_m_s' not in named


def test_an_ordinary_episode_has_few_outliers(outcome):
    own = outcome.study.trial
    count = [len(outliers(episode.draw, own.level, episode.scenario, own.robot.joints)) for episode in outcome.episodes]
    assert 1.0 < np.mean(count) < 3.5  # a tenth of the 23 names


def test_values_are_shown_in_units_that_people_use(outcome):
    assert Parameter('action_delay_s').show(0.015) == '15 ms'
    assert Parameter('gyro_bias_rad_s', 'x').show(0.02) == '0.02 rad/s'
    assert Parameter('motor_strength_factor', 'FL_hip_joint').words == 'motor strength, FL_hip_joint'
    every = parameters(outcome.episodes[0].draw, outcome.study.trial.robot.joints)
    assert all(np.isfinite(value) for value in every.values())


def test_a_study_without_an_episode_has_a_report(outcome, tmp_path):
    study = outcome.study
    write_report(tmp_path / 'r.html', Outcome(study, [], Verdict.of(study.trial.level, [], COUNT)), command=COMMAND)
    assert 'Nothing can be said: no episode has been run' in (tmp_path / 'r.html').read_text(encoding='utf-8')


def test_a_browser_draws_every_figure_without_a_fault(path, tmp_path):
    browser = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
    if browser is None:
        pytest.skip('no browser')
    words = [
        browser, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={tmp_path}', '--enable-logging=stderr',
        '--virtual-time-budget=10000', '--dump-dom', path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert 'CONSOLE' not in done.stderr
    figures = path.read_text(encoding='utf-8').count('Plotly.newPlot(')
    assert figures == len(re.findall('class="[^"]*svg-container', done.stdout)) == 10
