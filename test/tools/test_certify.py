# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real certify`: the table says what the safety node will count on, and the exit code whether it starts."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from makers import REPOSITORY

from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import load_robot
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.barrier import PerJointBarrier
from sim2real_ros.safety.certificate import certify
from sim2real_ros.tools.cli import main

MODELS = REPOSITORY / 'test' / 'models'
ARM, HUMANOID = MODELS / 'arm7.yaml', MODELS / 'humanoid29.yaml'
with_mujoco = pytest.mark.skipif(importlib.util.find_spec('mujoco') is None, reason='needs the extra `sim`')


def run(capsys, *arguments: object) -> tuple[int, str]:
    code = main(['certify', *map(str, arguments)])
    return code, capsys.readouterr().out


def report(capsys, tmp_path: Path, robot: object, *, code: int = 0) -> dict:
    """Run the command and return its JSON."""
    out = tmp_path / 'certificate.json'
    assert run(capsys, robot, '--json', out)[0] == code
    return json.loads(out.read_text())


def changed(tmp_path: Path, source: Path = ARM, **sections) -> Path:
    """Write a robot file with other values; a mapping is merged into its section."""
    data = yaml.safe_load(source.read_text())
    data['urdf'] = str(source.parent / data['urdf'])
    for name, value in sections.items():
        data[name] = data[name] | value if isinstance(value, dict) else value
    path = tmp_path / source.name
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture
def no_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)


@with_mujoco
def test_a_quadruped_gets_the_barrier_that_needs_no_fixed_base(capsys):
    code, out = run(capsys, 'go2')
    assert code == 0
    assert 'barrier: per joint; the base floats' in out
    assert 'reckons with: 500 Hz, command delay 4 ms' in out
    assert 'the safety node accepts this robot' in out
    assert 'warning' not in out


@with_mujoco
def test_what_neighbours_can_overpower_is_not_promised_in_per_joint_mode(capsys, tmp_path):
    joints = {joint['name']: joint for joint in report(capsys, tmp_path, 'go2')['joints']}
    assert len(joints) == 12
    thigh, calf = joints['FL_thigh_joint'], joints['FL_calf_joint']
    assert thigh['reaction'] > 1 > calf['reaction']
    assert (thigh['promise_per_joint'], calf['promise_per_joint']) == ('none', 'tested only')
    assert {joint['promise_coupled'] for joint in joints.values()} == {'none'}  # a floating base has no coupled barrier


@with_mujoco
def test_the_soft_range_is_that_of_the_barrier_which_is_used(capsys, tmp_path):
    robot = load_robot('go2')
    (thigh,) = [joint for joint in report(capsys, tmp_path, 'go2')['joints'] if joint['name'] == 'FL_thigh_joint']
    i = robot.joints.index('FL_thigh_joint')
    kept = PerJointBarrier(robot, certify(robot)).margin[i]
    assert kept > robot.safety.position_margin  # its weight bends the bound
    np.testing.assert_allclose(thigh['soft_range_rad'], (robot.limits.lower[i] + kept, robot.limits.upper[i] - kept))


@with_mujoco
def test_an_arm_is_held_by_the_coupled_barrier_with_the_brake_that_it_has(capsys, tmp_path):
    found = report(capsys, tmp_path, ARM)
    assert found['accepted'] is found['certified'] is True
    assert found['barrier'] == 'coupled'
    shoulder = found['joints'][1]
    assert shoulder['brake_asked'] == 4.0
    assert 0.05 * 4.0 < shoulder['brake_certified'] < 4.0
    assert shoulder['soft_range_rad'] == pytest.approx([-1.7128, 1.7128], abs=1e-3)  # hard limits less 0.05 rad
    assert {joint['promise_coupled'] for joint in found['joints']} == {'held'}


@with_mujoco
def test_weak_joints_are_named_and_do_not_fail_unless_asked(capsys, tmp_path):
    code, out = run(capsys, HUMANOID)
    assert code == 0
    assert 'warning: weak, so without a promise: waist_roll_joint: braking takes' in out
    assert run(capsys, HUMANOID, '--strict')[0] == 1
    assert run(capsys, ARM, '--strict')[0] == 0
    joints = {joint['name']: joint for joint in report(capsys, tmp_path, HUMANOID)['joints']}
    assert {name for name, joint in joints.items() if joint['promise_coupled'] == 'none'} == {
        'waist_roll_joint', 'waist_pitch_joint',
    }  # fmt: skip


@pytest.mark.parametrize('robot', ['go2', ARM, HUMANOID], ids=['go2', 'arm7', 'humanoid29'])
def test_without_mujoco_nothing_is_promised_and_the_reason_is_said_once(capsys, tmp_path, no_mujoco, robot):
    code, out = run(capsys, robot)
    assert code == 0
    assert out.count('needs MuJoCo') == 1
    assert 'without a promise: every joint: no model of the robot' in out
    assert 'the gains were not held against the rate' in out
    assert 'barrier: per joint' in out
    found = report(capsys, tmp_path, robot)
    assert not found['certified']
    assert found['joints'][0]['inertia_low'] is None
    assert {joint['promise_per_joint'] for joint in found['joints']} == {'none'}
    assert run(capsys, robot, '--strict')[0] == 1


@with_mujoco
@pytest.mark.parametrize(
    ('section', 'sentence'),
    [
        ({'damping': {'joint[1-4]': 300.0}}, 'refused: damping: joint1 at 300 N m s/rad cannot be held at 500 Hz'),
        (
            {'pose_move': {'damping': {'joint[1-6]': 5.0, 'joint7': 80.0}}},
            'refused: pose_move.damping: joint7 at 80 N m s/rad cannot be held',
        ),
        (
            {'pose_move': {'stiffness': {'joint[1-6]': 60.0, 'joint7': 1e5}}},
            'refused: pose_move.stiffness: joint7 at 100000 N m/rad cannot be held',
        ),
    ],
)
def test_gains_that_the_rate_cannot_hold_refuse_the_robot_as_the_node_does(capsys, tmp_path, section, sentence):
    path = changed(tmp_path, **section)
    code, out = run(capsys, path)
    assert code == 1
    assert sentence in out
    assert 'accepts' not in out
    with pytest.raises(DocumentError, match='cannot be held'):
        SafetyFilter(load_robot(path))
    assert not report(capsys, tmp_path, path, code=1)['accepted']


def test_a_coupled_barrier_that_cannot_be_is_refused(capsys, tmp_path, no_mujoco):
    code, out = run(capsys, changed(tmp_path, safety={'barrier': 'coupled'}))
    assert code == 1
    assert 'refused: safety.barrier: coupled is asked for, but the embedded simulator needs MuJoCo' in out
    assert 'pip install' in out
    code, out = run(capsys, changed(tmp_path, safety={'barrier': 'coupled'}, base='floating'))
    assert code == 1
    assert 'refused: safety.barrier: coupled needs a fixed base' in out


@with_mujoco
@pytest.mark.parametrize(
    ('sections', 'reason'),
    [
        ({'safety': {'barrier': 'per_joint'}}, 'the robot file says safety.barrier: per_joint'),
        ({'simulation': None}, 'the robot file has no section `simulation`'),
    ],
)
def test_it_says_why_the_barrier_is_per_joint(capsys, tmp_path, sections, reason):
    code, out = run(capsys, changed(tmp_path, **sections))
    assert code == 0
    assert f'barrier: per joint; {reason}' in out


@with_mujoco
@pytest.mark.parametrize('robot', ['go2', ARM, HUMANOID], ids=['go2', 'arm7', 'humanoid29'])
def test_barrier_and_brakes_are_those_of_the_filter(capsys, tmp_path, robot):
    found, own = report(capsys, tmp_path, robot), SafetyFilter(load_robot(robot))
    assert (found['barrier'] == 'coupled') == own.coupled
    assert [joint['brake_certified'] for joint in found['joints']] == list(own.certificate.brake)


def test_faults_of_the_file_are_listed_before_anything_else(capsys, tmp_path):
    path = changed(tmp_path, damping={'elbow': 1.0})
    assert main(['certify', str(path)]) == 1
    captured = capsys.readouterr()
    assert not captured.out
    assert 'damping.elbow: matches no joint' in captured.err
