# SPDX-License-Identifier: Apache-2.0
"""`gazebo.launch.py` on Gazebo, headless, started for real by launch_testing."""

import unittest

import pytest
from launched import Walks, description, need

need('gz_ros2_control', 'ros_gz_sim', 'ros_gz_bridge', 'robot_state_publisher', 'forward_command_controller')

import launch_testing  # noqa: E402
from launch_testing.asserts import assertExitCodes  # noqa: E402

OURS = ('watchdog_node', 'safety_node', 'policy_node')


@pytest.mark.launch_test
def generate_test_description():
    return description('gazebo.launch.py')


class TestWhileItRuns(Walks, unittest.TestCase):
    pass


@launch_testing.post_shutdown_test()
class TestAfterwards(unittest.TestCase):
    def test_our_nodes_end_with_code_0(self, proc_info):
        for name in OURS:
            assertExitCodes(proc_info, process=name)
