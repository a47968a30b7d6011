# SPDX-License-Identifier: Apache-2.0
"""Serialised messages that are looked into before they are worth deserialising.

A joint state costs Python 70 us to deserialise. The policy needs one in ten of them and the watchdog almost none, but
both need every stamp; it is the first field of every message with a header.
"""

from __future__ import annotations

import struct
from typing import Any

from rclpy.serialization import deserialize_message

from sim2real_ros.errors import JointError

ENCAPSULATION = 4  # bytes before the first field of a CDR stream; the second of them is odd for little-endian
STAMP = {0: struct.Struct('>iI'), 1: struct.Struct('<iI')}


def stamp_ns(data: bytes) -> int:
    """Return the stamp of a serialised message that begins with a header, ns; raises JointError when it is cut short."""
    try:
        sec, nanosec = STAMP[data[1] & 1].unpack_from(data, ENCAPSULATION)
    except (struct.error, IndexError):
        raise JointError(f'a message of {len(data)} bytes is too short for a header') from None
    return sec * 1_000_000_000 + nanosec


class Sample:
    """A serialised message, its stamp, and the message itself once somebody asks for it.

    Attributes:
        stamp_ns: of its header, ns.
    """

    def __init__(self, data: bytes, message_type: type) -> None:
        self._data, self._type = data, message_type
        self._message: Any = None
        self.stamp_ns = stamp_ns(data)

    @property
    def stamp(self) -> float:
        """Stamp in s, by the very arithmetic of `conversions.seconds`."""
        return self.stamp_ns // 1_000_000_000 + (self.stamp_ns % 1_000_000_000) * 1e-9

    @property
    def message(self) -> Any:
        """The message."""
        if self._message is None:
            self._message = deserialize_message(self._data, self._type)
        return self._message
