# SPDX-License-Identifier: Apache-2.0
"""When a simulated robot counts as fallen and when as following its command: one bar for `run`, `evaluate` and training.

The heights are the Go2's.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.rotations import tilt

START_HEIGHT = 0.34  # m, of the base of a robot that is put on its feet in the policy's default pose
TRAINING_START_HEIGHT = 0.33  # m; with the joints up to 0.15 rad off
FALL_HEIGHT = 0.16  # m, of the base
FALL_TILT = 1.0  # rad
TRAINING_FALL_TILT = np.pi / 3  # rad; a policy in training may try a little longer
SETTLE_S = 1.0  # after a change of command, left out of the means
TOLERANCE, SMALL = 0.15, 0.1  # of the command; m/s or rad/s, for small commands


def fallen(quat_xyzw: np.ndarray, height: np.ndarray, fall_tilt: float = FALL_TILT) -> np.ndarray:
    """Return whether the base leans or sinks too far, or is nowhere at all, (...,).

    Args:
        quat_xyzw: (..., 4) base orientation in the world.
        height: (...,) m, of the base.
        fall_tilt: rad.
    """
    return (tilt(quat_xyzw) > fall_tilt) | (height < FALL_HEIGHT) | ~np.isfinite(height)


def follows(measured: np.ndarray, command: np.ndarray) -> bool:
    """Return whether mean velocities are within 15 % of the command, or 0.1 of a small one; (3,) m/s, m/s, rad/s each."""
    return bool((np.abs(measured - command) <= np.maximum(SMALL, TOLERANCE * np.abs(command))).all())
