# SPDX-License-Identifier: Apache-2.0
"""What holosoma_inference knows beside its ONNX files: default angles, observation lists and scales, action scale, rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

G1_LEG, G1_LEFT_ARM, G1_RIGHT_ARM = [-0.312, 0, 0, 0.669, -0.363, 0], [0.2, 0.2, 0, 0.6, 0, 0, 0], [0.2, -0.2, 0, 0.6, 0, 0, 0]
T1_LEG, T1_LEFT_ARM, T1_RIGHT_ARM = [-0.2, 0, 0, 0.4, -0.25, 0], [0.2, -1.35, 0, -0.5], [0.2, 1.35, 0, 0.5]
WRIST = [0, 0, 0]
ROBOTS = 'holosoma_inference config_values/robot.py, default_dof_angles'


@dataclass(frozen=True)
class Robot:
    """A robot of holosoma: its name there and here, default angles in the order of its joints, scales of its locomotion."""

    known_as: str
    name: str
    angles: Sequence[float]
    mark: str  # a joint that tells it from the others of the same count
    scales: dict[str, float] = field(default_factory=dict)
    torso: str = 'torso_link'


G1_29 = Robot(
    'g1_29dof', 'g1', [*G1_LEG, *G1_LEG, 0, 0, 0, *G1_LEFT_ARM, *G1_RIGHT_ARM], 'waist_yaw_joint',
    {'base_ang_vel': 0.25, 'dof_vel': 0.05, 'base_lin_vel': 2.0},
)  # fmt: skip
T1_SCALES = {'base_ang_vel': 1.0, 'dof_vel': 0.1, 'base_lin_vel': 1.0}
T1_29 = Robot(
    't1_29dof', 't1', [0, 0, *T1_LEFT_ARM, *WRIST, *T1_RIGHT_ARM, *WRIST, 0, *T1_LEG, *T1_LEG], 'AAHead_yaw', T1_SCALES, 'Trunk'
)  # fmt: skip
T1_23 = Robot('t1_23dof', 't1', [0, 0, *T1_LEFT_ARM, *T1_RIGHT_ARM, 0, *T1_LEG, *T1_LEG], 'AAHead_yaw', T1_SCALES, 'Trunk')


@dataclass(frozen=True)
class Task:
    """An observation list of holosoma, as configured (not in the order that the network sees), with its action scale."""

    known_as: str
    terms: tuple[str, ...]
    action_scale: float
    where: str


LOCO = Task(
    'locomotion',
    ('base_ang_vel', 'projected_gravity', 'command_lin_vel', 'command_ang_vel', 'dof_pos', 'dof_vel', 'actions',
     'sin_phase', 'cos_phase'),
    0.25,
    'holosoma_inference config_values/observation.py and task.py, locomotion',
)  # fmt: skip
LOCO_FREE = Task('locomotion without a gait clock', LOCO.terms[:-2], 0.25, LOCO.where)
WBT = Task(
    'whole-body tracking',
    ('motion_command', 'motion_ref_ori_b', 'base_ang_vel', 'dof_pos', 'dof_vel', 'actions'),
    1.0,
    'holosoma_inference config_values/observation.py and task.py, wbt',
)
WBT_STATE = Task('whole-body tracking with state estimation', (*WBT.terms, 'motion_ref_pos_b', 'base_lin_vel'), 1.0, WBT.where)


def robot_with(joints: Sequence[str]) -> Robot | None:
    """Return the robot that has such joints; None for others."""
    return next((robot for robot in (G1_29, T1_29, T1_23) if len(robot.angles) == len(joints) and robot.mark in joints), None)


def width_of(term: str, n: int) -> int:
    """Return how many numbers a term has, for n joints."""
    wide = {'dof_pos': n, 'dof_vel': n, 'actions': n, 'motion_command': 2 * n, 'motion_ref_ori_b': 6}
    return wide.get(term, {'command_lin_vel': 2, 'command_ang_vel': 1, 'sin_phase': 2, 'cos_phase': 2}.get(term, 3))


def frame_width(task: Task, n: int) -> int:
    """Return how many numbers one tick of a task has, for n joints."""
    return sum(width_of(term, n) for term in task.terms)
