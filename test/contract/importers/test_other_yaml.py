# SPDX-License-Identifier: Apache-2.0
"""unitree_rl_gym, Berkeley Humanoid Lite and legged_rl_deploy: what stands in their code, and what in their files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from foreign_yaml import GYM, LEGGED, POSE, SDK, SWAP, fields, gym, legged
from makers import make_onnx, write_yaml

from sim2real_ros.contract.importers import import_policy
from sim2real_ros.errors import DocumentError, FormatError

# unitree_rl_gym ---------------------------------------------------------------------------------------------------


def test_gym_without_the_robot_s_file_assumes_the_range_of_the_command(tmp_path):
    contract = import_policy(gym(tmp_path / 'gym'), tmp_path / 'out')
    assert contract.file.commands.velocity.x == [-0.8, 0.8]
    assert {'commands.velocity.x', 'joints', 'phase.period_s', 'inputs.obs.terms'} <= fields(contract)
    assert contract.file.rate_hz == 50.0


def test_gym_the_range_of_the_command_is_not_its_scale(tmp_path):
    source = gym(tmp_path / 'gym', max_cmd=[0.5, 0.4, 1.0], control_dt=0.01)
    contract = import_policy(source, tmp_path / 'out')
    assert contract.file.commands.velocity.yaw == [-1.0, 1.0]
    assert contract.file.inputs['obs'].terms[2].scale == [2.0, 2.0, 0.25]
    assert contract.file.rate_hz == 100.0


def test_gym_motor_indices_name_the_joints(tmp_path):
    changes = {'kps': [1.0] * 10, 'kds': [1.0] * 10, 'default_angles': [0.1] * 10, 'num_actions': 10, 'num_obs': 41}
    source = gym(tmp_path / 'gym', 41, 'h1', leg_joint2motor_idx=[7, 3, 4, 5, 10, 8, 0, 1, 2, 11], imu_type='torso', **changes)
    contract = import_policy(source, tmp_path / 'out')
    assert contract.joints[:5] == (
        'left_hip_yaw_joint', 'left_hip_roll_joint', 'left_hip_pitch_joint', 'left_knee_joint', 'left_ankle_joint'
    )  # fmt: skip
    assert 'IMU of this robot sits on the torso' in contract.file.provenance.notes


def test_gym_robots_that_nobody_knows_need_names(tmp_path):
    source = gym(tmp_path / 'gym', name='mine')
    with pytest.raises(DocumentError, match='12 joints without names'):
        import_policy(source, tmp_path / 'out')
    names = tuple(f'j{i}' for i in range(12))
    assert import_policy(source, tmp_path / 'out', joints=names).joints == names


def test_gym_a_width_that_the_code_does_not_build_is_refused(tmp_path):
    with pytest.raises(DocumentError, match='num_obs: is 50; the code of unitree_rl_gym builds 47 with the gait clock'):
        import_policy(gym(tmp_path / 'gym', num_obs=50), tmp_path / 'out')
    contract = import_policy(gym(tmp_path / 'b', 48, num_obs=48, lin_vel_scale=2.0), tmp_path / 'out')
    assert contract.file.inputs['obs'].terms[0].term == 'base_lin_vel'
    assert contract.file.phase is None


def test_gym_two_files_that_disagree_are_refused(tmp_path):
    source = gym(tmp_path / 'gym')
    (source / 'real').mkdir()
    real = copy.deepcopy(GYM) | {'control_dt': 0.02, 'kps': [50.0] * 12, 'max_cmd': [0.8, 0.5, 1.57]}
    write_yaml(source / 'real' / 'g1.yaml', real)
    with pytest.raises(DocumentError, match='kps: .*give the file that you mean'):
        import_policy(source, tmp_path / 'out')
    import_policy(source / 'g1.yaml', tmp_path / 'out')
    write_yaml(source / 'real' / 'h1.yaml', real)
    with pytest.raises(FormatError, match='holds several robots'):
        import_policy(source, tmp_path / 'b')


def test_gym_recurrent_state_becomes_inputs(tmp_path):
    source = gym(tmp_path / 'gym')
    make_onnx(source / 'policy.onnx', {'obs': 47}, {'actions': 12}, state=8)
    assert import_policy(source, tmp_path / 'out').file.inputs['h_in'].state == 'h_out'


# Berkeley Humanoid Lite -------------------------------------------------------------------------------------------


def berkeley(folder, width=27, **changes):
    folder.mkdir()
    data = {
        'policy_checkpoint_path': 'checkpoints/policy.onnx', 'policy_dt': 0.04, 'control_dt': 0.004, 'num_joints': 4,
        'joints': ['a', 'b', 'c', 'd'], 'joint_kp': 20, 'joint_kd': [1.0, 2.0, 3.0, 4.0], 'effort_limits': [5.0] * 4,
        'default_joint_positions': [0.1, 0.2, 0.3, 0.4], 'num_observations': 15, 'history_length': 0, 'num_actions': 2,
        'action_indices': [3, 1], 'action_scale': 0.25, 'action_limit_lower': -10000, 'action_limit_upper': 10000,
    }  # fmt: skip
    write_yaml(folder / 'policy_arm.yaml', data | changes)
    make_onnx(folder / 'policy.onnx', {'obs': width}, {'actions': 2})
    return folder


def test_berkeley_drives_and_sees_a_part_of_the_joints(tmp_path):
    contract = import_policy(berkeley(tmp_path / 'b', 15), tmp_path / 'out')
    assert contract.joints == ('d', 'b')
    assert list(contract.gains.damping) == [4.0, 2.0]
    assert list(contract.default_position) == [0.4, 0.2]
    assert 'neither sees nor drives a, c' in contract.file.provenance.notes
    assert contract.file.rate_hz == 25.0
    assert contract.file.inputs['obs'].terms[0].term == 'velocity_command'


def test_berkeley_frames_are_stacked_oldest_first_after_zeros(tmp_path):
    contract = import_policy(berkeley(tmp_path / 'b', 45, history_length=2), tmp_path / 'out')
    stack = contract.file.inputs['obs'].stack
    assert (stack.lags, stack.layout, stack.fill) == ([2, 1, 0], 'frame_major', 'zeros')


def test_berkeley_widths_are_compared(tmp_path):
    with pytest.raises(DocumentError, match='num_observations: is 75; the code builds 15 for 2 joints'):
        import_policy(berkeley(tmp_path / 'b', num_observations=75), tmp_path / 'out')
    with pytest.raises(DocumentError, match='num_actions: is 3, but action_indices names 2 joints'):
        import_policy(berkeley(tmp_path / 'c', num_actions=3), tmp_path / 'out')


# legged_rl_deploy -------------------------------------------------------------------------------------------------


def terms(**changes):
    observations = copy.deepcopy(LEGGED['observations'])
    observations['terms'] |= changes
    return observations


def test_legged_offset_of_the_positions_is_the_default_pose(tmp_path):
    contract = import_policy(legged(tmp_path / 'p'), tmp_path / 'out')
    observation = contract.file.inputs['obs']
    assert [use.term for use in observation.terms][3] == 'joint_pos_rel'
    assert (observation.terms[4].process, observation.terms[4].clip) == (['scale', 'clip'], [-100.0, 100.0])
    np.testing.assert_array_equal(contract.default_position, POSE)
    assert list(contract.joints) == [SDK[i] for i in SWAP]
    assert contract.file.robot == 'go2'  # of llc_config_file
    assert contract.file.commands.velocity.x == [-0.5, 1.0]
    assert contract.file.outputs['actions'].offset == 'default'


def test_legged_two_poses_in_one_file_are_said(tmp_path):
    offset = {'process_order': ['offset'], 'offset': [-0.2, *[-value for value in POSE[1:]]]}
    contract = import_policy(legged(tmp_path / 'p', observations=terms(joint_pos=offset)), tmp_path / 'out')
    use = contract.file.inputs['obs'].terms[3]
    assert (use.term, use.offset[0]) == ('joint_pos', -0.2)
    assert 'two poses in one file' in contract.file.provenance.notes


def test_legged_steps_without_an_order_are_refused(tmp_path):
    with pytest.raises(DocumentError, match='base_ang_vel_B.process_order: is missing, so that scale'):
        import_policy(legged(tmp_path / 'p', observations=terms(base_ang_vel_B={'scale': 0.25})), tmp_path / 'out')


@pytest.mark.parametrize(('order', 'lags'), [('oldest_first', [2, 1, 0]), ('newest_first', [0, 1, 2])])
def test_legged_stack(tmp_path, order, lags):
    observations = LEGGED['observations'] | {'stack': {'length': 3, 'order': order}}
    stack = import_policy(legged(tmp_path / 'p', 135, observations=observations), tmp_path / 'out').file.inputs['obs'].stack
    assert (stack.lags, stack.layout, stack.fill) == (lags, 'frame_major', 'first')


def test_legged_blocks_stand_side_by_side(tmp_path):
    blocks = [
        {'kind': 'current_frame'},
        {'kind': 'history_frame', 'length': 2, 'order': 'oldest_first', 'include_current': False},
        {'kind': 'current_terms', 'terms': ['velocity_commands', 'projected_gravity']},
    ]
    observations = LEGGED['observations'] | {'layout': {'blocks': blocks}, 'history_warmup': 'zero'}
    contract = import_policy(legged(tmp_path / 'p', 141, observations=observations), tmp_path / 'out')
    parts = contract.file.inputs['obs'].blocks
    assert [part.stack.lags for part in parts] == [[0], [2, 1], [0]]
    assert {part.stack.fill for part in parts} == {'zeros'}
    assert [use.term for use in parts[2].terms] == ['velocity_command', 'projected_gravity']


def test_legged_assemble_lists_the_lags(tmp_path):
    assemble = [
        {'terms': ['base_ang_vel_B', 'last_action'], 'order': [0, 2, 1], 'history_warmup': 'zero'},
        {'terms': ['velocity_commands']},
    ]
    source = legged(tmp_path / 'p', 48, observations=LEGGED['observations'] | {'assemble': assemble})
    parts = import_policy(source, tmp_path / 'out').file.inputs['obs'].blocks
    assert [(part.stack.lags, part.stack.fill) for part in parts] == [([0, 2, 1], 'zeros'), ([0], 'first')]


@pytest.mark.parametrize(
    ('order', 'clip', 'target_clip'),
    [
        (['clip', 'scale', 'offset'], [-2.0, 4.0], None),
        (['scale', 'clip', 'offset'], [-8.0, 16.0], None),
        (['scale', 'offset', 'clip'], None, [-2.0, 4.0]),
    ],
)
def test_legged_place_of_the_clip_of_an_action(tmp_path, order, clip, target_clip):
    action = {'process_order': order, 'scale': 0.25, 'offset': POSE, 'min': -2.0, 'max': 4.0}
    contract = import_policy(legged(tmp_path / 'p', actions={'JointPositionAction': action}), tmp_path / 'out')
    output = contract.file.outputs['actions']
    assert output.clip == clip
    assert (output.target_clip or {}).get(SDK[0]) == target_clip


def test_legged_the_stick_goes_through_the_steps_of_the_command(tmp_path):
    steps = {'process_order': ['scale', 'clip'], 'scale': 0.95, 'min': [-1.0, -1.0, -0.5], 'max': [1.0, 1.0, 0.5]}
    contract = import_policy(legged(tmp_path / 'p', commands={'base_velocity': steps}), tmp_path / 'out')
    assert contract.file.commands.velocity.x == [-0.95, 0.95]
    assert contract.file.commands.velocity.yaw == [-0.5, 0.5]


def test_legged_unknown_terms_are_refused(tmp_path):
    with pytest.raises(DocumentError, match='terms.mimic: this observation is not known here; known are base_ang_vel_B'):
        import_policy(legged(tmp_path / 'p', observations=terms(mimic={'params': {'dim': 35}})), tmp_path / 'out')


def test_legged_roll_pitch_and_yaw(tmp_path):
    source = legged(
        tmp_path / 'p', 50, observations=terms(eulerZYX_rpy=None, roll_pitch={'process_order': ['scale'], 'scale': 2.0})
    )
    uses = import_policy(source, tmp_path / 'out').file.inputs['obs'].terms
    assert [(use.term, use.scale) for use in uses][-2:] == [('base_rpy', 1.0), ('base_roll_pitch', 2.0)]
