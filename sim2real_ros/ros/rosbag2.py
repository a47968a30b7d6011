# SPDX-License-Identifier: Apache-2.0
"""`Rosbag2`: records topics with `ros2 bag record`, where ROS 2 has it with the MCAP storage.

`ros2 bag` spells the list of topics differently from one ROS 2 to the next; the regular expression has the same name in all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from sim2real_ros.children import end_children, start_child
from sim2real_ros.recording.topics import TOPICS
from sim2real_ros.recording.writer import new_folder
from sim2real_ros.ros import qos

PATIENCE_S = 8.0  # to write its index


def available() -> bool:
    """Return whether `ros2 bag record` can write MCAP here."""
    try:
        from rosbag2_py import get_registered_writers  # noqa: PLC0415 - only where ROS 2 has it
    except ImportError:
        return False
    return shutil.which('ros2') is not None and 'mcap' in get_registered_writers()


class Rosbag2:
    """Records until it is stopped."""

    def __init__(self, node: Node, folder: Path, failed: Callable[[str], None]) -> None:
        """Prepare; arguments as those of `Tape`."""
        self._folder, self._failed = new_folder(folder, 'folder'), failed
        self._names = {node.resolve_topic_name(topic.name): topic.latched for topic in TOPICS}
        self._scratch = tempfile.TemporaryDirectory()
        self._child: subprocess.Popen[bytes] | None = None
        node.create_timer(1.0, self._look)

    def start(self) -> None:
        """Start `ros2 bag record`."""
        profiles = Path(self._scratch.name) / 'qos.yaml'
        profiles.write_text(yaml.safe_dump(overrides(self._names)), encoding='utf-8')
        line = command_line(self._folder, self._names, profiles)
        self._child = start_child(line)

    def stop(self) -> None:
        """Have it write its index and end."""
        if self._child is not None and not end_children([self._child], PATIENCE_S):
            self._failed(f'`ros2 bag record` did not end within {PATIENCE_S:g} s and was killed')
        self._scratch.cleanup()

    def _look(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            self._failed(f'`ros2 bag record` ended with code {self._child.returncode}; its own message is above')


def command_line(folder: Path, names: dict[str, bool], profiles: Path) -> list[str]:
    """Return the command that records some topics, full names, into a folder."""
    exactly = f'^({"|".join(re.escape(name) for name in names)})$'
    return [
        'ros2', 'bag', 'record', '--storage', 'mcap', '--output', str(folder), '--regex', exactly,
        '--qos-profile-overrides-path', str(profiles),
    ]  # fmt: skip


def overrides(names: dict[str, bool]) -> dict[str, dict[str, object]]:
    """Return the profiles to subscribe with, by full name of the topic and whether it is latched; see `qos.py`."""
    return {name: _override(qos.RECORDED_LATCHED if latched else qos.RECORDED) for name, latched in names.items()}


def _override(profile: QoSProfile) -> dict[str, object]:
    reliable = profile.reliability == ReliabilityPolicy.RELIABLE
    return {
        'history': 'keep_last',
        'depth': profile.depth,
        'reliability': 'reliable' if reliable else 'best_effort',
        'durability': 'transient_local' if profile is qos.RECORDED_LATCHED else 'volatile',
    }
