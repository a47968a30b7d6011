# SPDX-License-Identifier: Apache-2.0
"""What the result of an episode depends on, as hashes and versions: two studies with one fingerprint have the same episodes."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path

import sim2real_ros
from sim2real_ros.validation.episodes import Trial

ENGINE = 2  # of our own code: raised when an episode comes out otherwise than before
PACKAGES = ('mujoco', 'numpy', 'onnxruntime', 'scipy')
DIGITS = 16


def fingerprint(trial: Trial) -> dict[str, str]:
    """Return name by name what the episodes of a study follow from; the number of episodes and the claim are no part of it."""
    robot, level = trial.robot, trial.level
    return {
        'policy': trial.contract.file.name,
        'contract': trial.contract.id,  # includes the network's hash
        'model': (trial.contract.file.model.sha256 or '')[:DIGITS],
        'robot': robot.name + (f' ({robot.profile})' if robot.profile else ''),
        'robot_file': _file(robot.path),
        'urdf': _file(robot.urdf),
        'level': level.name,
        'ranges': _text(level.model_dump_json(exclude={'episodes', 'claim', 'name', 'passport', 'schema_'})),
        'seed': str(trial.seed),
        'engine': f'{sim2real_ros.__version__}, engine {ENGINE}',
        'packages': ', '.join(f'{name} {version(name)}' for name in PACKAGES),
        'machine': platform.machine(),
    }


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return a line for each field in which two fingerprints differ."""
    names = dict.fromkeys((*one, *other))
    return [f'{n}: {one.get(n, "nothing")} there, {other.get(n, "nothing")} here' for n in names if one.get(n) != other.get(n)]


def _file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


def _text(text: str) -> str:
    return hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest()[:DIGITS]
