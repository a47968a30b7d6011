# SPDX-License-Identifier: Apache-2.0
"""`sim.launch.py` on the embedded simulator, started for real by launch_testing."""

import unittest

import pytest
from launched import Walks, description, need

need()

import launch_testing  # noqa: E402
from launch_testing.asserts import assertExitCodes  # noqa: E402

OURS = ('watchdog_node', 'safety_node', 'policy_node')


@pytest.mark.launch_test
def generate_test_description():
    return description('sim.launch.py', lockstep='true')


class TestWhileItRuns(Walks, unittest.TestCase):
    def setUp(self):
        """Here nobody damps but the operator."""
        from sim2real_ros.ros.operator import Operator

        with Operator() as operator:
            operator.wait(lambda: operator.time > 0, 120, 'the simulator sent no clock')
            operator.insist('damp', 60)


@launch_testing.post_shutdown_test()
class TestAfterwards(unittest.TestCase):
    def test_our_nodes_end_with_code_0(self, proc_info):
        for name in OURS:
            assertExitCodes(proc_info, process=name)
