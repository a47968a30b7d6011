# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real validate`: its exit code is the claim, an episode can be seen again, and no mistake costs a study."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from makers import REPOSITORY, contract_data, make_onnx, write_yaml

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('joblib', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.tools.cli import main  # noqa: E402
from sim2real_ros.validation.schema import load_validation  # noqa: E402

EPISODES = '16'


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A working folder with a copy of the shipped policy and a level of seconds, in which it is easy to pass."""
    shutil.copytree(REPOSITORY / 'policies' / 'go2_velocity', tmp_path / 'policy')
    (tmp_path / 'policy' / 'passport.json').unlink(missing_ok=True)
    write(tmp_path / 'tiny.yaml')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, **changes) -> Path:
    document = yaml.safe_load((REPOSITORY / 'config' / 'validation' / 'quick.yaml').read_text())
    document |= {'name': path.stem, 'episode_s': 1.5, 'command_s': 2.0, 'claim': {'success': 0.8}, 'passport': True}
    return write_yaml(path, document | changes)


def run(*words: object) -> int:
    return main(['validate', 'policy', '--level', 'tiny.yaml', '--episodes', EPISODES, '--jobs', '1', *map(str, words)])


def document(path: Path) -> dict:
    return json.loads(path.read_text())


@pytest.mark.parametrize('name', ['quick', 'standard', 'hard', 'arm'])
def test_every_shipped_level_can_be_read(name):
    level, _ = load_validation(name)
    assert level.name == name
    assert level.passport == (name in ('standard', 'arm'))


def test_hard_is_wider_than_standard_in_every_range():
    standard, hard = (load_validation(name)[0] for name in ('standard', 'hard'))
    for name in type(standard.ranges).model_fields:
        narrow, wide = getattr(standard.ranges, name), getattr(hard.ranges, name)
        if name == 'push_interval_s':
            assert narrow == wide
        elif isinstance(narrow, list) and len(narrow) == 2:
            assert wide[0] <= narrow[0], name
            assert wide[1] > narrow[1], name
        else:
            assert np.all(np.array(wide) > np.array(narrow)), name


def test_a_claim_that_holds_is_exit_code_0_a_passport_and_a_verdict_file(work, capsys):
    assert run('--json', 'verdict.json') == 0
    written = document(work / 'verdict.json')
    assert written == document(work / 'runs' / 'validation' / 'go2_velocity-tiny-1' / 'verdict.json')
    assert written['verdict']['holds']
    assert len(written['worst']) == 5
    passport = document(work / 'policy' / 'passport.json')
    assert passport['level'] == 'tiny'
    assert passport['episodes'] == written['verdict']['n']
    out = capsys.readouterr().out
    assert 'holds: no failures in' in ' '.join(out.split())
    assert 'passport.json' in out


def test_a_claim_that_does_not_hold_is_exit_code_1_without_a_passport_and_with_what_would_mend_it(work, capsys, monkeypatch):
    monkeypatch.setattr('sim2real_ros.tools.validate.remedies', lambda trial: {'nothing': trial})
    write(work / 'tiny.yaml', success={'fall_height': 0.999}, episodes=16)
    assert run('--json', 'verdict.json') == 1
    written = document(work / 'verdict.json')
    assert not written['verdict']['holds']
    assert [mend['text'] for mend in written['mends']] == ['nothing']
    assert not (work / 'policy' / 'passport.json').exists()
    assert 'does not hold' in ' '.join(capsys.readouterr().out.split())


def test_a_level_that_earns_no_passport_says_so(work, capsys):
    write(work / 'tiny.yaml', passport=False)
    assert run() == 0
    assert not (work / 'policy' / 'passport.json').exists()
    assert 'no passport' in capsys.readouterr().out


def test_episodes_that_are_judged_anew_under_other_terms_earn_no_passport(work, capsys):
    assert run('--no-early-stop') == 0
    (work / 'policy' / 'passport.json').unlink()
    assert run() == 1
    assert 'second chance' in ' '.join(capsys.readouterr().out.split())
    assert not (work / 'policy' / 'passport.json').exists()
    assert run('--no-early-stop') == 0
    assert (work / 'policy' / 'passport.json').exists()


def test_an_episode_is_replayed_and_compared_with_the_study(work, capsys):
    assert run() == 0
    capsys.readouterr()
    assert run('--replay', 'flat:1') == 0
    out = capsys.readouterr().out
    assert 'the same as in the study, bit for bit' in out
    assert 'push_speed_m_s' in out
    assert run('--replay', 'flat:900') == 0
    assert 'not compared' in capsys.readouterr().out


def test_a_replay_that_comes_out_otherwise_is_exit_code_1(work, capsys):
    assert run() == 0
    ledger = work / 'runs' / 'validation' / 'go2_velocity-tiny-1' / 'episodes.jsonl'
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    for line in lines[1:]:
        line['digest'] = '0'
    ledger.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    assert run('--replay', 'flat:1') == 1
    assert 'NOT the same' in capsys.readouterr().out


def test_a_replay_can_be_drawn_without_a_screen(work):
    """In a process of its own: how MuJoCo draws is settled when it is imported."""
    pytest.importorskip('PIL', reason='Pillow is not installed')
    line = [sys.executable, '-m', 'sim2real_ros.tools.cli', 'validate', 'policy', '--level', 'tiny.yaml']
    line += ['--replay', 'rough:1', '--video', 'episode.gif']
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, env=os.environ | {'PYTHONPATH': str(REPOSITORY)})
    if 'cannot draw without a screen' in done.stderr:
        assert done.returncode == 1
        pytest.skip('nothing here can draw')
    assert done.returncode == 0, done.stderr
    assert (work / 'episode.gif').read_bytes().startswith(b'GIF8')


def test_failures_that_a_search_found_are_replayed_by_their_number(work, capsys, monkeypatch):
    pytest.importorskip('cma', reason='the extra `validate` is not installed')
    monkeypatch.setattr('sim2real_ros.validation.worst.search.__kwdefaults__', {
        'walks': 1, 'population': 6, 'generations': 1, 'seen': None,
    })  # fmt: skip
    ranges = load_validation('quick')[0].model_dump()['ranges'] | {'payload_kg': [0.0, 80.0]}
    write(work / 'tiny.yaml', ranges=ranges, scenarios={'flat': {'share': 1.0}})
    monkeypatch.setattr('sim2real_ros.tools.validate.remedies', lambda trial: {'nothing': trial})
    run('--worst', '--json', 'verdict.json')
    assert document(work / 'verdict.json')['found']
    capsys.readouterr()
    assert run('--replay', 'worst:1') == 0
    assert 'the same as in the study, bit for bit' in capsys.readouterr().out
    assert run('--replay', 'worst:99') == 1
    assert 'there is no worst:99' in capsys.readouterr().err


def test_a_policy_against_itself_is_refused_before_anything_runs(work, capsys):
    assert run('--against', 'policy') == 1
    assert 'is the same policy' in capsys.readouterr().err
    assert not (work / 'runs').exists()


def test_a_failure_in_the_same_worlds_takes_the_passport_away_and_one_in_others_does_not(work, capsys):
    assert run() == 0
    passport = work / 'policy' / 'passport.json'
    document(passport)
    write(work / 'tiny.yaml', ranges={'payload_kg': [60.0, 80.0]}, episodes=16)
    assert run('--fresh') == 1
    assert 'passport.json stays' in ' '.join(capsys.readouterr().out.split())
    text = passport.read_text()
    write(work / 'tiny.yaml', success={'fall_height': 0.999}, episodes=16)
    passport.write_text(
        json.dumps(json.loads(text) | {'worlds': load_validation('tiny.yaml')[0].model_dump(mode='json', by_alias=True)})
    )
    assert run('--fresh') == 1
    assert 'withdrawn' in ' '.join(capsys.readouterr().out.split())
    assert not passport.exists()


def test_too_few_episodes_take_no_passport_away(work, capsys):
    assert run() == 0
    assert main(['validate', 'policy', '--level', 'tiny.yaml', '--episodes', '3', '--jobs', '1', '--seed', '2']) == 1
    assert 'passport.json stays' in ' '.join(capsys.readouterr().out.split())
    assert (work / 'policy' / 'passport.json').exists()


@pytest.mark.parametrize(
    ('changes', 'why'),
    [
        ({'claim': {'success': 0.5}}, '80% is the least'),
        ({'episode_s': 1.0}, 'no command is judged'),
        ({'success': {}}, 'does not judge whether commands are followed'),
    ],
)
def test_a_level_that_asks_too_little_earns_no_passport(work, capsys, changes, why):
    write(work / 'tiny.yaml', **changes)
    assert run() == 0
    assert why in ' '.join(capsys.readouterr().out.split())
    assert not (work / 'policy' / 'passport.json').exists()


def test_nothing_is_written_over_what_is_read(work, capsys):
    assert run('--json', 'policy/policy.yaml') == 1
    assert 'is read or written here already' in capsys.readouterr().err


def test_another_policy_of_the_same_name_needs_a_name_of_its_own(work, capsys):
    shutil.copytree(work / 'policy', work / 'other')
    text = (work / 'other' / 'policy.yaml').read_text()
    data = yaml.safe_load(text) | {'golden': None}
    write_yaml(work / 'other' / 'policy.yaml', data)
    assert run('--against', 'other') == 1
    assert 'both policies are called go2_velocity' in capsys.readouterr().err
    write_yaml(work / 'other' / 'policy.yaml', data | {'name': 'another'})
    assert run('--against', 'other') == 0
    assert 'no difference is shown' in ' '.join(capsys.readouterr().out.split())


def test_a_report_says_how_each_of_the_worst_episodes_is_seen_again(work):
    pytest.importorskip('plotly', reason='the extra `report` is not installed')
    assert run('--html', 'reports/study.html') == 0
    html = (work / 'reports' / 'study.html').read_text(encoding='utf-8')
    commands = re.findall('<code>(sim2real validate .*?)</code>', html)
    assert len(commands) == 5
    assert main(commands[0].split()[1:]) == 0


def test_an_arm_is_validated_at_its_own_level(work, capsys):
    robot = load_robot(str(REPOSITORY / 'test' / 'models' / 'arm7.yaml'))
    joints = list(robot.joints)
    make_onnx(work / 'policy.onnx', inputs={'obs': 14}, outputs={'actions': 7})
    data = contract_data(
        name='arm_hold', robot=robot.name, joints=joints, commands={},
        default_position=dict(zip(joints, robot.pose('stand').tolist(), strict=True)),
        stiffness=dict(zip(joints, robot.pose_move.stiffness.tolist(), strict=True)),
        damping=dict(zip(joints, robot.pose_move.damping.tolist(), strict=True)),
        inputs={'obs': {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'},
                        'terms': [{'term': 'joint_pos_rel'}, {'term': 'joint_vel'}]}},
        outputs={'actions': {'type': 'joint_position', 'scale': 0.01, 'offset': 'default', 'clip': [-1.0, 1.0]}},
    )  # fmt: skip
    write_yaml(work / 'policy.yaml', data)
    level = yaml.safe_load((REPOSITORY / 'config' / 'validation' / 'arm.yaml').read_text())
    write_yaml(work / 'short.yaml', level | {'episode_s': 1.0, 'command_s': 2.0, 'claim': {'success': 0.8}})
    words = ['validate', 'policy.yaml', '--robot', str(robot.path), '--level', 'short.yaml', '--episodes', '16', '--jobs', '1']
    assert main([*words, '--html', 'arm.html']) == 0
    assert (work / 'passport.json').is_file()
    assert (work / 'arm.html').is_file()
    assert 'bench' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['--view'], '--view and --video show one episode'),
        (['--replay', 'flat'], '"flat" is no episode'),
        (['--replay', 'moon:1'], 'no scenario "moon"; it has flat, slope, rough, steps'),
        (['--replay', 'worst:1'], 'search for the worst cases first'),
        (['--replay', 'flat:1', '--video', 'a.mp4'], 'ffmpeg'),
        (['--json', '/proc/none/x.json'], '--json: cannot write'),
        (['--level', 'nothing'], 'there is no validation level "nothing"; shipped are arm, hard, quick, standard'),
        (['--robot', 'nothing'], 'robot "nothing" is neither'),
        (['--scheduler', 'localhost'], 'tcp://HOST:PORT (Dask) or ray://HOST:PORT is expected'),
    ],
)
def test_a_mistake_costs_one_sentence_and_no_study(work, capsys, words, said):
    assert run(*words) == 1
    assert said in capsys.readouterr().err
    assert not list(work.glob('runs/validation/*/episodes.jsonl'))


def test_view_without_a_display_says_so(work, capsys, monkeypatch):
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    assert run('--replay', 'flat:1', '--view') == 1
    assert 'there is no display' in capsys.readouterr().err


def test_a_study_that_is_interrupted_goes_on_and_another_one_is_refused(work, capsys):
    assert run('--no-early-stop') == 0
    ledger = work / 'runs' / 'validation' / 'go2_velocity-tiny-1' / 'episodes.jsonl'
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: len(whole) // 2])
    assert run('--no-early-stop') == 0
    assert sorted(ledger.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert 'episodes were run before' in capsys.readouterr().out
    write(work / 'tiny.yaml', episode_s=2.0)
    assert run() == 1
    assert 'holds the episodes of another study; start over with --fresh' in capsys.readouterr().err
    assert run('--fresh') == 0
