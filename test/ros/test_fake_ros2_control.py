# SPDX-License-Identifier: Apache-2.0
"""The stack against a ros2_control that does what the real one was seen to do: the robot never falls because of us."""


import numpy as np
import pytest
from fake_stack import fake_stack

from sim2real_ros.robot import load_robot

pytest.importorskip('mujoco')
ROBOT = load_robot('go2')
WALK = np.array([0.5, 0.0, 0.0])
UPRIGHT = 0.6  # rad


def test_the_stack_walks_with_shuffled_joints_default_qos_and_no_effort_feedback(tmp_path):
    """At 500 Hz, from standing on rigid joints: damped down, stood up, and walked."""
    with fake_stack(tmp_path) as stack:
        stack.operator.command = WALK
        stack.arm()
        stack.stand_up()
        stack.spin(4.0)
        assert stack.operator.mode == 'active'
    active = stack.since(0)['mode'] == 'active'
    way = stack.trace['qpos'][active][-1, 0] - stack.trace['qpos'][active][0, 0]
    print(f'{way:.2f} m in {0.002 * active.sum():.1f} s')
    assert way > 0.3 * 0.002 * active.sum()
    assert stack.since(0)['lean'].max() < UPRIGHT


def test_a_missing_interface_is_refused_by_name(tmp_path):
    with fake_stack(tmp_path, missing='RL_calf_joint/velocity') as stack:
        stack.operator.wait(lambda: stack.operator.time > 1.0, 60, 'no clock')
        refusal = stack.operator.request('damp')
        assert 'not finite' in refusal
        assert 'RL_calf_joint velocity' in refusal
    assert not stack.trace['torque'].any()
