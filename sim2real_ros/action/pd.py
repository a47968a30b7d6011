# SPDX-License-Identifier: Apache-2.0
"""Joint targets to torque."""

from __future__ import annotations

import numpy as np

from sim2real_ros.signals import Gains, JointTargets


def pd_torque(targets: JointTargets, gains: Gains, joint_pos: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
    """Return kp (q* - q) + kd (qd* - qd) + effort, (..., n) N m.

    Args:
        targets: positions in rad, velocities in rad/s, feed-forward in N m, (..., n).
        gains: (n,), same joint order.
        joint_pos: (..., n) rad.
        joint_vel: (..., n) rad/s.
    """
    torque = gains.stiffness * (targets.position - joint_pos)
    torque += gains.damping * (targets.velocity - joint_vel)
    torque += targets.effort
    return torque
