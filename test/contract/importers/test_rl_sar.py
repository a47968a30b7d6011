# SPDX-License-Identifier: Apache-2.0
"""rl_sar: two files, one overriding the other; clamps, wheels, histories."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_yaml import POSE, SDK, SWAP, fields, sar
from makers import write_yaml

from sim2real_ros.contract.importers import import_policy
from sim2real_ros.errors import DocumentError, FormatError


def test_the_policy_s_file_overrides_the_robot_s(tmp_path):
    contract = import_policy(sar(tmp_path / 'dog'), tmp_path / 'out')
    assert list(contract.joints) == [SDK[i] for i in SWAP]
    np.testing.assert_array_equal(contract.default_position, POSE)
    assert (contract.file.robot, contract.file.name, contract.file.rate_hz) == ('dog', 'dog_walk', 50.0)


@pytest.mark.parametrize('place', ['', 'walk', 'walk/config.yaml'])
def test_folder_of_the_robot_of_the_policy_or_the_file_will_do(tmp_path, place):
    import_policy(sar(tmp_path / 'dog') / place, tmp_path / 'out')


def test_without_the_robot_s_file_there_are_no_names(tmp_path):
    source = sar(tmp_path / 'dog')
    (source / 'base.yaml').unlink()
    with pytest.raises(DocumentError, match='joint_names: is missing: base.yaml of the robot has it'):
        import_policy(source, tmp_path / 'out')


def test_a_robot_s_file_of_another_robot_is_refused(tmp_path):
    source = sar(tmp_path / 'dog')
    write_yaml(source / 'base.yaml', {'cat': {'dt': 0.005}})
    with pytest.raises(DocumentError, match='holds no robot "dog"'):
        import_policy(source, tmp_path / 'out')


def test_scale_comes_before_the_clamp_and_the_last_action_is_clamped(tmp_path):
    contract = import_policy(sar(tmp_path / 'dog'), tmp_path / 'out')
    terms = contract.file.inputs['input'].terms
    assert (terms[0].process, terms[0].clip) == (['scale', 'clip'], [-100.0, 100.0])
    assert terms[5].value == 'clipped'
    assert contract.file.outputs['output'].clip == [-100.0, 100.0]


def test_without_clamps_the_last_action_is_raw(tmp_path):
    source = sar(tmp_path / 'dog', clip_actions_lower=None, clip_actions_upper=None, clip_obs=None)
    contract = import_policy(source, tmp_path / 'out')
    assert contract.file.inputs['input'].terms[5].value == 'raw'
    assert contract.file.outputs['output'].clip is None


@pytest.mark.parametrize(('priority', 'layout'), [('time', 'frame_major'), ('term', 'term_major')])
def test_history_stands_in_the_order_of_the_list_with_zeros_before_the_first(tmp_path, priority, layout):
    source = sar(tmp_path / 'dog', 135, observations_history=[0, 2, 1], observations_history_priority=priority)
    stack = import_policy(source, tmp_path / 'out').file.inputs['input'].stack
    assert (stack.lags, stack.layout, stack.fill) == ([0, 2, 1], layout, 'zeros')


def test_a_declared_width_is_compared_with_the_one_that_is_built(tmp_path):
    with pytest.raises(DocumentError, match='num_observations: says 48, but the observations make 45 numbers'):
        import_policy(sar(tmp_path / 'dog', num_observations=48), tmp_path / 'out')


def test_observations_that_rl_sar_skips_silently_are_refused(tmp_path):
    observations = ['ang_vel', 'gravity_vec', 'commands', 'dof_pos', 'dof_vel', 'actions', 'phase']
    with pytest.raises(DocumentError, match='"phase" is not known here, and rl_sar skips it silently; known are lin_vel'):
        import_policy(sar(tmp_path / 'dog', observations=observations), tmp_path / 'out')


def test_a_clock_whose_period_stands_in_the_code_is_an_assumption(tmp_path):
    observations = ['ang_vel', 'gravity_vec', 'commands', 'dof_pos', 'dof_vel', 'actions', 'g1_phase']
    contract = import_policy(sar(tmp_path / 'dog', 47, observations=observations, num_observations=47), tmp_path / 'out')
    assert (contract.file.phase.period_s, contract.file.phase.first_tick) == (0.8, 1)
    assert 'phase.period_s' in fields(contract)


def test_wheels_get_velocities_and_show_no_position(tmp_path):
    gains = {'rl_kp': [20.0, 20.0, 0.0] * 4}
    contract = import_policy(sar(tmp_path / 'dog', wheel_indices=[2, 5, 8, 11], **gains), tmp_path / 'out')
    outputs = contract.file.outputs
    assert [part.type for part in outputs.values()] == ['joint_position', 'joint_velocity'] * 4
    assert [part.columns for part in outputs.values()][:3] == [[0, 1], [2], [3, 4]]  # in the order of the tensor
    assert contract.file.inputs['input'].terms[3].scale == [1.0, 1.0, 0.0] * 4


def test_clamps_that_differ_from_joint_to_joint_are_kept(tmp_path):
    contract = import_policy(sar(tmp_path / 'dog', clip_actions_upper=[1.0] * 6 + [2.0] * 6), tmp_path / 'out')
    assert [part.clip for part in contract.file.outputs.values()] == [[-100.0, 1.0], [-100.0, 2.0]]


def test_several_policies_of_a_robot_are_listed(tmp_path):
    source = sar(tmp_path / 'dog')
    (source / 'run').mkdir()
    (source / 'run' / 'config.yaml').write_text((source / 'walk' / 'config.yaml').read_text())
    with pytest.raises(FormatError, match='holds several policies; give one of them'):
        import_policy(source, tmp_path / 'out')


def test_missing_keys_are_faults_not_zeros(tmp_path):
    with pytest.raises(DocumentError) as error:
        import_policy(sar(tmp_path / 'dog', dof_vel_scale=None, action_scale=None), tmp_path / 'out')
    assert {'dof_vel_scale: is missing', 'action_scale: is missing'} <= set(error.value.faults)
