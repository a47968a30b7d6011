# SPDX-License-Identifier: Apache-2.0
"""Public policies with YAML, imported by one command: against their specification, and against their recorded traces."""

from __future__ import annotations

import numpy as np
import pytest
from foreign_yaml import against_trace, fields, public

from sim2real_ros.contract.schema import Observation

NAMES = [
    'unitree_rl_lab_g1',
    'unitree_rl_mjlab_g1',
    'rl_sar_go2_himloco',
    'rl_sar_go2_robot_lab',
    'unitree_rl_gym_g1',
    'bhl_policy_biped_50hz',
]
RATES = dict.fromkeys(NAMES, 50.0)


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_joints_pose_and_gains_are_those_of_the_specification(third_party, tmp_path, name):
    contract, spec = public(third_party, tmp_path, name)
    if isinstance(spec['joints'], list):
        assert list(contract.joints) == spec['joints']
    np.testing.assert_array_equal(contract.default_position, spec['default_pose'])
    np.testing.assert_array_equal(contract.gains.stiffness, spec['kp'])
    np.testing.assert_array_equal(contract.gains.damping, spec['kd'])
    assert contract.file.rate_hz == RATES[name]


def test_terms_stand_in_the_order_of_the_specification_with_its_scales(third_party, tmp_path, name):
    contract, spec = public(third_party, tmp_path, name)
    (observation,) = [part for part in contract.file.inputs.values() if isinstance(part, Observation)]
    scales = [use.scale for use in observation.terms]
    wanted = [entry[2] for entry in spec['obs']]
    if name == 'unitree_rl_gym_g1':
        assert scales == [*wanted[:-1], 1.0]
    else:
        assert scales == [value if not isinstance(value, list) or len(set(value)) > 1 else value[0] for value in wanted]


def test_observations_and_targets_are_those_of_the_trace(third_party, tmp_path, name):
    contract, _ = public(third_party, tmp_path, name)
    observations, targets = against_trace(contract, third_party / name)
    assert observations < 1e-6
    assert targets < 1e-4


def test_every_format_leaves_the_holding_time_of_a_command_open(third_party, tmp_path, name):
    contract, _ = public(third_party, tmp_path, name)
    assert 'commands.velocity.timeout_s' in fields(contract)


def test_the_command_is_limited_as_the_robot_s_file_says(third_party, tmp_path):
    contract, _ = public(third_party, tmp_path, 'unitree_rl_gym_g1')
    velocity = contract.file.commands.velocity
    assert (velocity.x, velocity.y, velocity.yaw) == ([-0.8, 0.8], [-0.5, 0.5], [-1.57, 1.57])
    assert {'phase.period_s', 'phase.first_tick', 'joints'} <= fields(contract)


def test_weights_in_a_file_of_their_own_are_copied(third_party, tmp_path):
    contract, _ = public(third_party, tmp_path, 'unitree_rl_mjlab_g1')
    assert (contract.model_path.parent / 'policy.onnx.data').is_file()
    assert 'stiffness' in fields(contract)  # 40.2 for 40.179


def test_a_torchscript_file_with_the_onnx_beside_it_needs_no_torch(third_party, tmp_path):
    contract, _ = public(third_party, tmp_path, 'rl_sar_go2_himloco')
    assert 'himloco.onnx beside it is taken for himloco.pt' in contract.file.provenance.notes
