# SPDX-License-Identifier: Apache-2.0
"""IO_descriptors.yaml of Isaac Lab."""

from __future__ import annotations

import pytest
from foreign import assumed, hints, terms_of
from foreign_isaac import JOINTS, ROBOT, descriptor, descriptor_run, seen

from sim2real_ros.contract.importers import import_policy, io_descriptors
from sim2real_ros.errors import DocumentError


def test_lists_are_in_policy_order(tmp_path):
    folder = descriptor_run(tmp_path, descriptor())
    assert io_descriptors.detect(folder) == 1.0
    contract = import_policy(folder, tmp_path / 'out')
    terms = contract.file.inputs['obs'].terms
    assert [use.term for use in terms] == [
        'base_ang_vel', 'projected_gravity', 'velocity_command', 'joint_pos_rel', 'joint_vel', 'last_action'
    ]  # fmt: skip
    assert terms[0].process == ['clip', 'scale']
    assert terms[4].joints == ['a_knee', 'a_hip']
    assert contract.file.rate_hz == 50
    assert contract.file.outputs['actions'].offset == 'default'
    assert contract.gains.stiffness.tolist() == [25.0, 30.0]


def test_gains_of_explicit_actuators_are_refused_unless_given(tmp_path):
    data = descriptor()
    data['articulations']['robot']['default_joint_stiffness'] = [0.0, 0.0, 0.0]
    folder = descriptor_run(tmp_path, data)
    with pytest.raises(DocumentError, match='stiffness: is 0 for a_hip, a_knee: an explicit actuator'):
        io_descriptors.read(folder, hints(tmp_path))
    contract = import_policy(folder, tmp_path / 'out', overrides={'stiffness': {'.*': 80.0}, 'damping': {'.*': 2.0}})
    assert contract.gains.stiffness.tolist() == [80.0, 80.0]


def test_clip_of_an_action_bounds_the_target(tmp_path):
    data = descriptor()
    data['actions'][0]['clip'] = [[-1.0, 1.0], [-2.0, 0.0]]
    output = io_descriptors.read(descriptor_run(tmp_path, data), hints(tmp_path)).contract['outputs']['actions']
    assert output['clip'] is None
    assert output['target_clip'] == {'a_hip': [-1.0, 1.0], 'a_knee': [-2.0, 0.0]}


def test_an_offset_that_is_not_the_default_position_is_kept(tmp_path):
    data = descriptor()
    data['actions'][0]['offset'] = [0.4, -0.7]
    output = io_descriptors.read(descriptor_run(tmp_path, data), hints(tmp_path)).contract['outputs']['actions']
    assert output['offset'] == {'a_hip': 0.4, 'a_knee': -0.7}


def test_two_actions_share_the_columns_of_one_tensor(tmp_path):
    data = descriptor()
    wheel = {'name': 'wheels', 'full_path': 'isaaclab.envs.mdp.actions.joint_actions.JointVelocityAction',
             'joint_names': ['wheel'], 'scale': 5.0, 'offset': 0.0, 'clip': None}  # fmt: skip
    data['actions'] = [wheel, data['actions'][0]]
    data['observations']['policy'][-1]['shape'] = [3]
    imported = io_descriptors.read(descriptor_run(tmp_path, data, n=3), hints(tmp_path))
    assert imported.contract['joints'] == ['wheel', 'a_hip', 'a_knee']
    outputs = imported.contract['outputs']
    assert (outputs['wheels']['columns'], outputs['joint_position_action']['columns']) == ([0], [1, 2])
    assert outputs['wheels']['type'] == 'joint_velocity'
    terms = imported.contract['inputs']['obs']['terms']
    assert terms[3]['joints'] == JOINTS  # the wheel is driven, but its position is not seen


def test_histories(tmp_path):
    data = descriptor()
    for term in data['observations']['policy']:
        term['overloads']['history_length'] = 3
    imported = io_descriptors.read(descriptor_run(tmp_path, data, 45), hints(tmp_path))
    assert imported.contract['inputs']['obs']['stack']['lags'] == [2, 1, 0]
    data['observations']['policy'][1]['overloads']['flatten_history_dim'] = False
    with pytest.raises(DocumentError, match='not flattened'):
        io_descriptors.read(descriptor_run(tmp_path, data, 45), hints(tmp_path))


@pytest.mark.parametrize(('axes', 'order'), [(['X', 'Y', 'Z', 'QW', 'QX', 'QY', 'QZ'], None), (list('XYZWXYZ'), 'wxyz'),
                                             (list('XYZXYZW'), 'xyzw')])  # fmt: skip
def test_order_of_a_goal_quaternion_is_told_or_asked_for(tmp_path, axes, order):
    data = descriptor()
    data['observations']['policy'][2] = seen('generated_commands', 7)
    data['observations']['policy'][2]['extras']['axes'] = axes
    folder = descriptor_run(tmp_path, data, 19)
    if order is not None:
        assert io_descriptors.read(folder, hints(tmp_path)).contract['commands']['pose']['quaternion'] == order
        return
    with pytest.raises(DocumentError, match='nothing tells its order: give --set commands.pose.quaternion=wxyz'):
        io_descriptors.read(folder, hints(tmp_path))
    contract = import_policy(folder, tmp_path / 'out', overrides={'commands.pose.quaternion': 'xyzw'})
    assert contract.file.commands.pose.initial[3:] == [0.0, 0.0, 0.0, 1.0]


def test_order_of_the_root_quaternion_is_asked_for(tmp_path):
    data = descriptor()
    data['observations']['policy'].insert(0, seen('root_quat_w', 4))
    folder = descriptor_run(tmp_path, data, 19)
    with pytest.raises(DocumentError, match='--set inputs.obs.terms.0.term=base_quat_wxyz'):
        io_descriptors.read(folder, hints(tmp_path))
    imported = io_descriptors.read(folder, hints(tmp_path, overrides={'inputs.obs.terms.0.term': 'base_quat_wxyz'}))
    assert terms_of(imported.contract, 'obs')[0] == 'base_quat_wxyz'


def test_faults_come_together(tmp_path):
    data = descriptor(scene={})
    data['observations']['policy'][1] = seen('height_scan', 187)
    data['observations']['policy'][3]['joint_names'] = ROBOT
    data['actions'][0]['full_path'] = 'my.package.MuscleAction'
    with pytest.raises(DocumentError) as caught:
        io_descriptors.read(descriptor_run(tmp_path, data), hints(tmp_path))
    for part in ('MuscleAction', 'height_scan', 'scene.dt: is missing'):
        assert part in str(caught.value)


def test_what_is_not_said_is_assumed(tmp_path):
    told = assumed(io_descriptors.read(descriptor_run(tmp_path, descriptor()), hints(tmp_path)))
    assert {'commands.velocity.x', 'inputs.obs.terms.5.value'} <= set(told)
