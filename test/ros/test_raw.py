# SPDX-License-Identifier: Apache-2.0
"""Promises of the raw readers and the raw writer: they agree with rclpy, bit for bit, on every message."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from sim2real_ros.errors import JointError
from sim2real_ros.ros.raw import ImuReader, JointReader, Sample, array_message

NUMBERS = st.floats(width=64)
TEXT = st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=9)
NAMES = st.lists(TEXT, min_size=1, max_size=6, unique=True)


def joint_state(names: list[str], frame: str, rng: np.random.Generator, effort: int = 0) -> JointState:
    """Return a message with random numbers."""
    message = JointState(name=names, effort=rng.normal(size=effort).tolist())
    message.header.frame_id = frame
    message.position, message.velocity = rng.normal(size=(2, len(names))).tolist()
    return message


@given(st.lists(st.tuples(NAMES, TEXT, st.integers(0, 7)), min_size=1, max_size=4), st.randoms())
def test_joint_reader_agrees_with_rclpy_however_the_messages_change(kinds, random):
    """Names, frame and effort may change from message to message and come back."""
    rng = np.random.default_rng(random.randrange(1 << 30))
    for names, frame, effort in [kind for kind in kinds for _ in range(2)] + kinds:
        wanted = tuple(sorted(names))
        reader = JointReader(wanted, 'the test')
        for _ in range(3):
            message = joint_state(names, frame, rng, effort)
            order = [names.index(name) for name in wanted]
            expected = np.array((message.position, message.velocity))[:, order]
            np.testing.assert_array_equal(reader.read(serialize_message(message)), expected)


def test_joint_reader_follows_a_driver_that_changes_its_order():
    """The same reader, the same length of message, another order: matched by name again."""
    reader, rng = JointReader(('a', 'b'), 'the test'), np.random.default_rng(0)
    for names in (['a', 'b'], ['b', 'a'], ['a', 'b'], ['b', 'a']):
        for _ in range(2):
            message = joint_state(names, '', rng)
            expected = [message.position[names.index(n)] for n in 'ab']
            assert reader.read(serialize_message(message))[0].tolist() == expected


@pytest.mark.parametrize('learnt', [False, True])
def test_joint_reader_refuses_a_message_whose_velocities_moved_to_effort(learnt):
    """As many bytes, the same names, but the velocities are gone: never numbers from a wrong place."""
    reader, rng = JointReader(('a', 'b'), 'the test'), np.random.default_rng(0)
    if learnt:
        reader.read(serialize_message(joint_state(['a', 'b'], '', rng)))
    message = joint_state(['a', 'b'], '', rng)
    message.velocity, message.effort = [], [1.0, 2.0]
    with pytest.raises(JointError, match='0 velocities'):
        reader.read(serialize_message(message))


def test_joint_reader_names_a_missing_joint():
    """The reader's user learns which joint is missing, and of whom."""
    with pytest.raises(JointError, match='lacks c, which the test needs'):
        JointReader(('a', 'c'), 'the test').read(serialize_message(joint_state(['a', 'b'], '', np.random.default_rng(0))))


@given(st.lists(NUMBERS, min_size=10, max_size=10), TEXT)
def test_imu_reader_agrees_with_rclpy(values, frame):
    """Orientation and rate, the second and third time through the layout; NaN and infinity as they are."""
    reader, message = ImuReader(), Imu()
    message.header.frame_id = frame
    q, w = message.orientation, message.angular_velocity
    q.x, q.y, q.z, q.w, w.x, w.y, w.z = values[:7]
    message.orientation_covariance[0] = values[7]
    for sec in range(3):
        message.header.stamp = Time(sec=sec)
        numbers = reader.read(serialize_message(message))
        np.testing.assert_array_equal(numbers[[0, 1, 2, 3, 13, 14, 15, 4]], values[:8])


@given(TEXT, st.lists(NUMBERS, max_size=30))
def test_array_message_is_what_rclpy_writes(label, values):
    """Every label, every length: what rclpy reads is what was meant, and most bytes are the very same."""
    raw = array_message(label, np.array(values))
    message = deserialize_message(raw, Float64MultiArray)
    size = len(values)
    assert message.layout.dim == [MultiArrayDimension(label=label, size=size, stride=size)]
    np.testing.assert_array_equal(message.data, values)
    assert len(raw) == len(serialize_message(message))


@pytest.mark.parametrize('size', [0, 1, 5, 11])
def test_a_message_cut_short_is_refused(size):
    """A stamp needs twelve bytes."""
    with pytest.raises(JointError, match='too short'):
        Sample(bytes(size))
