# SPDX-License-Identifier: Apache-2.0
"""Rewards of the velocity task: one plain function per term, from what happened in a control step to (B,) numbers.

Weights are per second; the environment multiplies them by the control period. Positive terms lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FOOT_HEIGHT = 0.08  # m, top of the swing
SWING_SHARE = 0.45  # of the gait period
BASE_HEIGHT = 0.305  # m


@dataclass(slots=True)
class Step:
    """What a control step left behind. Arrays are (B, ...); base frame is x forward, y left, z up."""

    command: np.ndarray  # (B, 3) m/s, m/s, rad/s
    standing: np.ndarray  # (B,) bool, the command is zero
    phase: np.ndarray  # (B,) gait phase in [0, 1)
    lin_vel: np.ndarray  # (B, 3) m/s, base frame
    ang_vel: np.ndarray  # (B, 3) rad/s, base frame
    gravity: np.ndarray  # (B, 3) projected gravity
    height: np.ndarray  # (B,) m
    joint_pos: np.ndarray  # (B, n) rad, minus default
    joint_vel: np.ndarray  # (B, n) rad/s
    joint_acc: np.ndarray  # (B, n) rad/s^2
    torque: np.ndarray  # (B, n) N m
    action: np.ndarray  # (B, n)
    last_action: np.ndarray  # (B, n)
    last_last_action: np.ndarray  # (B, n)
    foot_height: np.ndarray  # (B, 4) m, sole above the floor
    foot_vel: np.ndarray  # (B, 4, 3) m/s, world
    hips: np.ndarray  # indices of the hip joints


def _square(values: np.ndarray) -> np.ndarray:
    return np.einsum('bi,bi->b', values, values)


def _tracking(error: np.ndarray) -> np.ndarray:
    """Mostly a wide kernel that finds the command, and a narrow one that meets it."""
    return 0.7 * np.exp(-error / 0.25) + 0.3 * np.exp(-error / 0.02)


def track_lin_vel(s: Step) -> np.ndarray:
    """Follow the commanded x and y velocity."""
    return _tracking(_square(s.lin_vel[:, :2] - s.command[:, :2]))


def track_ang_vel(s: Step) -> np.ndarray:
    """Follow the commanded yaw rate."""
    return _tracking((s.ang_vel[:, 2] - s.command[:, 2]) ** 2)


def approach(s: Step) -> np.ndarray:
    """Share of the commanded velocity that is reached, in [-1, 1]: a slope that leads out of standing still."""
    planar = np.sum(s.lin_vel[:, :2] * s.command[:, :2], 1) / np.maximum(_square(s.command[:, :2]), 0.01)
    yaw = s.ang_vel[:, 2] * s.command[:, 2] / np.maximum(s.command[:, 2] ** 2, 0.01)
    return 0.7 * np.clip(planar, -1, 1) + 0.3 * np.clip(yaw, -1, 1)


def desired_foot_height(phase: np.ndarray, standing: np.ndarray) -> np.ndarray:
    """Sole height of a trot, (B, 4) m in the order FL FR RL RR: sin^2 during the swing, 0 in stance or when standing."""
    shifted = (phase[:, None] + np.array([0.0, 0.5, 0.5, 0.0])) % 1.0
    swing = np.clip(shifted / SWING_SHARE, 0, 1)
    return FOOT_HEIGHT * np.sin(np.pi * swing) ** 2 * ~standing[:, None]


def gait(s: Step) -> np.ndarray:
    """Lift each foot when its phase says so: squared error in swing heights; no speed at lift-off and touch-down."""
    return _square(s.foot_height - desired_foot_height(s.phase, s.standing)) / FOOT_HEIGHT**2


def vertical_speed(s: Step) -> np.ndarray:
    """Do not bounce."""
    return s.lin_vel[:, 2] ** 2


def roll_pitch_rate(s: Step) -> np.ndarray:
    """Do not wobble."""
    return _square(s.ang_vel[:, :2])


def tilt(s: Step) -> np.ndarray:
    """Keep the trunk level."""
    return _square(s.gravity[:, :2])


def height(s: Step) -> np.ndarray:
    """Do not crouch."""
    return (s.height - BASE_HEIGHT) ** 2


def torque(s: Step) -> np.ndarray:
    """Spend little torque."""
    return _square(s.torque)


def power(s: Step) -> np.ndarray:
    """Spend little mechanical power."""
    return np.abs(s.torque * s.joint_vel).sum(1)


def acceleration(s: Step) -> np.ndarray:
    """Move smoothly."""
    return _square(s.joint_acc)


def action_rate(s: Step) -> np.ndarray:
    """Change the action slowly."""
    return _square(s.action - s.last_action)


def action_jerk(s: Step) -> np.ndarray:
    """Change it steadily."""
    return _square(s.action - 2 * s.last_action + s.last_last_action)


def slip(s: Step) -> np.ndarray:
    """Feet on the floor do not slide."""
    speed = s.foot_vel[..., 0] ** 2 + s.foot_vel[..., 1] ** 2
    return (speed * (s.foot_height < 0.008)).sum(1)


def stamping(s: Step) -> np.ndarray:
    """Feet near the floor come down slowly."""
    return (np.minimum(s.foot_vel[..., 2], 0) ** 2 * (s.foot_height < 0.03)).sum(1)


def hip_deviation(s: Step) -> np.ndarray:
    """Keep the hips near their default, except as far as walking sideways or turning needs them."""
    return _square(s.joint_pos[:, s.hips])


def pose_deviation(s: Step) -> np.ndarray:
    """Stay near the default pose."""
    return _square(s.joint_pos)


def stand_still(s: Step) -> np.ndarray:
    """At zero command take the default pose and keep still."""
    return s.standing * (_square(s.joint_pos) + 0.02 * _square(s.joint_vel))


WEIGHTS: dict[Callable[[Step], np.ndarray], float] = {
    track_lin_vel: 3.0,
    track_ang_vel: 1.5,
    approach: 1.5,
    gait: -1.5,
    vertical_speed: -1.0,
    roll_pitch_rate: -0.04,
    tilt: -4.0,
    height: -30.0,
    torque: -1.5e-4,
    power: -5e-4,
    acceleration: -2e-7,
    action_rate: -0.006,
    action_jerk: -0.003,
    slip: -0.15,
    stamping: -0.3,
    hip_deviation: -0.4,
    pose_deviation: -0.05,
    stand_still: -0.4,
}
FALL = -2.0  # once
