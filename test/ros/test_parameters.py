# SPDX-License-Identifier: Apache-2.0
"""Promises of parameters: a value of a wrong type or size is refused in one line that says what was expected."""

import pytest

from sim2real_ros.errors import ParameterError
from sim2real_ros.robot import load_robot
from sim2real_ros.ros.parameters import command_joints, declare, sensor_noise


@pytest.mark.parametrize(
    ('override', 'default', 'message'),
    [
        ('x:=5', 'go2', 'parameter x: 5 given, text is expected'),
        ('x:=fast', 1.0, "parameter x: 'fast' given, a number with a decimal point, like 1.0 is expected"),
        ('x:=1', 2.0, 'parameter x: 1 given, a number with a decimal point, like 1.0 is expected'),
        ('x:=1', True, 'parameter x: 1 given, true or false is expected'),
        ('x:=5', [''], 'parameter x: 5 given, a list of texts is expected'),
        ('x:=[1, 2]', [0.5, 0.0], 'parameter x: [1, 2] given, a list like [0.5, 0.0] is expected'),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_expected_one(make, override, default, message):
    with pytest.raises(ParameterError) as caught:
        declare(make(override), 'x', default, 'A parameter.')
    assert str(caught.value) == message


def test_a_value_outside_its_range_is_refused_with_the_range(make):
    with pytest.raises(ParameterError, match=r'^parameter x: 0\.5 given, 0\.0005 to 0\.01 possible$'):
        declare(make('x:=0.5'), 'x', 0.002, 'A step.', low=0.0005, high=0.01)
    assert declare(make('x:=0.005'), 'x', 0.002, 'A step.', low=0.0005, high=0.01) == 0.005


@pytest.mark.parametrize('override', ['other:=1', 'command_joints:=[]', "command_joints:=['']"])
def test_without_a_command_order_it_is_the_robots(make, override):
    robot = load_robot('go2')
    assert command_joints(make(override), robot) == robot.joints


@pytest.mark.parametrize(
    ('override', 'samples', 'joints'),
    [('other:=1', 25, True), ('sensor_noise:=imu', 25, False), ('sensor_noise:=none', None, True)],
)
def test_sensors_without_noise_may_repeat_themselves(make, override, samples, joints):
    monitors = sensor_noise(make(override), load_robot('go2')).monitors
    assert (monitors.frozen_samples, monitors.frozen_joints) == (samples, joints)


def test_another_noise_is_refused_with_those_that_there_are(make):
    with pytest.raises(ParameterError, match='"joints" given, all, imu, none possible'):
        sensor_noise(make('sensor_noise:=joints'), load_robot('go2'))
