# SPDX-License-Identifier: Apache-2.0
"""Motor orders of Unitree robots: files of several trainers give indices into them and no names.

Public facts: `joint_sdk_names` in unitree_rl_lab (source/unitree_rl_lab/unitree_rl_lab/assets/robots/unitree.py) and the joint
index enumerations of the examples in unitree_sdk2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sim2real_ros.contract.importers.draft import Hints

SOURCE = 'joint_sdk_names in unitree_rl_lab, assets/robots/unitree.py, and the joint enumerations of unitree_sdk2'
SIDES = ('left', 'right')


def _both(names: str) -> list[str]:
    return [f'{side}_{name}_joint' for side in SIDES for name in names.split()]


def _legs(names: str) -> list[str]:
    return [f'{leg}_{name}_joint' for leg in ('FR', 'FL', 'RR', 'RL') for name in names.split()]


QUADRUPED = _legs('hip thigh calf')
WHEELED = QUADRUPED + [f'{leg}_foot_joint' for leg in ('FR', 'FL', 'RR', 'RL')]
G1 = [
    *_both('hip_pitch hip_roll hip_yaw knee ankle_pitch ankle_roll'),
    *(f'waist_{axis}_joint' for axis in ('yaw', 'roll', 'pitch')),
    *_both('shoulder_pitch shoulder_roll shoulder_yaw elbow wrist_roll wrist_pitch wrist_yaw'),
]
H1 = [
    *('right_hip_roll_joint', 'right_hip_pitch_joint', 'right_knee_joint'),
    *('left_hip_roll_joint', 'left_hip_pitch_joint', 'left_knee_joint'),
    *('torso_joint', 'left_hip_yaw_joint', 'right_hip_yaw_joint', '', 'left_ankle_joint', 'right_ankle_joint'),
    *(f'right_{name}_joint' for name in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow')),
    *(f'left_{name}_joint' for name in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow')),
]
H1_2 = [
    *_both('hip_yaw hip_pitch hip_roll knee ankle_pitch ankle_roll'),
    'torso_joint',
    *_both('shoulder_pitch shoulder_roll shoulder_yaw elbow wrist_roll wrist_pitch wrist_yaw'),
]
MOTORS: dict[str, list[str]] = {
    'h1_2': H1_2,
    'go2w': WHEELED,
    'b2w': WHEELED,
    'go2': QUADRUPED,
    'go1': QUADRUPED,
    'b2': QUADRUPED,
    'a1': QUADRUPED,
    'g1': G1,
    'h1': H1,
}
DEEP = 6  # parts of a path that may name the robot


@dataclass(frozen=True)
class Motors:
    """Names of a robot's motors by index; '' where an index is not used."""

    robot: str
    names: tuple[str, ...]
    why: str


def find_motors(
    source: Path, hints: Hints, indices: Sequence[int], pose: Sequence[float], named: str | None = None
) -> Motors | None:
    """Return the motors that a list of motor indices refers to, or None where it is not certain whose they are.

    Args:
        source: its path may name the robot: deploy/robots/g1/config/...
        hints: the robot's name and the joint names that the user gave, in motor order.
        indices: motor of each joint of the policy.
        pose: default position of each joint of the policy, rad; tells a quadruped from two legs.
        named: what the source itself says of the robot.
    """
    if hints.joints is not None:
        given = f'the joint names that the user gave, as the order of the motors ({len(hints.joints)})'
        return Motors(hints.robot or 'robot', hints.joints, given) if max(indices) < len(hints.joints) else None
    for word, where in _words(source, hints, named):
        if word in MOTORS and _has(MOTORS[word], indices):
            return Motors(word, tuple(MOTORS[word]), f'{where} names the robot {word}; its motor order: {SOURCE}')
    return _by_count(indices, pose)


def _by_count(indices: Sequence[int], pose: Sequence[float]) -> Motors | None:
    count, highest = len(indices), max(indices)
    if (count, highest) == (29, 28) or (count, highest) == (23, 26):
        return Motors('g1', tuple(G1), f'{count} motors up to {highest} are those of the G1; their order: {SOURCE}')
    if (count, highest) == (19, 19):
        return Motors('h1', tuple(H1), f'19 motors without number 9 are those of the H1; their order: {SOURCE}')
    if (count, highest) == (12, 11) and all(pose[i] < -0.5 for i in range(12) if indices[i] % 3 == 2):
        why = (
            f'12 motors, of which every third rests below -0.5 rad like a calf, are those of a quadruped; their order: {SOURCE}'
        )
        return Motors('go2', tuple(QUADRUPED), why)
    return None


def _has(motors: Sequence[str], indices: Sequence[int]) -> bool:
    return max(indices) < len(motors) and all(motors[i] for i in indices)


def _words(source: Path, hints: Hints, named: str | None) -> list[tuple[str, str]]:
    """Return the words that may name a robot, the most telling first, with where they stand."""
    places = [(hints.robot, '--robot')] if hints.robot else []
    places += [(named, f'the file ({named})')] if named else []
    places += [(part, f'the path ({part})') for part in reversed(source.resolve().parts[-DEEP:])]
    found = []
    for text, where in places:
        text = text.lower()
        found += [(name, where) for name in MOTORS if '_' in name and name in text]
        found += [(word, where) for word in re.split(r'[^a-z0-9]+', text)]
    return found
