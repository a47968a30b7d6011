# SPDX-License-Identifier: Apache-2.0
"""`BagWriter`: serialised messages into a rosbag2 folder: MCAP with the message definitions in it, and metadata.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from sim2real_ros.errors import DependencyError, OutputError
from sim2real_ros.paths import writable_folder

MISSING = 'rosbags is missing, which reads and writes recordings: pip install "sim2real_ros[record]"'
METADATA = 'metadata.yaml'  # written last: with it a recording is whole
VERSION: Final = 8  # of metadata.yaml: profiles as text, which ROS 2 Humble reads as well


def require_rosbags() -> None:
    """Raise DependencyError when rosbags is not installed."""
    try:
        import rosbags.rosbag2  # noqa: F401, PLC0415 - an optional extra
    except ImportError:
        raise DependencyError(MISSING) from None


def new_folder(folder: Path, option: str) -> Path:
    """Return the folder of a recording that does not exist yet, the folders above it made.

    Raises:
        OutputError: it exists, or cannot be made; the message names the option that gave it.
    """
    folder = folder.expanduser().resolve()
    if folder.exists():
        raise OutputError(f'{option}: {folder} exists already; a recording needs a folder of its own, give another name')
    writable_folder(folder.parent, option)
    return folder


def dated_folder() -> Path:
    """Return a name for a recording in the current directory: `run_<UTC time>`."""
    return Path(f'run_{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}')


class BagWriter:
    """Writes one recording; a context manager.

    Chunks of about a megabyte are compressed (zstd) and written as they fill: what is lost when the power fails is about a
    second of a running robot, and the index.

    Attributes:
        count: messages written.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder; raises DependencyError without rosbags, OutputError where the folder exists."""
        require_rosbags()
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer  # noqa: PLC0415
        from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

        self._types = get_typestore(Stores.ROS2_JAZZY)  # these messages are the same in every ROS 2
        self._writer = Writer(new_folder(folder, 'folder'), version=VERSION, storage_plugin=StoragePlugin.MCAP)
        self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self._writer.open()
        self._connections: dict[tuple[str, str], Any] = {}
        self.count = 0

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def knows(self, topic: str, kind: str) -> bool:
        """Return whether a topic was announced."""
        return (topic, kind) in self._connections

    def announce(self, topic: str, kind: str, qos: Sequence[Any] = ()) -> None:
        """Announce a topic.

        Args:
            topic: full name.
            kind: message type, as `sensor_msgs/msg/Imu`.
            qos: `rosbags.interfaces.Qos` of its publishers, for whoever plays the recording.
        """
        connection = self._writer.add_connection(topic, kind, typestore=self._types, offered_qos_profiles=qos)
        self._connections[topic, kind] = connection

    def write(self, topic: str, kind: str, stamp_ns: int, data: bytes) -> None:
        """Write a message of an announced topic.

        Args:
            topic: full name.
            kind: message type.
            stamp_ns: when it arrived, ns since 1970.
            data: serialised message.
        """
        self._writer.write(self._connections[topic, kind], stamp_ns, data)
        self.count += 1

    def close(self) -> None:
        """Write index and metadata.yaml; raises OSError when the disk is full."""
        self._writer.close()

    def abort(self) -> None:
        """Let go of the file as it is, without index and metadata.yaml."""
        self._writer.abort()
