# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real show`: every part of a contract is printed as it was understood."""

from __future__ import annotations

import pytest
from makers import make_onnx, write_yaml
from whole import WIDTH, data_of_everything, write_motion

from sim2real_ros.tools.cli import main


@pytest.fixture(scope='module')
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp('show')
    write_motion(folder)
    make_onnx(folder / 'policy.onnx', {'obs': WIDTH}, {'mu': 4})
    data = data_of_everything()
    data['phase'] |= {'stop_at_zero_command': True, 'standing_below': 0.1, 'standing_phase': 0.5}
    return write_yaml(folder / 'policy.yaml', data)


@pytest.mark.parametrize(
    'part',
    [
        'joint_states, contacts, goal_pose, imu, odom',
        'rests at 0.5 periods while the command is below 0.1',
        'in the frame world, quaternion wxyz, before the first goal 0.1 0.2 0.3 1 0 0 0',
        'motion.npz at 50 Hz, then return: joint_pos from joint_pos',
        'anchor torso: a_hip_joint about z, headings from their start',
        'input obs: 65 numbers, block 1 of 2',
        'input obs: 65 numbers, block 2 of 2, stacked frame_major with lags [1, 3], filled with zeros',
        'base_ang_vel lags [2, 0]',
        'joint_pos_rel of 2 joints',
        '2 + 0.5 -0.5 offset then scale',
        'output wheels (tensor mu), columns [3, 1]: joint_velocity, target = zeros + scale * action',
        'output hips (tensor mu), columns [0, 2]: joint_position, target = last target + scale * action',
        'first-order filter of share 0.4, targets of a_hip_joint clipped',
    ],
)
def test_every_part_is_printed(policy, capsys, monkeypatch, part):
    monkeypatch.setenv('COLUMNS', '160')
    assert main(['show', str(policy)]) == 0
    words = ' '.join(capsys.readouterr().out.replace('│', ' ').split())
    assert part in words
