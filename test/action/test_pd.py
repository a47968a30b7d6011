# SPDX-License-Identifier: Apache-2.0
"""Torque = kp (q* - q) + kd (qd* - qd) + feed-forward; two of them blend into one that is both in every state."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sim2real_ros.action.pd import blend, pd_torque
from sim2real_ros.signals import Gains, Impedance, JointTargets

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


GAIN = arrays(float, 4, elements=st.just(0.0) | st.floats(1e-3, 500))
VALUE = arrays(float, 4, elements=st.floats(-50, 50))
IMPEDANCES = st.builds(
    lambda position, velocity, effort, kp, kd: Impedance(JointTargets(1.0, position, velocity, effort), Gains(kp, kd)),
    VALUE, VALUE, VALUE, GAIN, GAIN,
)  # fmt: skip


@given(old=IMPEDANCES, new=IMPEDANCES, share=st.floats(0, 1), q=VALUE, v=VALUE)
def test_the_torque_of_a_blend_is_the_blend_of_the_torques_in_every_state(old, new, share, q, v):
    """Also where a gain is zero on one side or both, and where all of either is left."""
    mixed = blend(old, new, share)
    torques = [pd_torque(each.targets, each.gains, q, v) for each in (old, new, mixed)]
    np.testing.assert_allclose(torques[2], (1 - share) * torques[0] + share * torques[1], rtol=1e-9, atol=1e-7)
    assert all(np.isfinite(part).all() for part in (mixed.targets.position, mixed.targets.velocity))
    assert (mixed.gains.stiffness >= 0).all()
    assert (mixed.gains.damping >= 0).all()


@given(old=IMPEDANCES, new=IMPEDANCES)
def test_a_blend_leaves_both_alone(old, new):
    before = [part.tobytes() for each in (old, new) for part in (each.targets.position, each.targets.velocity)]
    blend(old, new, 0.3)
    assert before == [part.tobytes() for each in (old, new) for part in (each.targets.position, each.targets.velocity)]
