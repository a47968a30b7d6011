# SPDX-License-Identifier: Apache-2.0
"""Rotations agree with transforms3d, for one quaternion and for a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transforms3d import euler, quaternions

from sim2real_ros.rotations import gravity_in_base, multiply_xyzw, tilt, world_to_base, xyzw_from_wxyz

COMPONENT = st.floats(-1, 1)
QUATERNION_WXYZ = (
    st.tuples(COMPONENT, COMPONENT, COMPONENT, COMPONENT)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(lambda q: q / np.linalg.norm(q))
)
VECTOR = st.tuples(*[st.floats(-10, 10)] * 3).map(np.array)
EXACT = {'rtol': 0, 'atol': 1e-12}


@given(QUATERNION_WXYZ)
def test_gravity_in_base_is_the_rotated_down_vector(wxyz):
    expected = quaternions.quat2mat(wxyz).T @ [0, 0, -1]
    np.testing.assert_allclose(gravity_in_base(xyzw_from_wxyz(wxyz)), expected, **EXACT)


@given(QUATERNION_WXYZ, VECTOR)
def test_world_to_base_is_the_inverse_rotation(wxyz, vector):
    expected = quaternions.quat2mat(wxyz).T @ vector
    np.testing.assert_allclose(world_to_base(xyzw_from_wxyz(wxyz), vector), expected, **EXACT)


@given(QUATERNION_WXYZ, QUATERNION_WXYZ)
def test_product_is_hamiltons(left, right):
    expected = xyzw_from_wxyz(quaternions.qmult(left, right))
    np.testing.assert_allclose(multiply_xyzw(xyzw_from_wxyz(left), xyzw_from_wxyz(right)), expected, **EXACT)


@given(QUATERNION_WXYZ)
def test_tilt_is_the_angle_between_base_down_and_gravity(wxyz):
    down = quaternions.quat2mat(wxyz) @ [0, 0, -1]
    expected = np.arctan2(np.hypot(down[0], down[1]), -down[2])
    np.testing.assert_allclose(tilt(xyzw_from_wxyz(wxyz)), expected, rtol=0, atol=1e-7)  # arccos is flat at 0 and pi


@given(st.lists(QUATERNION_WXYZ, min_size=1, max_size=6), VECTOR)
def test_batch_equals_one_by_one_bit_for_bit(quats, vector):
    batch = xyzw_from_wxyz(np.array(quats))
    vectors = np.broadcast_to(vector, (len(quats), 3))
    for k, quat in enumerate(batch):
        assert np.array_equal(gravity_in_base(batch)[k], gravity_in_base(quat))
        assert np.array_equal(world_to_base(batch, vectors)[k], world_to_base(quat, vector))
        assert np.array_equal(multiply_xyzw(batch, batch[::-1])[k], multiply_xyzw(quat, batch[::-1][k]))
        assert np.array_equal(tilt(batch)[k], tilt(quat))


def test_level_base_sees_gravity_straight_down():
    assert gravity_in_base(np.array([0.0, 0.0, 0.0, 1.0])).tolist() == [0.0, 0.0, -1.0]


def test_base_pitched_nose_down_sees_gravity_ahead():
    w, x, y, z = euler.euler2quat(0, 0.3, 0)  # positive pitch about y (left): nose down
    np.testing.assert_allclose(gravity_in_base(np.array([x, y, z, w])), [np.sin(0.3), 0, -np.cos(0.3)], **EXACT)


@given(st.floats(-np.pi, np.pi))
def test_yaw_changes_neither_gravity_nor_tilt(yaw):
    quat = np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)])
    np.testing.assert_allclose(gravity_in_base(quat), [0, 0, -1], **EXACT)
    assert tilt(quat) == 0


@pytest.mark.parametrize('angle', [0.0, 0.5, 1.5, 3.0])
def test_tilt_of_a_roll_is_its_angle(angle):
    assert tilt(np.array([np.sin(angle / 2), 0, 0, np.cos(angle / 2)])) == pytest.approx(angle, abs=1e-12)


def test_mujoco_order_becomes_ros_order():
    assert xyzw_from_wxyz(np.array([4.0, 1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0, 4.0]
