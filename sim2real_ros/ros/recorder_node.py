# SPDX-License-Identifier: Apache-2.0
"""`recorder_node`: records a run as a rosbag2 in MCAP, in a process of its own that nobody waits for.

Where ROS 2 has `ros2 bag` with MCAP it does the work; otherwise `Tape` does.
"""

from __future__ import annotations

from pathlib import Path

from rclpy.node import Node

from sim2real_ros.recording.writer import METADATA, dated_folder
from sim2real_ros.ros import rosbag2
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare
from sim2real_ros.ros.rosbag2 import Rosbag2
from sim2real_ros.ros.tape import Tape


class RecorderNode(Node):
    """Records the topics of one namespace."""

    def __init__(self) -> None:
        super().__init__('recorder_node')
        self.exit_code: int | None = None
        folder = declare(
            self, 'folder', '', 'Folder of the recording, must not exist; empty: run_<UTC time> in the current one.'
        )
        self._folder = Path(folder) if folder else dated_folder()
        self._recorder = (Rosbag2 if rosbag2.available() else Tape)(self, self._folder, self._on_failure)

    def begin(self) -> None:
        """Start to record."""
        self._recorder.start()
        self.get_logger().info(f'recording into {self._folder}')

    def close(self) -> None:
        """Write what is left, so that the recording can be read."""
        self._recorder.stop()
        if (self._folder / METADATA).is_file():
            self.get_logger().info(f'the recording is in {self._folder}')
        elif self.exit_code is None:
            self._on_failure(f'the recording in {self._folder} is not whole: its index was not written')

    def _on_failure(self, reason: str) -> None:
        self.get_logger().error(reason)
        self.exit_code = 1


def main() -> int:
    """Run the node."""
    return run_node(RecorderNode)


if __name__ == '__main__':
    raise SystemExit(main())
