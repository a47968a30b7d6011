# SPDX-License-Identifier: Apache-2.0
"""`Bag`: a rosbag2 recording, opened for reading: MCAP or SQLite, compressed or not, a folder or a single file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim2real_ros.errors import NotFoundError, RecordingError
from sim2real_ros.recording.topics import JOINT_STATE, TOPICS, Topic
from sim2real_ros.recording.writer import METADATA, require_rosbags

SUFFIXES = ('.mcap', '.db3')
KNOWN = {topic.name: topic for topic in TOPICS}
RECOVER = 'mcap recover FILE -o NEW.mcap (github.com/foxglove/mcap)'
CUT_SHORT = (
    f'it was cut short: the recorder was killed, or the disk was full. What reached the disk can be mended with: {RECOVER}'
)


class Bag:
    """The topics of one robot in a recording; a context manager.

    Attributes:
        path: of the recording.
        namespace: of the robot, '' for none.
        topics: full names of all topics in it.
    """

    def __init__(self, path: Path, namespace: str | None = None) -> None:
        """Open it.

        Args:
            path: folder or file.
            namespace: whose topics to read; None: the only one.

        Raises:
            DependencyError: rosbags is missing.
            NotFoundError: there is nothing at the path, or no such namespace in it.
            RecordingError: it is no recording, was cut short, or holds no robot.
        """
        require_rosbags()
        from rosbags.rosbag2 import Reader  # noqa: PLC0415 - an optional extra
        from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415

        self.path, self._types = path, get_typestore(Stores.ROS2_JAZZY)  # these messages are the same in every ROS 2
        source = _source(path)
        try:
            self._reader = Reader(source)
            self._reader.open()
        except Exception as error:  # rosbags raises what it comes across: its own, struct's, SQLite's
            raise RecordingError(f'{path} cannot be read: {_reason(error, source)}') from None
        self.topics = sorted({connection.topic for connection in self._reader.connections})
        self.namespace = self._choose(namespace)

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def messages(self, name: str, window: tuple[int, int] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield arrival in ns and message of a topic, in the order of arrival.

        Args:
            name: relative name, as in `topics.TOPICS`.
            window: of arrivals that count, both included, ns.

        Raises:
            RecordingError: the recording is damaged.
        """
        connections = self._connections(KNOWN[name])
        if not connections:
            return
        start, stop = (None, None) if window is None else (window[0], window[1] + 1)
        try:
            for connection, arrival, data in self._reader.messages(connections, start, stop):
                yield arrival, self._types.deserialize_cdr(data, connection.msgtype)
        except Exception as error:
            raise RecordingError(f'{self.path} is damaged at {name}: {_reason(error, self.path)}') from None

    def _connections(self, topic: Topic) -> list[Any]:
        """Return the topic by its name, or, where it was remapped, the only one of its type and last name."""
        prefix = f'/{self.namespace}' if self.namespace else ''
        typed = [c for c in self._reader.connections if c.msgtype in topic.types]
        named = [c for c in typed if c.topic == f'{prefix}/{topic.name}']
        if named or topic.name not in ('imu/data', 'odom', 'effort_controller/commands'):
            return named
        inside = [c for c in typed if c.topic.startswith(f'{prefix}/')]
        if topic.name.endswith('commands'):
            inside = [c for c in inside if c.topic.endswith('/commands') and 'impedance' not in c.topic]
        return inside if len({c.topic for c in inside}) == 1 else []

    def _choose(self, namespace: str | None) -> str:
        end = '/joint_states'
        found = sorted({topic.removesuffix(end).strip('/') for topic in self.topics if topic.endswith(end)})
        shown = ', '.join(f'"{name}"' for name in found)
        if not found:
            self._reader.close()
            raise RecordingError(f'{self.path} has no joint_states; its topics are {", ".join(self.topics) or "none"}')
        if namespace is not None and namespace.strip('/') not in found:
            self._reader.close()
            raise NotFoundError(f'{self.path} has no namespace "{namespace}"; it has {shown}')
        if namespace is None and len(found) > 1:
            self._reader.close()
            raise RecordingError(f'{self.path} holds several robots, {shown}; choose one with --namespace')
        chosen = found[0] if namespace is None else namespace.strip('/')
        name = f'/{chosen}{end}' if chosen else end
        kinds = {connection.msgtype for connection in self._reader.connections if connection.topic == name}
        if not kinds & set(KNOWN['joint_states'].types):
            self._reader.close()
            raise RecordingError(f'{self.path}: {name} is of {", ".join(sorted(kinds))}; {JOINT_STATE} is expected')
        return chosen


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a rosbag2: a folder, or a file with the suffix of one."""
    return path.is_dir() or path.suffix in SUFFIXES


def _source(path: Path) -> Path:
    """Return what rosbags has to open: a folder with metadata.yaml, else the one file in it."""
    if not path.exists():
        raise NotFoundError(f'there is no recording {path}')
    for part in path.iterdir() if path.is_dir() else (path,):
        if not (part.is_file() or part.is_dir()):  # a pipe would keep us waiting, a device would never end
            raise RecordingError(f'{part} is no regular file; copy the recording to a file and give that')
    if not path.is_dir() or (path / METADATA).is_file():
        return path
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise RecordingError(f'{path} is no recording: there is neither {METADATA} nor a file {" or ".join(SUFFIXES)}')
    if len(files) > 1:
        raise RecordingError(f'{path} has no {METADATA} and several files; write it with: ros2 bag reindex {path}')
    return files[0]


def _reason(error: Exception, path: Path) -> str:
    """Say what an error of rosbags means for a user."""
    text = str(error).strip() or type(error).__name__
    ends = (
        'end magic',
        'Truncated record',
        'Invalid MCAP footer',
        'seems to be empty',
        'Could not read',
        'ord() expected',
        'unpack',
        'EOF',
    )
    if path.is_dir() and any(sign in text for sign in ('metadata key', 'bag metadata', 'YAML', 'codec')):
        return f'{path / METADATA} is damaged; delete it, then write it anew with: ros2 bag reindex {path}'
    if 'files are missing' in text:
        return f'{METADATA} in it lists files that are not there: {text.partition(": ")[2]}; copy them too'
    if 'File magic is invalid' in text:
        return 'it is no MCAP file'
    if 'decompress' in text:
        return f'a part of it is no longer what was written. The rest can be saved with: {RECOVER}'
    if path.suffix == '.db3' or 'file is not a database' in text or 'malformed' in text:
        return f'{text}. An SQLite recording is mended with: sqlite3 FILE.db3 .recover'
    return CUT_SHORT if any(end in text for end in ends) else text
