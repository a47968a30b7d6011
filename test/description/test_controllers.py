# SPDX-License-Identifier: Apache-2.0
"""Promises of the controllers' parameter file."""

import pytest
import yaml
from makers import REPOSITORY

from sim2real_ros.description import controllers
from sim2real_ros.description.gazebo import bridge
from sim2real_ros.description.gazebo_names import FORTRESS, HARMONIC
from sim2real_ros.robot import load_robot

ARM = REPOSITORY / 'test' / 'models' / 'arm7.yaml'


def document(robot, namespace=''):
    return {node: values['ros__parameters'] for node, values in yaml.safe_load(controllers(robot, namespace)).items()}


@pytest.mark.parametrize('name', ['go2', ARM])
def test_the_effort_controller_takes_torques_in_the_order_of_the_robot_file(name):
    robot = load_robot(name)
    made = document(robot)
    assert made['effort_controller']['interface_name'] == 'effort'
    assert made['effort_controller']['joints'] == list(robot.joints)
    assert made['controller_manager']['effort_controller']['type'] == 'forward_command_controller/ForwardCommandController'
    assert made['controller_manager']['update_rate'] == robot.sensors.rate_hz
    assert isinstance(made['controller_manager']['update_rate'], int)


def test_the_imu_is_published_in_its_frame_and_a_fixed_base_has_none():
    imu = document(load_robot('go2'))['imu_sensor_broadcaster']
    assert (imu['sensor_name'], imu['frame_id']) == ('imu_sensor', 'imu_link')
    assert not any('imu' in name for name in document(load_robot(ARM))['controller_manager'])


def test_a_namespace_is_part_of_every_nodes_name():
    assert set(document(load_robot('go2'), 'dog')) == {
        '/dog/controller_manager',
        '/dog/joint_state_broadcaster',
        '/dog/imu_sensor_broadcaster',
        '/dog/effort_controller',
    }


def test_the_bridge_carries_clock_odometry_and_contacts_but_neither_joints_nor_imu():
    rows = bridge(HARMONIC, load_robot('go2'))
    assert [row['ros_topic_name'] for row in rows][:2] == ['/clock', 'odom']
    assert len(rows) == 6
    assert all(row['direction'] == 'GZ_TO_ROS' for row in rows)
    assert [row['gz_type_name'] for row in bridge(FORTRESS, load_robot(ARM))] == ['ignition.msgs.Clock']


def test_every_controller_states_its_type_for_a_manager_that_does_not_read_the_file():
    made = document(load_robot('go2'))
    manager = made.pop('controller_manager')
    assert all(values['type'] == manager[name]['type'] for name, values in made.items())
    assert len(made) == 3
