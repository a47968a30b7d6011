# SPDX-License-Identifier: Apache-2.0
"""CSV metadata of whole_body_tracking, mjlab and legged_control2."""

from __future__ import annotations

import numpy as np
import pytest
from foreign import assumed, hints, terms_of, write_network, write_tracker
from foreign_metadata import CSV, CSV_WIDTH

from sim2real_ros.contract.importers import import_policy, mjlab
from sim2real_ros.contract.importers.metadata import Csv
from sim2real_ros.errors import DocumentError


def velocity(path, width=CSV_WIDTH, **changes):
    meta = {key: value for key, value in {**CSV, **changes}.items() if value is not None}
    return write_network(path, {'obs': (1, width)}, {'actions': (1, 2)}, meta)


def test_detects_only_its_own_metadata(tmp_path):
    assert mjlab.detect(velocity(tmp_path / 'a.onnx')) == 1.0
    assert mjlab.detect(velocity(tmp_path / 'b.onnx', joint_stiffness=None)) == 0.0
    assert mjlab.detect(velocity(tmp_path / 'c.onnx', joint_names='["hip_joint"]')) == 0.0
    assert mjlab.detect(tmp_path / 'none.onnx') == 0.0


def test_velocity_policy_becomes_a_contract(tmp_path):
    contract = import_policy(velocity(tmp_path / 'walk.onnx'), tmp_path / 'out', robot='testbot')
    assert contract.joints == ('hip_joint', 'knee_joint')
    assert contract.gains.stiffness.tolist() == [40.179, 99.098]
    assert contract.file.outputs['actions'].scale == {'hip_joint': 0.548, 'knee_joint': 0.351}
    assert [use.term for use in contract.file.inputs['obs'].terms] == [
        'base_ang_vel', 'projected_gravity', 'joint_pos_rel', 'joint_vel', 'last_action', 'velocity_command'
    ]  # fmt: skip
    assert '/home/someone' not in (tmp_path / 'out' / 'policy.yaml').read_text()


def test_says_how_much_rounding_cost(tmp_path):
    imported = mjlab.read(velocity(tmp_path / 'walk.onnx', action_scale='0.075,0.351'), hints(tmp_path))
    told = assumed(imported)
    assert '0.67 %' in told['outputs.actions.scale']
    assert 'rounds to 3 decimals' in told['stiffness']
    assert {'rate_hz', 'outputs.actions.offset', 'outputs.actions.clip', 'commands.velocity.x'} <= set(told)


def test_numbers_with_more_decimals_are_not_called_rounded(tmp_path):
    imported = mjlab.read(velocity(tmp_path / 'walk.onnx', joint_stiffness='40.17924,99.09843'), hints(tmp_path))
    assert 'stiffness' not in assumed(imported)


def test_one_scale_stands_for_all_joints(tmp_path):
    imported = mjlab.read(velocity(tmp_path / 'walk.onnx', action_scale='0.5'), hints(tmp_path))
    assert imported.contract['outputs']['actions']['scale'] == 0.5


def test_histories_written_as_decimals_are_term_major_and_oldest_first(tmp_path):
    path = velocity(tmp_path / 'walk.onnx', 5 * CSV_WIDTH, observation_terms_history_length=','.join(['5.000'] * 6))
    imported = mjlab.read(path, hints(tmp_path))
    assert imported.contract['inputs']['obs']['stack'] == {'lags': [4, 3, 2, 1, 0], 'layout': 'term_major', 'fill': 'first'}
    assert 'oldest first' in assumed(imported)['inputs.obs.stack']


def test_histories_that_differ_become_lags_of_their_own(tmp_path):
    path = velocity(tmp_path / 'walk.onnx', observation_history_lengths='3,1,0,1,1,1')
    terms = mjlab.read(path, hints(tmp_path)).contract['inputs']['obs']['terms']
    assert [use['lags'] for use in terms] == [[2, 1, 0], [0], [0], [0], [0], [0]]


def test_clip_comes_before_scale(tmp_path):
    path = velocity(
        tmp_path / 'walk.onnx',
        observation_terms_scale='0.250,1.000,1.000,0.050,1.000,1.000',
        observation_terms_clip='-100.0;100.0,-inf;inf,-inf;inf,-100.0;inf,-inf;inf,None',
    )
    terms = mjlab.read(path, hints(tmp_path)).contract['inputs']['obs']['terms']
    assert terms[0] == {'term': 'base_ang_vel', 'clip': [-100.0, 100.0], 'scale': 0.25, 'process': ['clip', 'scale']}
    assert 'clip' not in terms[1]
    assert terms[3]['clip'] == [-100.0, 1e30]


def test_clips_in_brackets():
    csv = Csv({'c': '[-inf, inf],[-1.0, 1.0],(-2.0, 2.0)'}, 'a file')
    assert csv.clips('c', 3) == [None, [-1.0, 1.0], [-2.0, 2.0]]
    assert not csv.faults


def test_all_faults_come_in_one_message(tmp_path):
    path = velocity(
        tmp_path / 'walk.onnx',
        joint_damping='1.0,2.0,3.0',
        default_joint_pos='a,b',
        observation_names='base_ang_vel,height_scan',
        observation_terms_history_length='1.5,1.0',
    )
    with pytest.raises(DocumentError) as caught:
        mjlab.read(path, hints(tmp_path))
    text = str(caught.value)
    for part in ('joint_damping: has 3 numbers, 2', 'default_joint_pos: numbers', 'height_scan', 'history_length: whole'):
        assert part in text, text


def test_a_history_that_is_not_flat_is_refused(tmp_path):
    path = velocity(
        tmp_path / 'walk.onnx',
        observation_terms_history_length=','.join(['5.000'] * 6),
        observation_terms_flatten_history_dim='True,True,False,True,True,True',
    )
    with pytest.raises(DocumentError, match='not flattened'):
        mjlab.read(path, hints(tmp_path))


WAIST = ['waist_yaw_joint', 'waist_roll_joint', 'waist_pitch_joint', 'hip_joint']
TICKS = 37


def tracker(path, anchor='torso_link', **changes):
    n = len(WAIST)
    meta = {
        **CSV,
        'joint_names': ','.join(WAIST),
        'joint_stiffness': '40.0,40.0,40.0,40.0',
        'joint_damping': '2.0,2.0,2.0,2.0',
        'default_joint_pos': '0.000,0.000,0.000,0.100',
        'command_names': 'motion',
        'observation_names': 'command,motion_anchor_pos_b,motion_anchor_ori_b,base_ang_vel,joint_pos,joint_vel,actions',
        'action_scale': '0.5,0.5,0.5,0.5',
        'anchor_body_name': anchor,
        'body_names': 'pelvis,hip_link,torso_link',
        **changes,
    }
    random = np.random.default_rng(0)
    tables = {
        'joint_pos': random.normal(size=(TICKS, n)),
        'joint_vel': random.normal(size=(TICKS, n)),
        'body_pos_w': random.normal(size=(TICKS, 3, 3)),
        'body_quat_w': random.normal(size=(TICKS, 3, 4)),
    }
    return write_tracker(path, 5 * n + 3 + 6 + 3, tables, n, meta)


def test_tracker_finds_motion_length_anchor_row_and_waist(tmp_path):
    imported = mjlab.read(tracker(tmp_path / 'dance.onnx'), hints(tmp_path))
    assert imported.contract['inputs']['time_step'] == {'counter': 'ticks', 'start': 0, 'last': TICKS - 1, 'end': 'hold'}
    assert terms_of(imported.contract, 'obs')[:3] == ['motion_command', 'motion_anchor_pos_b', 'motion_anchor_ori_b']
    motion = imported.contract['motion']
    assert motion['quantities']['anchor_quat'] == 'body_quat_w[2]'
    assert motion['quaternion'] == 'wxyz'
    assert [axis for _, axis in motion['anchor']['chain']] == ['z', 'x', 'y']
    assert 'motion.quaternion' in assumed(imported)


def test_tracker_with_an_anchor_that_is_not_known_says_what_to_set(tmp_path):
    path = tracker(tmp_path / 'dance.onnx', 'hip_link')
    with pytest.raises(DocumentError, match='--set motion.anchor'):
        mjlab.read(path, hints(tmp_path))
    imported = mjlab.read(path, hints(tmp_path, overrides={'motion.anchor': {'body': 'hip_link', 'chain': []}}))
    assert imported.contract['motion']['quantities']['anchor_pos'] == 'body_pos_w[1]'


def test_tracker_without_its_anchor_among_the_bodies_is_refused(tmp_path):
    with pytest.raises(DocumentError, match='anchor_body_name: head'):
        mjlab.read(tracker(tmp_path / 'dance.onnx', 'head'), hints(tmp_path))
