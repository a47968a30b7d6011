# SPDX-License-Identifier: Apache-2.0
"""A robot file and its URDF become arrays in joint order, or one message with every fault."""

import copy

import numpy as np
import pytest
import yaml
from makers import REPOSITORY, write_yaml

from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.robot import load_robot
from sim2real_ros.sim.world import World

FILE = REPOSITORY / 'config' / 'robots' / 'go2.yaml'


@pytest.fixture
def data():
    """The shipped robot file as parsed YAML, its URDF given by absolute path; free to mutate."""
    loaded = copy.deepcopy(yaml.safe_load(FILE.read_text()))
    loaded['urdf'] = str(REPOSITORY / 'urdf' / 'go2.urdf')
    return loaded


@pytest.fixture
def load(tmp_path):
    return lambda data: load_robot(write_yaml(tmp_path / 'robot.yaml', data))


def faults_of(load, data):
    with pytest.raises(DocumentError) as caught:
        load(data)
    return caught.value.faults


def test_shipped_robot_loads_by_name_with_arrays_in_urdf_order():
    robot = load_robot('go2')
    assert robot.name == 'go2'
    assert robot.floating
    assert robot.joints[:3] == ('FL_hip_joint', 'FL_thigh_joint', 'FL_calf_joint')
    arrays = (robot.limits.lower, robot.limits.effort, robot.damping, robot.safety.torque_rate, robot.simulation.armature)
    assert all(array.shape == (12,) for array in arrays)
    assert robot.limits.effort[:3].tolist() == [23.7, 23.7, 35.55]
    assert robot.limits.velocity[:3].tolist() == [30.1, 30.1, 20.07]
    assert robot.imu_mounting_xyzw == pytest.approx([0, 0, 0, 1])


def test_poses_come_in_joint_order():
    robot = load_robot('go2')
    assert robot.pose('stand').tolist() == [0.0, 0.8, -1.5] * 4
    assert robot.pose('lying').tolist() == [0.0, 1.36, -2.65] * 4


def test_unknown_pose_lists_those_there_are():
    with pytest.raises(NotFoundError, match='robot go2 has no pose "sit"; its poses are stand, lying'):
        load_robot('go2').pose('sit')


def test_every_pose_of_the_shipped_robot_is_inside_its_limits():
    robot = load_robot('go2')
    for pose in robot.poses.values():
        assert np.all((pose > robot.limits.lower) & (pose < robot.limits.upper))


def test_copy_of_the_shipped_file_loads(load, data):
    assert load(data).joints == load_robot('go2').joints


def test_schema_faults_come_together_with_paths(load, data):
    data['pose_move']['duration_s'] = 0.0
    data['safety']['tilt']['limit_rad'] = 4.0
    data['sensors']['imu_timeout'] = 1.0
    del data['damping']
    data['base'] = 'wheeled'
    paths = {fault.split(':')[0] for fault in faults_of(load, data)}
    assert paths == {'pose_move.duration_s', 'safety.tilt.limit_rad', 'sensors.imu_timeout', 'damping', 'base'}


def test_faults_against_the_urdf_come_together_with_paths(load, data):
    data['poses']['stand']['.*_hip_joint'] = 2.0
    data['poses']['lying']['.*_calf_joint'] = -3.0
    data['damping'] = {'.*_hip': 1.0}
    data['safety']['torque_rate']['FL_hip_joint'] = 1.0
    data['simulation']['start_pose'] = 'sit'
    data['sensors']['imu_frame'] = 'imu'
    text = '\n'.join(faults_of(load, data))
    for part in (
        'poses.stand.FL_hip_joint: 2 rad is outside the joint range [-1.0472, 1.0472]',
        'poses.stand.RR_hip_joint',
        'poses.lying.FL_calf_joint: -3 rad is outside the joint range [-2.7227, -0.83776]',
        'damping..*_hip: matches no joint',
        'damping: no value for FL_hip_joint',
        'safety.torque_rate: FL_hip_joint is matched by both',
        'simulation.start_pose: the pose "sit" is not defined; poses are stand, lying',
        'there is no link "imu" (sensors.imu_frame)',
    ):
        assert part in text


def test_message_names_the_robot_file(load, data):
    data['extra'] = 1
    with pytest.raises(DocumentError, match=r'robot\.yaml: 1 fault\n.*extra: is not a known key'):
        load(data)


def test_a_robot_without_figures_for_simulation_loads_and_only_the_simulator_refuses_it(load, data):
    del data['simulation']
    robot = load(data)
    assert robot.simulation is None
    with pytest.raises(DocumentError, match=r'robot\.yaml.*\n.*simulation: is missing; to simulate this robot'):
        World(robot)


def test_missing_stand_pose_is_refused(load, data):
    del data['poses']['stand']
    assert 'poses: the pose "stand" is not defined; poses are lying' in faults_of(load, data)


def test_limits_in_the_robot_file_replace_the_urdfs(load, data):
    data['limits'] = {'effort': {'.*': 10.0}}
    robot = load(data)
    assert robot.limits.effort.tolist() == [10.0] * 12
    assert robot.limits.velocity[2] == 20.07


def test_limits_that_leave_no_range_are_refused(load, data):
    data['limits'] = {'lower': {'.*': 0.5}, 'upper': {'.*': 0.5}}
    assert any(f == 'FL_hip_joint: lower limit 0.5 is not below upper limit 0.5' for f in faults_of(load, data))


def test_urdf_without_effort_limit_is_refused_until_the_robot_file_gives_one(load, data, tmp_path):
    text = (REPOSITORY / 'urdf' / 'go2.urdf').read_text().replace(' effort="35.55"', '')
    (tmp_path / 'go2.urdf').write_text(text)
    data['urdf'] = 'go2.urdf'
    faults = faults_of(load, data)
    assert len(faults) == 4
    assert 'FL_calf_joint: the URDF gives no positive effort limit; add it there or as limits.effort here' in faults
    data['limits'] = {'effort': {'.*_hip_joint': 23.7, '.*_thigh_joint': 23.7, '.*_calf_joint': 30.0}}
    assert load(data).limits.effort[2] == 30.0


def test_a_continuous_joint_is_refused_until_the_robot_file_gives_it_a_range(load, data, tmp_path):
    text = (REPOSITORY / 'urdf' / 'go2.urdf').read_text()
    path = tmp_path / 'wheel.urdf'
    path.write_text(text.replace('name="FL_hip_joint" type="revolute"', 'name="FL_hip_joint" type="continuous"'))
    data['urdf'] = str(path)
    (fault,) = faults_of(load, data)
    assert fault.startswith('FL_hip_joint: a continuous joint has no position limits')
    assert fault.endswith('give limits.lower and limits.upper here')
    limits = load_robot('go2').limits
    data['limits'] = {
        name: dict(zip(load_robot('go2').joints, getattr(limits, name).tolist(), strict=True)) for name in ('lower', 'upper')
    }
    assert load(data).limits.lower[0] == limits.lower[0]


def test_urdf_is_found_relative_to_the_robot_file(load, data, tmp_path):
    (tmp_path / 'model').mkdir()
    (tmp_path / 'model' / 'bot.urdf').write_text((REPOSITORY / 'urdf' / 'go2.urdf').read_text())
    data['urdf'] = 'model/bot.urdf'
    assert load(data).urdf == tmp_path / 'model' / 'bot.urdf'


def test_missing_urdf_is_named(load, data):
    data['urdf'] = 'gone.urdf'
    with pytest.raises(NotFoundError, match=r'cannot read the URDF .*gone\.urdf'):
        load(data)


def test_missing_robot_lists_the_shipped_ones():
    with pytest.raises(NotFoundError, match='go2'):
        load_robot('not_a_robot')


def test_unsafe_tag_in_a_robot_file_is_refused(tmp_path):
    path = tmp_path / 'robot.yaml'
    path.write_text('name: !!python/object/apply:os.getcwd []')
    with pytest.raises(DocumentError, match='not valid YAML'):
        load_robot(path)
