# SPDX-License-Identifier: Apache-2.0
"""Reading the simulator's traces in tests."""

import numpy as np

from sim2real_ros.rotations import tilt, xyzw_from_wxyz


def read_trace(path):
    """Return the trace of a finished run."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def leans(trace):
    """Return the lean of the base in rad, row by row."""
    return tilt(xyzw_from_wxyz(trace['qpos'][:, 3:7]))
