# SPDX-License-Identifier: Apache-2.0
"""JSON metadata of holosoma, terms in alphabetical order."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from foreign import assumed, hints, terms_of, third_party, write_network, write_tracker
from foreign_metadata import G1, holosoma_meta
from traces import differences, load_trace, replay_all
from transforms3d import quaternions

from sim2real_ros.contract.importers import holosoma, import_policy
from sim2real_ros.contract.importers.holosoma_presets import T1_23
from sim2real_ros.contract.importers.trackers import chain_of_urdf
from sim2real_ros.errors import DocumentError, FormatError
from sim2real_ros.signals import LEVEL_XYZW

T1 = ['AAHead_yaw', *(f'T1_{i}' for i in range(22))]
LOCO_ORDER = [
    'last_action', 'base_ang_vel', 'velocity_command_yaw', 'velocity_command_lin', 'phase_cos', 'joint_pos_rel', 'joint_vel',
    'projected_gravity', 'phase_sin',
]  # fmt: skip
URDF = """<robot name="g1"><link name="pelvis"/><link name="w1"/><link name="w2"/><link name="torso_link"/>
<joint name="waist_yaw_joint" type="revolute"><origin xyz="0 0 1" rpy="0 0 0"/><parent link="pelvis"/><child link="w1"/>
<axis xyz="0 0 1"/></joint>
<joint name="waist_roll_joint" type="revolute"><parent link="w1"/><child link="w2"/><axis xyz="-1 0 0"/></joint>
<joint name="torso_fixed" type="fixed"><parent link="w2"/><child link="torso_link"/></joint></robot>"""


def loco(path, width=100, joints=G1, **changes):
    return write_network(path, {'actor_obs': (1, width)}, {'action': (1, len(joints))}, holosoma_meta(joints, **changes))


def wbt(path, joints=G1, **changes):
    n = len(joints)
    tables = {'joint_pos': np.arange(12.0 * n).reshape(12, n), 'joint_vel': np.ones((12, n)), 'ref_pos_xyz': np.ones((12, 3)),
              'ref_quat_xyzw': np.ones((12, 4))}  # fmt: skip
    return write_tracker(path, 5 * n + 9, tables, n, holosoma_meta(joints, command_ranges=None, **changes))


def test_terms_stand_in_alphabetical_order(tmp_path):
    imported = holosoma.read(loco(tmp_path / 'a.onnx'), hints(tmp_path))
    assert terms_of(imported.contract, 'actor_obs') == LOCO_ORDER
    assert 'sorts the terms by name' in assumed(imported)['inputs.actor_obs.terms']


def test_the_file_lacks_what_presets_know_and_each_is_an_assumption(tmp_path):
    imported = holosoma.read(loco(tmp_path / 'a.onnx'), hints(tmp_path))
    told = assumed(imported)
    assert {'default_position', 'outputs.action.scale', 'outputs.action.clip', 'rate_hz', 'phase'} <= set(told)
    assert 'config_values/robot.py' in told['default_position']
    assert imported.contract['default_position']['left_knee_joint'] == 0.669
    assert 'first_tick' not in imported.contract['phase']  # upstream advances first, but starts anew when it begins to walk
    assert imported.contract['phase']['standing_phase'] == 0.5
    assert imported.contract['commands']['velocity']['yaw'] == [-0.7, 0.7]


def test_t1_has_scales_of_its_own(tmp_path):
    def scales(path, joints, width):
        terms = holosoma.read(loco(path, width, joints), hints(tmp_path)).contract['inputs']['actor_obs']['terms']
        return [use.get('scale', 1.0) for use in terms if use['term'] in ('base_ang_vel', 'joint_vel')]

    assert scales(tmp_path / 'g.onnx', G1, 100) == [0.25, 0.05]
    assert scales(tmp_path / 't.onnx', T1, 3 * 23 + 13) == [1.0, 0.1]
    assert len(T1_23.angles) == 23


def test_a_multiple_of_the_width_is_a_history_filled_with_zeros(tmp_path):
    imported = holosoma.read(loco(tmp_path / 'a.onnx', 400), hints(tmp_path))
    assert imported.contract['inputs']['actor_obs']['stack'] == {'lags': [3, 2, 1, 0], 'layout': 'term_major', 'fill': 'zeros'}


def test_a_width_of_no_list_is_refused_with_those_that_exist(tmp_path):
    with pytest.raises(DocumentError, match=r'98 numbers for 29 joints.*100 \(locomotion\)'):
        holosoma.read(loco(tmp_path / 'a.onnx', 98), hints(tmp_path))


def test_a_robot_without_preset_needs_its_default_position(tmp_path):
    path = loco(tmp_path / 'a.onnx', 3 * 2 + 13, ['a_joint', 'b_joint'])
    with pytest.raises(DocumentError, match='default_position: the source does not state it.*--set default_position'):
        import_policy(path, tmp_path / 'out')
    contract = import_policy(path, tmp_path / 'out', overrides={'default_position': {'.*': 0.2}})
    assert contract.default_position.tolist() == [0.2, 0.2]


@pytest.mark.parametrize('given', [[0.5] * 29, 0.5, ','.join(['0.5'] * 29)])
def test_action_scale_of_later_versions_is_no_assumption(tmp_path, given):
    imported = holosoma.read(loco(tmp_path / 'a.onnx', action_scale=given), hints(tmp_path))
    assert imported.contract['outputs']['action']['scale'] == 0.5
    assert 'outputs.action.scale' not in assumed(imported)


def test_gains_of_a_wrong_length_and_missing_ones_are_refused(tmp_path):
    with pytest.raises(DocumentError, match='(?s)kp: has 28 numbers, 29.*kd: is missing'):
        holosoma.read(loco(tmp_path / 'a.onnx', kp=[1.0] * 28, kd=...), hints(tmp_path))


def test_tracker_takes_the_way_to_the_torso_from_the_urdf(tmp_path):
    imported = holosoma.read(wbt(tmp_path / 'a.onnx', robot_urdf=URDF, robot_urdf_path='/home/me/g1.urdf'), hints(tmp_path))
    assert terms_of(imported.contract, 'obs') == [
        'last_action', 'base_ang_vel', 'joint_pos_rel', 'joint_vel', 'motion_command', 'motion_anchor_ori_b'
    ]  # fmt: skip
    assert imported.contract['motion']['quaternion'] == 'xyzw'
    assert imported.contract['motion']['anchor']['chain'] == [['waist_yaw_joint', 'z'], ['waist_roll_joint', '-x']]
    assert imported.contract['inputs']['time_step']['last'] == 11
    assert '/home/me' not in str(imported)


def test_tracker_without_urdf_knows_the_waist_of_g1(tmp_path):
    imported = holosoma.read(wbt(tmp_path / 'a.onnx'), hints(tmp_path))
    assert [axis for _, axis in imported.contract['motion']['anchor']['chain']] == ['z', 'x', 'y']


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('<parent link="pelvis"/>', '<parent link="w2"/>', 'cyclic'),
        ('rpy="0 0 0"', 'rpy="0 0.3 0"', 'mounted at an angle'),
        ('<axis xyz="-1 0 0"/>', '<axis xyz="1 1 0"/>', 'no axis of its frame'),
        ('<axis xyz="-1 0 0"/>', '<axis xyz="a b c"/>', 'no number'),
        ('type="fixed"', 'type="prismatic"', 'is prismatic'),
        ('"torso_link"', '"chest"', 'no link torso_link'),
        ('</robot>', '', 'not valid XML'),
        ('<robot name="g1">', '<!DOCTYPE r [<!ENTITY a "b">]><robot name="g1">', 'entities'),
    ],
)
def test_urdf_that_cannot_be_followed_is_refused(old, new, message):
    with pytest.raises(FormatError, match=message):
        chain_of_urdf(URDF.replace(old, new), 'torso_link')


def imported_with_spec(tmp_path, name):
    folder = third_party(name)
    contract = import_policy(folder, tmp_path / 'out')
    spec = json.loads((folder / 'spec.json').read_text())
    assert contract.default_position.tolist() == pytest.approx(spec['default_pose'])
    assert contract.gains.stiffness[0] == 40.179238471
    return contract, load_trace(folder)


def worst_target(targets, trace):
    return np.abs(np.stack([target.position for target in targets]) - trace.targets).max()


def test_real_locomotion_feeds_what_upstream_feeds(tmp_path):
    contract, trace = imported_with_spec(tmp_path, 'holosoma_ppo_g1')
    built, targets = replay_all(contract, trace)
    assert differences(built, trace)['actor_obs'] < 1e-6
    assert worst_target(targets, trace) < 1e-4


def test_real_tracker_feeds_what_upstream_feeds(tmp_path):
    contract, trace = imported_with_spec(tmp_path, 'holosoma_wbt_dance')
    built, targets = replay_all(contract, trace)
    assert np.abs(built['obs'] - trace.inputs['obs'])[:, :-6].max() < 1e-6
    assert np.abs(built['time_step'] - trace.inputs['time_step']).max() == 0
    assert worst_target(targets, trace) < 1e-4
    # the recorder read the torso's orientation before the last physics step of 2 ms, everything else after it
    before = replace(trace, states=[rewound(state, 0.002) for state in trace.states])
    built = replay_all(contract, before)[0]
    assert np.abs(built['obs'] - trace.inputs['obs'])[1:, -6:].max() < 1e-6


def rewound(state, seconds):
    """Return a state as it was before a physics step: MuJoCo moves positions with the velocities that it ends with."""
    angle = np.linalg.norm(state.base_ang_vel) * seconds
    back = np.r_[-state.base_ang_vel * seconds / angle * np.sin(angle / 2), np.cos(angle / 2)] if angle else LEVEL_XYZW
    turned = quaternions.qmult(np.roll(state.base_quat_xyzw, 1), np.roll(back, 1))
    return replace(state, joint_pos=state.joint_pos - seconds * state.joint_vel, base_quat_xyzw=np.roll(turned, -1))
