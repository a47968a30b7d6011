# SPDX-License-Identifier: Apache-2.0
"""`Tape`: records topics without `ros2 bag`: the bytes as they came, each with the time at which the middleware had it.

Nothing is waited for and nothing is opened: a thread looks every 20 ms and writes what has gathered in the middleware's
queues. A recorder that is slow for a moment costs nobody anything, and the times are those of the arrival all the same.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from sim2real_ros.recording.topics import TOPICS, Topic
from sim2real_ros.recording.writer import BagWriter
from sim2real_ros.ros import qos
from sim2real_ros.ros.loop import Untouched

LOOK_S = 0.02
# Of the thread that writes: whoever controls goes first. The middleware's threads keep theirs, or its queues overflow.
NICENESS = 10


@dataclass(frozen=True, slots=True)
class Track:
    """One topic of one type."""

    topic: str  # full name
    kind: str
    subscription: Subscription

    def take(self) -> list[tuple[int, Track, bytes]]:
        """Return what has gathered: arrival in ns, this track, bytes."""
        messages, take = [], self.subscription.handle.take_message
        while (taken := take(self.subscription.msg_type, True)) is not None:
            data, info = taken
            messages.append((info['received_timestamp'], self, data))
        return messages


class Tape:
    """Records until it is stopped."""

    def __init__(self, node: Node, folder: Path, failed: Callable[[str], None]) -> None:
        """Subscribe and make the folder.

        Args:
            node: that subscribes; its namespace and remappings apply.
            folder: of the recording; must not exist.
            failed: told why it ended before it was stopped, from a thread of its own.

        Raises:
            DependencyError: rosbags is missing.
            OutputError: the folder exists, or cannot be made.
        """
        self._node, self._failed, self._writer = node, failed, BagWriter(folder)
        self._group = Untouched()
        self._tracks = [self._track(topic, topic.types[0]) for topic in TOPICS if len(topic.types) == 1]
        self._undecided = [topic for topic in TOPICS if len(topic.types) > 1]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name='tape', daemon=True)

    @property
    def count(self) -> int:
        """Messages written."""
        return self._writer.count

    def start(self) -> None:
        """Start to record."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is left, and the index."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            while not self._stop.wait(LOOK_S):
                self._decide()
                self._write()
            self._write()
            self._writer.close()
        except Exception as error:  # rosbags and rclpy have kinds of their own; a thread that dies tells nobody
            self._failed(f'the recording ended: {getattr(error, "strerror", None) or str(error) or repr(error)}')
            with contextlib.suppress(OSError):  # as on a disk that is full
                self._writer.abort()

    def _track(self, topic: Topic, kind: str) -> Track:
        profile = qos.RECORDED_LATCHED if topic.latched else qos.RECORDED
        subscription = self._node.create_subscription(
            message_class(kind), topic.name, lambda _: None, profile, callback_group=self._group
        )
        return Track(self._node.resolve_topic_name(topic.name), kind, subscription)

    def _decide(self) -> None:
        """Subscribe to topics of several types as soon as anybody shows which it is: the middleware takes only one."""
        for topic in list(self._undecided):
            name = self._node.resolve_topic_name(topic.name)
            ends = self._node.get_publishers_info_by_topic(name) + self._node.get_subscriptions_info_by_topic(name)
            kind = next((end.topic_type for end in ends if end.topic_type in topic.types), None)
            if kind is not None:
                self._tracks.append(self._track(topic, kind))
                self._undecided.remove(topic)

    def _write(self) -> None:
        gathered = [message for track in self._tracks for message in track.take()]
        for stamp_ns, track, data in sorted(gathered, key=lambda message: message[0]):
            if not self._writer.knows(track.topic, track.kind):
                self._writer.announce(track.topic, track.kind, self._profiles(track))
            self._writer.write(track.topic, track.kind, stamp_ns, data)

    def _profiles(self, track: Track) -> list[Any]:
        publishers = self._node.get_publishers_info_by_topic(track.topic)
        offered = [p.qos_profile for p in publishers if p.topic_type == track.kind] or [qos.COMMAND]
        return [_recorded(profile) for profile in offered]


def message_class(kind: str) -> type:
    """Return the class of a message type, as `sensor_msgs/msg/Imu`."""
    package, _, name = kind.split('/')
    return getattr(importlib.import_module(f'{package}.msg'), name)  # type: ignore[no-any-return]


def _recorded(profile: QoSProfile) -> Any:
    """Return a profile as rosbags writes it; the numbers of both are those of rmw."""
    from rosbags import interfaces as bags  # noqa: PLC0415 - an optional extra

    return bags.Qos(
        bags.QosHistory(int(profile.history)), profile.depth,
        bags.QosReliability(int(profile.reliability)), bags.QosDurability(int(profile.durability)),
        _time(profile.deadline), _time(profile.lifespan),
        bags.QosLiveliness(int(profile.liveliness)), _time(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )  # fmt: skip


def _time(duration: Duration) -> Any:
    from rosbags.interfaces import QosTime  # noqa: PLC0415

    return QosTime(*divmod(duration.nanoseconds, 1_000_000_000))
