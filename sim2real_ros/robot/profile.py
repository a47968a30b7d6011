# SPDX-License-Identifier: Apache-2.0
"""Profiles: the same robot, made milder, as for its first steps: less torque, less speed, more time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sim2real_ros.errors import NotFoundError
from sim2real_ros.robot.description import Robot
from sim2real_ros.robot.schema import ProfileSection


def milder(robot: Robot, name: str, profiles: Mapping[str, ProfileSection]) -> Robot:
    """Return a robot under one of the profiles of its file.

    Raises:
        NotFoundError: it has no such profile.
    """
    if name not in profiles:
        raise NotFoundError(f'robot {robot.name} has no profile "{name}"; its profiles are {", ".join(profiles) or "none"}')
    profile, safety, move = profiles[name], robot.safety, robot.pose_move
    continuous = safety.continuous_torque
    return replace(
        robot,
        profile=name,
        command_share=profile.command,
        limits=replace(robot.limits, effort=profile.effort * robot.limits.effort),
        pose_move=replace(move, duration_s=profile.pose_duration_s or move.duration_s),
        safety=replace(
            safety,
            blend_s=profile.blend_s or safety.blend_s,
            continuous_torque=None if continuous is None else profile.effort * continuous,
        ),
    )
