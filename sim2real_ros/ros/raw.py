# SPDX-License-Identifier: Apache-2.0
"""Numbers out of serialised messages and into them, without building the messages.

In a running node rclpy needs about 80 us to deserialise a joint state or an IMU sample and 100 us to publish a command:
more than everything else in a control tick. A driver's messages differ in their stamp and numbers alone; names and
frame stay. So rclpy reads the first message, its layout is remembered, and later ones are read at its offsets for as
long as everything else in them is the same, byte for byte. Whatever does not fit goes through rclpy and is learnt anew.

Serialised messages are CDR: 4 bytes of encapsulation, then the fields, each aligned to its size, counted from there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState

from sim2real_ros.errors import JointError
from sim2real_ros.joints import JointMap

ENCAPSULATION = 4  # bytes; the second one is odd for little-endian
LITTLE = b'\x00\x01'
NAMES = ENCAPSULATION + 8  # behind the stamp of a header
STAMP = {0: struct.Struct('>iI'), 1: struct.Struct('<iI')}


def stamp_ns(data: bytes) -> int:
    """Return the stamp of a serialised message that begins with a header, ns; raises JointError when it is cut short."""
    try:
        sec, nanosec = STAMP[data[1] & 1].unpack_from(data, ENCAPSULATION)
    except (struct.error, IndexError):
        raise JointError(f'a message of {len(data)} bytes is too short for a header') from None
    return sec * 1_000_000_000 + nanosec


class Sample:
    """A serialised message with a header.

    Attributes:
        data: the bytes.
        stamp_ns: of its header, ns.
    """

    __slots__ = ('data', 'stamp_ns')

    def __init__(self, data: bytes) -> None:
        self.data, self.stamp_ns = data, stamp_ns(data)

    @property
    def stamp(self) -> float:
        """Stamp in s, by the very arithmetic of `conversions.seconds`."""
        return self.stamp_ns // 1_000_000_000 + (self.stamp_ns % 1_000_000_000) * 1e-9


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the float64 of a message stand, in messages that are like the one it was learnt from."""

    size: int  # of the message
    same: tuple[tuple[slice, bytes], ...]  # what must be the same in all of them
    offset: int  # of the first number
    count: int  # of numbers from there on, counts between sequences included

    def read(self, data: bytes) -> np.ndarray | None:
        """Return the numbers, or None when the message is of another layout."""
        if len(data) != self.size:
            return None
        for where, expected in self.same:
            if data[where] != expected:
                return None
        return np.frombuffer(data, '<f8', self.count, self.offset)


class JointReader:
    """Reads joint states whatever order they list the joints in.

    Attributes:
        joints: order of the result.
    """

    def __init__(self, joints: tuple[str, ...], consumer: str) -> None:
        """Read for `consumer`, who needs `joints`."""
        self.joints, self._consumer = joints, consumer
        self._layout: Layout | None = None
        self._index = np.zeros((2, 0), int)  # of positions and velocities among the numbers of the layout

    def read(self, data: bytes) -> np.ndarray:
        """Return positions in rad and velocities in rad/s, (2, n).

        Raises:
            JointError: the message lacks a joint, or a joint its position or velocity.
        """
        if self._layout is not None and (numbers := self._layout.read(data)) is not None:
            return numbers[self._index]
        message = deserialize_message(data, JointState)
        n = len(message.name)
        if len(message.position) != n or len(message.velocity) != n:
            raise JointError(
                f'joint_states has {n} names, {len(message.position)} positions and {len(message.velocity)} velocities; '
                'each joint needs all three'
            )
        joint_map = JointMap(message.name, self.joints, source='joint_states', target=self._consumer)
        values = np.array((message.position, message.velocity))[:, joint_map.index]
        self._learn(data, message, joint_map.index, values)
        return values

    def _learn(self, data: bytes, message: JointState, index: np.ndarray, values: np.ndarray) -> None:
        n, count = len(message.name), _behind(message.header.frame_id, message.name)
        offset = _aligned(count + 4, 8)
        between = slice(offset + 8 * n, offset + 8 * n + 4)  # the count of velocities, padded to 8 bytes
        same = [slice(0, 2), slice(NAMES, count + 4), between]
        self._layout = _layout(data, same, offset, 2 * n + 1)
        self._index = np.stack((index, index + n + 1))
        if self._layout is not None and not np.array_equal(_numbers(self._layout, data)[self._index], values, equal_nan=True):
            self._layout = None  # another serialisation than the one known here: always through rclpy


class ImuReader:
    """Reads IMU samples."""

    def __init__(self) -> None:
        self._layout: Layout | None = None

    def read(self, data: bytes) -> np.ndarray:
        """Return (37,): orientation xyzw, its covariance (9), angular velocity and covariance, acceleration and covariance."""
        if self._layout is not None and (numbers := self._layout.read(data)) is not None:
            return numbers
        m = deserialize_message(data, Imu)
        q, w, a = m.orientation, m.angular_velocity, m.linear_acceleration
        values = np.concatenate(
            [
                (q.x, q.y, q.z, q.w), m.orientation_covariance,
                (w.x, w.y, w.z), m.angular_velocity_covariance,
                (a.x, a.y, a.z), m.linear_acceleration_covariance,
            ]
        )  # fmt: skip
        end = _behind(m.header.frame_id)
        self._layout = _layout(data, [slice(0, 2), slice(NAMES, end)], _aligned(end, 8), len(values))
        if self._layout is not None and not np.array_equal(_numbers(self._layout, data), values, equal_nan=True):
            self._layout = None
        return values


def array_message(label: str, values: np.ndarray) -> bytes:
    """Return a serialised std_msgs/Float64MultiArray of one dimension.

    Args:
        label: of the dimension.
        values: (n,).
    """
    text, n = label.encode() + b'\0', values.size
    text += bytes(-len(text) % 4)
    head = struct.pack('<II', 1, len(label.encode()) + 1) + text + struct.pack('<IIII', n, n, 0, n)
    return LITTLE + b'\0\0' + head + bytes(-len(head) % 8) + values.astype('<f8', copy=False).tobytes()


def _behind(frame_id: str, names: Sequence[str] | None = None) -> int:
    """Return the offset behind a header's frame and a sequence of names; the stamp before them has a fixed size."""
    end = NAMES + 4 + len(frame_id.encode()) + 1
    if names is not None:
        end = _aligned(end, 4) + 4
        for name in names:
            end = _aligned(end, 4) + 4 + len(name.encode()) + 1
        end = _aligned(end, 4)
    return end


def _aligned(offset: int, size: int) -> int:
    return offset + -(offset - ENCAPSULATION) % size


def _layout(data: bytes, same: list[slice], offset: int, count: int) -> Layout | None:
    if data[:2] != LITTLE or len(data) < offset + 8 * count:
        return None
    return Layout(len(data), tuple((where, data[where]) for where in same), offset, count)


def _numbers(layout: Layout, data: bytes) -> np.ndarray:
    return np.frombuffer(data, '<f8', layout.count, layout.offset)
