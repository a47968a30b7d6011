# SPDX-License-Identifier: Apache-2.0
"""A read-only stack beside a robot that others command: it says what it would do, and nothing of it can reach a motor."""

import pytest

pytest.importorskip('mujoco')

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from fake_stack import fake_stack  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.ros import qos  # noqa: E402

MILD = load_robot('go2', 'first_steps')
SERVICES = ('damp', 'pose', 'activate', 'wiggle', 'estop', 'reset')


def test_a_read_only_stack_computes_commands_nothing_and_says_its_profile(tmp_path):
    with fake_stack(tmp_path, options={'read_only': True, 'profile': 'first_steps'}) as stack:
        operator, previews, values = stack.operator, [], {}

        def on_diagnostics(message):
            values.update({status.name: {v.key: v.value for v in status.values} for status in message.status})

        operator._node.create_subscription(JointState, 'safety/preview', previews.append, qos.COMMAND)
        operator._node.create_subscription(DiagnosticArray, 'diagnostics', on_diagnostics, 10)
        stack.manage('activate')  # someone else's business
        operator.wait(lambda: previews and len(values) == 2, 30, 'no preview, or no diagnostics')
        assert 'watchdog_node' not in stack.children
        for service in SERVICES:
            assert 'read-only' in operator.request(service)
        assert operator.mode == 'off'
        assert operator._node.get_publishers_info_by_topic('effort_controller/commands') == []
        preview = previews[-1]
        assert list(preview.name) == list(MILD.joints)
        assert all(abs(effort) <= most for effort, most in zip(preview.effort, MILD.limits.effort, strict=True))
        assert any(preview.effort)
        assert values['safety_node: safety filter']['read only'] == 'True'
        assert {told['profile'] for told in values.values()} == {'first_steps'}
    assert stack.events[0][1] == 'activated after 0 commands'
    assert not stack.trace['torque'].any()


def test_an_unknown_profile_ends_the_node_with_those_that_exist(tmp_path):
    with (
        pytest.raises(Exception, match='safety_node ended with code 1'),
        fake_stack(tmp_path, ('safety_node',), {'profile': 'bold'}) as stack,
    ):
        stack.operator.wait(lambda: False, 20, 'nothing happened')
