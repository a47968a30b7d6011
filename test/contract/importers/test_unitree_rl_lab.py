# SPDX-License-Identifier: Apache-2.0
"""deploy.yaml: two joint orders, Python tags, groups, histories, clips, clocks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import yaml
from foreign_yaml import DEPLOY, POSE, SDK, SWAP, deploy, fields, term
from makers import make_onnx

from sim2real_ros.contract.importers import import_policy
from sim2real_ros.errors import DocumentError, FormatError


def changed(**observations):
    data = copy.deepcopy(DEPLOY)
    data['observations'] |= observations
    return data


def test_gains_come_from_motor_order_and_pose_from_policy_order(tmp_path):
    contract = import_policy(deploy(tmp_path / 'go2'), tmp_path / 'out')
    assert list(contract.joints) == [SDK[i] for i in SWAP]
    np.testing.assert_array_equal(contract.gains.stiffness, [i + 1.0 for i in SWAP])
    np.testing.assert_array_equal(contract.default_position, POSE)
    assert 'motor order' in contract.file.provenance.notes


def test_joint_names_are_an_assumption_with_their_source(tmp_path):
    contract = import_policy(deploy(tmp_path / 'dog'), tmp_path / 'out')
    (why,) = [one.source for one in contract.file.assumptions if one.field == 'joints']
    assert 'rests below -0.5 rad like a calf' in why
    assert contract.file.robot == 'go2'


def test_motors_that_nobody_knows_need_names(tmp_path):
    source = deploy(tmp_path / 'dog', default_joint_pos=[0.0] * 12)
    with pytest.raises(DocumentError, match='the file has no joint names. Name the robot'):
        import_policy(source, tmp_path / 'out')
    contract = import_policy(source, tmp_path / 'out', joints=tuple(f'motor_{i}' for i in range(12)), robot='mine')
    assert contract.joints[:4] == ('motor_3', 'motor_4', 'motor_5', 'motor_0')
    assert contract.file.robot == 'mine'


@pytest.mark.parametrize('longer', [27, 23])
def test_motors_without_a_joint_may_stand_in_the_gains_or_not(tmp_path, longer):
    used = [i for i in range(27) if i not in (13, 14, 20, 21)]
    gains = [float(i) for i in (range(27) if longer == 27 else used)]
    source = tmp_path / 'g1'
    deploy(source, width=78, joint_ids_map=used, stiffness=gains, damping=gains, default_joint_pos=[0.1] * 23,
           actions={'JointPositionAction': {'clip': None, 'scale': [0.25] * 23, 'offset': [0.1] * 23}},
           observations={'base_ang_vel': term(), 'projected_gravity': term(), 'velocity_commands': term(),
                         'joint_pos_rel': term(), 'joint_vel_rel': term(), 'last_action': term()})  # fmt: skip
    make_onnx(source / 'exported' / 'policy.onnx', {'obs': 78}, {'actions': 23})
    contract = import_policy(source, tmp_path / 'out')
    assert list(contract.gains.stiffness) == [float(i) for i in used]
    assert contract.joints[13] == 'left_shoulder_pitch_joint'


def test_slices_of_older_files_are_read(tmp_path):
    source = deploy(tmp_path / 'go2')
    path = source / 'params' / 'deploy.yaml'
    text = path.read_text().replace('joint_ids: null', 'joint_ids: !!python/object/apply:builtins.slice [null, null, null]')
    assert '!!python' in text
    path.write_text(text)
    import_policy(source, tmp_path / 'out')
    path.write_text(text.replace('builtins.slice [null, null, null]', 'os.system ["true"]'))
    with pytest.raises(FormatError, match='os.system asks to run Python code'):
        import_policy(source, tmp_path / 'b', 'unitree_rl_lab')


def test_clip_comes_before_scale(tmp_path):
    contract = import_policy(
        deploy(tmp_path / 'go2', data=changed(base_ang_vel=term([0.2] * 3, [-5.0, 5.0]))), tmp_path / 'out'
    )
    use = contract.file.inputs['obs'].terms[0]
    assert (use.scale, use.clip, use.process) == (0.2, [-5.0, 5.0], ['clip', 'scale'])


def test_scale_first_turns_the_order(tmp_path):
    data = changed(base_ang_vel=term([0.2] * 3, [-5.0, 5.0]), scale_first=True)
    contract = import_policy(deploy(tmp_path / 'go2', data=data), tmp_path / 'out')
    assert contract.file.inputs['obs'].terms[0].process == ['scale', 'clip']


def test_infinite_clips_are_none(tmp_path):
    data = changed(base_ang_vel=term([0.2] * 3, [float('-inf'), float('inf')]))
    contract = import_policy(deploy(tmp_path / 'go2', data=data), tmp_path / 'out')
    assert contract.file.inputs['obs'].terms[0].clip is None


def history(lengths, **flags):
    data = copy.deepcopy(DEPLOY)
    pairs = zip(data['observations'].items(), lengths, strict=True)
    data['observations'] = {name: part | {'history_length': length} for (name, part), length in pairs} | flags
    return data


def test_history_is_oldest_first_and_term_by_term(tmp_path):
    contract = import_policy(deploy(tmp_path / 'go2', 225, history([5] * 6)), tmp_path / 'out')
    stack = contract.file.inputs['obs'].stack
    assert (stack.lags, stack.layout, stack.fill) == ([4, 3, 2, 1, 0], 'term_major', 'first')


def test_gym_history_is_frame_by_frame(tmp_path):
    contract = import_policy(deploy(tmp_path / 'go2', 225, history([5] * 6, use_gym_history=True)), tmp_path / 'out')
    assert contract.file.inputs['obs'].stack.layout == 'frame_major'
    with pytest.raises(DocumentError, match='all terms need one history_length'):
        import_policy(deploy(tmp_path / 'b', 225, history([5, 5, 5, 5, 5, 1], use_gym_history=True)), tmp_path / 'b_out')


def test_terms_may_have_histories_of_their_own(tmp_path):
    contract = import_policy(deploy(tmp_path / 'go2', 3 * 5 + 42, history([5, 1, 1, 1, 1, 1])), tmp_path / 'out')
    terms = contract.file.inputs['obs'].terms
    assert [use.lags for use in terms] == [None, [0], [0], [0], [0], [0]]


def test_groups_are_inputs_by_name(tmp_path):
    data = copy.deepcopy(DEPLOY)
    terms = data['observations']
    data['observations'] = {
        'proprio': {'use_gym_history': True, **{name: terms[name] for name in list(terms)[3:]}},
        'base_ang_vel': {
            'scale_first': True,
            'base_ang_vel': {'params': {}, 'scale': [0.2] * 3, 'clip': [-1.0, 1.0], 'history_length': 2},
        },
    }
    source = deploy(tmp_path / 'go2', data=data)
    make_onnx(source / 'exported' / 'policy.onnx', {'proprio': 36, 'base_ang_vel': 6}, {'actions': 12})
    contract = import_policy(source, tmp_path / 'out')
    assert set(contract.file.inputs) == {'proprio', 'base_ang_vel'}
    part = contract.file.inputs['base_ang_vel']
    assert part.terms[0].process == ['scale', 'clip']
    assert part.stack.layout == 'frame_major'  # upstream has one flag for all groups
    make_onnx(source / 'exported' / 'policy.onnx', {'obs': 36, 'base_ang_vel': 6}, {'actions': 12})
    with pytest.raises(DocumentError, match='proprio: no input of the network has the name of this group'):
        import_policy(source, tmp_path / 'b')


def test_a_first_term_without_params_stays_a_term(tmp_path):
    data = changed(base_ang_vel={'scale': [0.2] * 3, 'history_length': 1})
    contract = import_policy(deploy(tmp_path / 'go2', data=data), tmp_path / 'out')
    assert len(contract.file.inputs['obs'].terms) == 6
    assert 'would take the terms for groups' in contract.file.provenance.notes


def test_terms_and_groups_are_not_mixed(tmp_path):
    data = changed(extra={'base_lin_vel': term()})
    with pytest.raises(DocumentError, match='terms and groups are mixed: extra'):
        import_policy(deploy(tmp_path / 'go2', data=data), tmp_path / 'out')


def test_unknown_observations_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(DocumentError, match='observations.height_scan: this observation is not known; known are base_ang_vel'):
        import_policy(deploy(tmp_path / 'go2', data=changed(height_scan=term())), tmp_path / 'out')


def test_a_gait_clock_has_its_period(tmp_path):
    contract = import_policy(deploy(tmp_path / 'go2', 47, changed(gait_phase=term(period=0.6))), tmp_path / 'out')
    assert contract.file.phase.period_s == 0.6
    assert 'phase.stop_at_zero_command' in fields(contract)
    with pytest.raises(DocumentError, match='gait_phase.params.period: a gait_phase needs its period'):
        import_policy(deploy(tmp_path / 'b', 47, changed(gait_phase=term())), tmp_path / 'b_out')


def test_the_clip_of_an_action_bounds_the_target(tmp_path):
    action = DEPLOY['actions']['JointPositionAction'] | {'clip': [[-0.5, 0.5 + i] for i in range(12)]}
    contract = import_policy(deploy(tmp_path / 'go2', actions={'JointPositionAction': action}), tmp_path / 'out')
    output = contract.file.outputs['actions']
    assert output.clip is None
    assert output.target_clip[SDK[SWAP[2]]] == [-0.5, 2.5]


def test_an_offset_that_is_not_the_pose_is_kept(tmp_path):
    action = DEPLOY['actions']['JointPositionAction'] | {'offset': [0.2, *POSE[1:]]}
    contract = import_policy(deploy(tmp_path / 'go2', actions={'JointPositionAction': action}), tmp_path / 'out')
    assert contract.file.outputs['actions'].offset[SDK[SWAP[0]]] == 0.2


def test_a_range_without_zero_is_widened_and_said(tmp_path):
    ranges = {'lin_vel_x': [0.2, 1.0], 'lin_vel_y': [-0.4, 0.4], 'ang_vel_z': [-1.0, 1.0], 'heading': [-3.14, 3.14]}
    contract = import_policy(deploy(tmp_path / 'go2', commands={'base_velocity': {'ranges': ranges}}), tmp_path / 'out')
    assert contract.file.commands.velocity.x == [0.0, 1.0]
    assert 'commands.velocity.x' in fields(contract)
    assert 'commanded a heading' in contract.file.provenance.notes


def test_missing_keys_are_listed_together(tmp_path):
    data = {key: value for key, value in DEPLOY.items() if key not in ('stiffness', 'default_joint_pos')}
    with pytest.raises(DocumentError) as error:
        import_policy(deploy(tmp_path / 'go2', data=data), tmp_path / 'out')
    assert {'stiffness: is missing', 'default_joint_pos: is missing'} <= set(error.value.faults)


def test_the_written_file_names_every_joint_once(tmp_path):
    import_policy(deploy(tmp_path / 'go2'), tmp_path / 'out')
    data = yaml.safe_load((tmp_path / 'out' / 'policy.yaml').read_text())
    assert data['damping'] == {'.*': 0.5}
    assert set(data['stiffness']) == set(SDK)
