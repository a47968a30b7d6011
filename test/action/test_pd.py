# SPDX-License-Identifier: Apache-2.0
"""Torque = kp (q* - q) + kd (qd* - qd) + feed-forward."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.signals import Gains, JointTargets

GAINS = Gains(np.array([20.0, 40.0]), np.array([0.5, 2.0]))
ROWS = st.lists(st.lists(st.floats(-100, 100), min_size=10, max_size=10), min_size=1, max_size=5).map(np.array)


def split(values):
    """Cut (..., 10) into targets and measured joints of two joints."""
    position, velocity, effort, joint_pos, joint_vel = (values[..., 2 * k : 2 * k + 2] for k in range(5))
    return JointTargets(0.0, position, velocity, effort), joint_pos, joint_vel


def test_torque_by_hand():
    targets = JointTargets(0.0, np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.0, -3.0]))
    torque = pd_torque(targets, GAINS, np.array([0.5, 0.25]), np.array([2.0, 0.5]))
    assert torque.tolist() == [20 * 0.5 - 0.5 * 2, 40 * -0.25 + 2 * 0.5 - 3]


@given(ROWS)
def test_torque_is_the_formula(rows):
    targets, q, qd = split(rows)
    expected = GAINS.stiffness * (targets.position - q) + GAINS.damping * (targets.velocity - qd) + targets.effort
    np.testing.assert_array_equal(pd_torque(targets, GAINS, q, qd), expected)


@given(ROWS)
def test_batch_equals_scalar_bit_for_bit(rows):
    targets, q, qd = split(rows)
    batch = pd_torque(targets, GAINS, q, qd)
    for k, values in enumerate(rows):
        one = pd_torque(split(values)[0], GAINS, *split(values)[1:])
        single = pd_torque(split(values[None])[0], GAINS, *split(values[None])[1:])
        assert np.array_equal(batch[k], one)
        assert np.array_equal(single[0], one)


def test_inputs_are_left_alone():
    rows = np.arange(10.0)
    targets, q, qd = split(rows)
    pd_torque(targets, GAINS, q, qd)
    assert np.array_equal(rows, np.arange(10.0))
