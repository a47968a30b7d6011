# SPDX-License-Identifier: Apache-2.0
"""env.yaml of Isaac Lab beside a network."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from foreign import assumed, hints, third_party
from foreign_isaac import ENV_WIDTH, LEGGED, LEGS, env_run

from sim2real_ros.contract.importers import env_yaml, import_policy
from sim2real_ros.errors import DocumentError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.signals import LEVEL_XYZW, RobotState

HALF = math.sqrt(0.5)


def test_branching_robots_need_their_joint_order(tmp_path):
    with pytest.raises(DocumentError, match='does not tell the order.*breadth first. Give --joints with 4 names'):
        env_yaml.read(env_run(tmp_path), hints(tmp_path))


def test_expressions_are_resolved_in_the_given_order(tmp_path):
    contract = import_policy(env_run(tmp_path), tmp_path / 'out', joints=LEGS)
    assert contract.default_position.tolist() == [0.1, 0.1, -1.5, -1.5]
    output = contract.file.outputs['actions']
    assert [output.scale[joint] for joint in LEGS] == [0.125, 0.125, 0.25, 0.25]
    assert output.target_clip == {'l_hip': [-1.0, 1.0], 'r_hip': [-1.0, 1.0]}
    assert contract.file.inputs['obs'].terms[0].process == ['clip', 'scale']
    assert contract.file.commands.velocity.x == [-1.0, 2.0]
    assert contract.file.rate_hz == 50


def test_a_history_of_the_group_wins(tmp_path):
    path = env_run(tmp_path, LEGGED.replace('history_length: null', 'history_length: 3', 1), 3 * ENV_WIDTH)
    imported = env_yaml.read(path, hints(tmp_path, joints=LEGS))
    assert imported.contract['inputs']['obs']['stack']['lags'] == [2, 1, 0]


@pytest.mark.parametrize('stiffness', ['null', '{.*_hip: 25.0}'])
def test_gains_of_the_usd_file_are_asked_for(tmp_path, stiffness):
    path = env_run(tmp_path, LEGGED.replace('{.*: 25.0}', stiffness))
    with pytest.raises(DocumentError, match='state no stiffness for .*l_knee'):
        env_yaml.read(path, hints(tmp_path, joints=LEGS))
    assert env_yaml.read(path, hints(tmp_path, joints=LEGS, overrides={'stiffness': {'.*': 1.0}}))


def test_a_tag_that_would_run_code_is_refused(tmp_path):
    path = env_run(tmp_path, LEGGED.replace('decimation: 4', 'decimation: !!python/object/apply:os.system ["true"]'))
    with pytest.raises(DocumentError, match='asks to run Python code: refused'):
        env_yaml.load_inert(path / 'params' / 'env.yaml')


def test_unknown_observations_and_actions_come_in_one_message(tmp_path):
    text = LEGGED.replace('observations:base_ang_vel', 'observations:height_scan').replace(':JointPositionAction', ':Muscle')
    with pytest.raises(DocumentError, match='(?s)Muscle.*height_scan'):
        env_yaml.read(env_run(tmp_path, text), hints(tmp_path, joints=LEGS))


def reach(tmp_path, change=lambda text: text):
    folder = third_party('ur10_reach')
    copied = tmp_path / 'ur10'
    copied.mkdir()
    (copied / 'env.yaml').write_text(change((folder / 'env.yaml').read_text()))
    (copied / 'policy.onnx').write_bytes((folder / 'ur_reach_policy.onnx').read_bytes())
    return copied


def flipped(text):
    """Return the file as Isaac Lab 3.0 would write it: quaternions xyzw."""
    one, zero = '      - 1.0\n', '      - 0.0\n'
    return text.replace(f'rot: !!python/tuple\n{one}{zero}{zero}{zero}', f'rot: !!python/tuple\n{zero}{zero}{zero}{one}')


def test_arm_that_reaches_poses(tmp_path):
    contract = import_policy(third_party('ur10_reach'), tmp_path / 'out')
    spec = json.loads((third_party('ur10_reach') / 'spec.json').read_text())
    assert list(contract.joints) == spec['joints']
    assert contract.default_position.tolist() == spec['default_pose']
    assert contract.gains.stiffness.tolist() == spec['kp']
    assert contract.gains.damping.tolist() == spec['kd']
    assert contract.file.rate_hz == 30
    assert contract.file.outputs['actions'].scale == 0.5
    assert contract.file.commands.pose.quaternion == 'wxyz'
    assert contract.file.commands.pose.initial == pytest.approx(
        [0.5, 0.0, 0.325, math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0], abs=1e-6
    )
    assert [use.term for use in contract.file.inputs['obs'].terms] == [
        'joint_pos_rel',
        'joint_vel',
        'pose_command',
        'last_action',
    ]


def test_arm_feeds_what_its_recipe_feeds(tmp_path):
    contract = import_policy(third_party('ur10_reach'), tmp_path / 'out')
    runner = PolicyRunner(contract)
    random = np.random.default_rng(0)
    last = np.zeros(6)
    for tick in range(20):
        q, qd, goal = random.normal(size=6), random.normal(size=6), random.normal(size=7)
        goal[3:] /= np.linalg.norm(goal[3:])
        targets = runner.step(RobotState(tick / 30, q, qd, LEVEL_XYZW), np.zeros(3), goal=goal)
        wanted = np.concatenate([q - contract.default_position, qd, goal[[0, 1, 2, 6, 3, 4, 5]], last])
        assert np.abs(runner.observation['obs'] - wanted).max() < 1e-6
        last = (targets.position - contract.default_position) / 0.5


def test_order_of_quaternions_is_told_by_those_that_do_not_turn(tmp_path):
    imported = env_yaml.read(reach(tmp_path, flipped), hints(tmp_path))
    assert imported.contract['commands']['pose']['quaternion'] == 'xyzw'
    assert imported.contract['commands']['pose']['initial'][3:] == pytest.approx(
        [0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5)], abs=1e-6
    )
    assert 'unit quaternion 0, 0, 0, 1' in assumed(imported)['commands.pose.quaternion']


def test_order_of_quaternions_is_asked_for_where_all_turn(tmp_path):
    source = reach(tmp_path, lambda text: text.replace('rot: !!python/tuple\n      - 1.0', 'rot: !!python/tuple\n      - 0.5'))
    with pytest.raises(DocumentError, match='--set commands.pose.quaternion=wxyz'):
        env_yaml.read(source, hints(tmp_path))
