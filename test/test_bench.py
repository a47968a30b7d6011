# SPDX-License-Identifier: Apache-2.0
"""A benchmark runs when it is asked for, not when somebody imports it."""

import subprocess
import sys

import pytest
from makers import REPOSITORY

pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')


def test_importing_the_benchmarks_measures_nothing():
    code = 'import bench.__main__; print("imported")'
    done = subprocess.run([sys.executable, '-c', code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, 'imported\n'), done.stderr
