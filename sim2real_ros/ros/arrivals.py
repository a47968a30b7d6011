# SPDX-License-Identifier: Apache-2.0
"""`Arrivals`: all the messages of one topic while it is watched, and what the checks of the pre-flight want to know of them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.preflight.observed import Stream
from sim2real_ros.ros.conversions import command_origin, seconds
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.raw import Sample

KEPT = 100  # messages whose numbers are read; the stamps of all are
SAME_S = 1e-6  # stamps that close are the same
ALL = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)


class Arrivals:
    """The serialised messages of one topic, in the order in which they came."""

    def __init__(self, loop: ControlLoop, kind: type, topic: str) -> None:
        """Take the messages of a topic of a loop that has not started."""
        self._kind, self._topic = kind, topic
        self._at: list[float] = []  # s, steady clock
        self._data: list[bytes] = []
        loop.add(kind, topic, self._take, ALL, raw=True)

    def _take(self, data: bytes) -> None:
        self._at.append(time.monotonic())
        self._data.append(data)

    def last(self) -> list[Any]:
        """Return the last messages."""
        return [deserialize_message(data, self._kind) for data in self._data[-KEPT:]]

    def stream(self, publishers: tuple[str, ...]) -> Stream:
        """Return the stamps of all; those of commands are of the states that they answer, 0 where they do not say."""
        if self._kind is Float64MultiArray:
            origins = [command_origin(deserialize_message(data, self._kind)) for data in self._data]
            stamps = [1e-9 * (origin.stamp_ns or 0) for origin in origins]
        elif self._kind is Clock:
            stamps = [seconds(deserialize_message(data, Clock).clock) for data in self._data]
        else:
            stamps = [Sample(data).stamp for data in self._data]
        return Stream(self._topic, publishers, np.array(stamps), np.array(self._at))


def joint_numbers(messages: list[JointState]) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names, positions and velocities (k, n); NaN where a message has not as many numbers as names."""
    if not messages:
        return (), np.zeros((0, 0)), np.zeros((0, 0))
    names = tuple(messages[-1].name)
    alike, n = [message for message in messages if tuple(message.name) == names], len(names)
    rows = [[list(values) if len(values) == n else [np.nan] * n for values in (m.position, m.velocity)] for m in alike]
    numbers = np.array(rows).reshape(-1, 2, n)
    return names, numbers[:, 0], numbers[:, 1]


def command_ages(commands: Stream, states: Stream) -> np.ndarray:
    """Return the time from the arrival of a state to that of the command which answers it, s of the robot's time."""
    if len(states.stamps) < 2 or states.standing:
        return np.zeros(0)
    order = np.argsort(states.stamps, kind='stable')
    stamps, arrivals = states.stamps[order], states.arrivals[order]
    place = np.clip(np.searchsorted(stamps, commands.stamps - SAME_S), 0, len(stamps) - 1)
    answered = np.abs(stamps[place] - commands.stamps) < SAME_S
    factor = (stamps[-1] - stamps[0]) / max(float(np.ptp(arrivals)), SAME_S)  # a simulation may be slow
    return factor * np.maximum(commands.arrivals[answered] - arrivals[place[answered]], 0.0)
