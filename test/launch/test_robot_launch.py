# SPDX-License-Identifier: Apache-2.0
"""`robot.launch.py` on ros2_control with mock hardware, started for real by launch_testing."""

import unittest

import pytest
from launched import Walks, description, need

need(
    'controller_manager',
    'joint_state_broadcaster',
    'imu_sensor_broadcaster',
    'forward_command_controller',
    'robot_state_publisher',
)

import launch_testing  # noqa: E402
from launch_testing.asserts import assertExitCodes  # noqa: E402

OURS = ('watchdog_node', 'safety_node', 'policy_node')


@pytest.mark.launch_test
def generate_test_description():
    return description('robot.launch.py', hardware='mock')


class TestWhileItRuns(Walks, unittest.TestCase):
    walks = False  # mock joints never move


@launch_testing.post_shutdown_test()
class TestAfterwards(unittest.TestCase):
    def test_our_nodes_end_with_code_0(self, proc_info):
        for name in OURS:
            assertExitCodes(proc_info, process=name)
