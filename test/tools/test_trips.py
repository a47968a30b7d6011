# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real trips`: a list that survives bad files, one trip in words and tables, and its rows as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from sim2real_ros.safety import Mode
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.recorder import FlightRecorder
from sim2real_ros.signals import JointTargets, RobotState
from sim2real_ros.tools.cli import main

JOINTS = ('front_hip', 'front_knee')
DT = 0.01


def record(
    folder: Path, fault: str = 'tilt', message: str = 'the base leans by 1.05 rad, allowed 1 rad', *, silent=False
) -> Path:
    """Record 50 ticks of a robot that tips over, its knee limited at the end; 5 more follow the trip."""
    saved: list[Path] = []
    recorder = FlightRecorder(JOINTS, robot='bot', rate_hz=1 / DT, before_s=1.0, after_s=0.1, folder=folder, saved=saved.append)
    recorder.policy('walk', 'abcd1234')
    recorder.note(0.0, (np.zeros(5), np.array([0.5, -3.25])))
    for k in range(56):
        if k == 50:
            recorder.trip(fault, message)
        lean, hit = k * 0.021, 40 <= k <= 50
        quat = np.array([np.sin(lean / 2), 0.0, 0.0, np.cos(lean / 2)])
        state = RobotState(DT * k, np.array([0.1, -1.5]), np.array([0.0, 2.0 * (k == 45)]), quat, np.zeros(3), imu_age=0.001)
        wanted, sent = np.array([1.0, 20.0]), np.array([1.0, 12.5 if hit else 20.0])
        torques = [None] * 5 if silent else [wanted, wanted, wanted, sent, sent]
        targets = None if silent else JointTargets(DT * (k - 2), np.array([0.2, -1.4]), np.zeros(2), np.zeros(2))
        mode = Mode.ACTIVE if k < 50 else Mode.FAULT
        recorder.write(mode, state, targets, *torques, np.array([0, Limit.BARRIER if hit else 0]))
    recorder.finish()
    return saved[0]


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main(['trips', *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with an older and a newer trip."""
    made = tmp_path / 'trips'
    old = record(made, 'estop', 'emergency stop requested')
    old.rename(made / '20010101T000000Z_bot_estop.npz')
    record(made)
    return made


@pytest.mark.parametrize('exists', [False, True])
def test_an_empty_folder_is_a_sentence(tmp_path, capsys, monkeypatch, exists):
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path))
    if exists:
        (tmp_path / 'sim2real_trips').mkdir()
    code, out, _ = run(capsys)
    assert code == 0
    assert out.startswith(f'No trip is recorded in {tmp_path}/sim2real_trips')


def test_the_list_is_newest_first_and_says_what_happened(folder, capsys):
    code, out, _ = run(capsys, '--folder', folder)
    assert code == 0
    assert out.index('tilt') < out.index('estop')
    line = next(line for line in out.splitlines() if 'tilt' in line)
    for word in ('1', 'bot', 'walk', 'the base leans by 1.05 rad', '0.5', '0.1'):
        assert word in line


def test_a_file_that_cannot_be_read_does_not_hide_the_others(folder, capsys):
    broken = folder / '20200101T000000Z_bot_tilt.npz'
    broken.write_bytes((folder / '20010101T000000Z_bot_estop.npz').read_bytes()[:3000])
    code, out, _ = run(capsys, '--folder', folder)
    assert code == 0
    assert 'emergency stop requested' in out
    assert f'#2 {broken}: not the record of a trip' in out


def test_one_trip_says_why_and_shows_each_table(folder, capsys):
    code, out, _ = run(capsys, 1, '--folder', folder)
    assert code == 0
    for text in (
        'tilt: the base leans by 1.05 rad, allowed 1 rad',
        'robot bot, policy walk [abcd1234]',
        '0.49 s before and 0.05 s after',
        'mode active, then fault',
        'leans by 1.05 rad',
        'answer a state of 20.0 ms before',
    ):
        assert text in out


def test_joints_show_the_torque_of_each_stage_that_altered_it(folder, capsys):
    _, out, _ = run(capsys, 1, '--folder', folder)
    rows = [line.split() for line in out.splitlines()]
    assert ['front_hip', '0.10', '0.00', '0.20', '1.00', '1.00'] in rows
    assert ['front_knee', '-1.50', '0.00', '-1.40', '20.00', '12.50', '12.50', 'barrier'] in rows


def test_limits_and_worst_values_are_named(folder, capsys):
    _, out, _ = run(capsys, 1, '--folder', folder)
    rows = [' '.join(line.split()) for line in out.splitlines()]
    assert any(row.startswith('barrier 22% front_knee 11') for row in rows)  # 11 of 51 ticks
    assert 'joint speed, rad/s 2.00 -0.050 front_knee' in rows
    assert any(row.startswith('action of the policy 3.25') for row in rows)


def test_the_ticks_before_it_are_shown(folder, capsys):
    _, out, _ = run(capsys, 1, '--folder', folder)
    ticks = [line.split()[0] for line in out.splitlines() if line.endswith('barrier ') or 'barrier' in line.split()[-1:]]
    assert '-100.0' in ticks
    assert '-110.0' not in ticks


def test_a_trip_without_targets_and_torques_is_printed(tmp_path, capsys):
    path = record(tmp_path, silent=True)
    code, out, _ = run(capsys, path)
    assert code == 0
    assert 'front_knee' in out
    assert 'nan' not in out


@pytest.mark.parametrize('by_path', [True, False])
def test_a_trip_is_found_by_path_or_name(folder, capsys, by_path):
    name = '20010101T000000Z_bot_estop.npz'
    code, out, _ = run(capsys, folder / name if by_path else name, '--folder', folder)
    assert code == 0
    assert 'emergency stop requested' in out


@pytest.mark.parametrize(('which', 'says'), [('3', 'has the trips 1 to 2'), ('0', '1 to 2'), ('none.npz', 'no such file')])
def test_a_trip_that_is_not_there_is_one_sentence(folder, capsys, which, says):
    code, _, err = run(capsys, which, '--folder', folder)
    assert code == 1
    assert says in err


def test_csv_has_a_line_per_tick_with_every_number(folder, tmp_path, capsys):
    path = tmp_path / 'out.csv'
    code, out, _ = run(capsys, 1, '--folder', folder, '--csv', path)
    assert code == 0
    assert str(path) in out
    with path.open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 56
    assert (rows[49]['mode'], rows[50]['mode']) == ('active', 'fault')
    assert float(rows[50]['stamp']) == DT * 50
    assert float(rows[50]['torque_sent.front_knee']) == 12.5
    assert int(rows[50]['reasons.front_knee']) == Limit.BARRIER
    assert float(rows[45]['joint_vel.front_knee']) == 2.0
    assert float(rows[50]['base_quat_xyzw.w']) == np.cos(50 * 0.021 / 2)


def test_csv_faults_are_one_sentence(folder, tmp_path, capsys):
    code, _, err = run(capsys, 1, '--folder', folder, '--csv', tmp_path / 'no' / 'out.csv')
    assert code == 1
    assert '--csv' in err
    code, _, err = run(capsys, '--folder', folder, '--csv', tmp_path / 'out.csv')
    assert code == 1
    assert 'say which' in err
