# SPDX-License-Identifier: Apache-2.0
"""Joint targets to torque."""

from __future__ import annotations

import numpy as np

from sim2real_ros.signals import Gains, Impedance, JointTargets


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


def blend(old: Impedance, new: Impedance, share: float) -> Impedance:
    """Return the impedance whose torque is `(1 - share) old + share new` in every state.

    Stiffness, damping and feed-forward blend as they are; targets weighted with their gains.
    """
    a, b = 1.0 - share, share
    kp = a * old.gains.stiffness + b * new.gains.stiffness
    kd = a * old.gains.damping + b * new.gains.damping
    pull = a * old.gains.stiffness * old.targets.position + b * new.gains.stiffness * new.targets.position
    drag = a * old.gains.damping * old.targets.velocity + b * new.gains.damping * new.targets.velocity
    targets = JointTargets(
        new.targets.stamp,
        np.divide(pull, kp, out=new.targets.position.copy(), where=kp > 0),
        np.divide(drag, kd, out=new.targets.velocity.copy(), where=kd > 0),
        a * old.targets.effort + b * new.targets.effort,
    )
    return Impedance(targets, Gains(kp, kd))
