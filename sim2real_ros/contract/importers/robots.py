# SPDX-License-Identifier: Apache-2.0
"""Which robot a set of joint names belongs to, where the source does not say it."""

from __future__ import annotations

from collections.abc import Sequence

MARKS = {  # names that a robot has, most particular first
    't1': ('AAHead_yaw', 'Left_Shoulder_Pitch'),
    'apollo': ('l_hip_ie', 'l_ankle_pd'),
    'berkeley_humanoid': ('LL_HR', 'LR_FAA'),
    'bhl_biped': ('leg_left_hip_roll_joint', 'leg_right_ankle_roll_joint'),
    'g1': ('left_hip_pitch_joint', 'left_ankle_roll_joint', 'waist_yaw_joint'),
    'h1': ('left_hip_yaw_joint', 'torso_joint'),
    'anymal': ('LF_HAA', 'RH_KFE'),
    'go2': ('FL_hip_joint', 'RR_calf_joint'),
    'ur10': ('shoulder_pan_joint', 'wrist_3_joint'),
}


def robot_of(joints: Sequence[str]) -> str:
    """Return the name of the robot that has such joints; `unknown` when none does. Set it with --robot."""
    return next((name for name, marks in MARKS.items() if all(mark in joints for mark in marks)), 'unknown')
