# SPDX-License-Identifier: Apache-2.0
"""What differs from episode to episode: low-discrepancy coordinates for the scalars, an own generator for everything else.

Every episode has coordinates in [0, 1], one per scalar, from a scrambled Sobol sequence of its scenario, and a random
stream of its own. Both follow from (seed, scenario, index) alone: the draws of an episode are the same in every batch, in
every worker and for every policy, which is what makes two policies comparable on paired seeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from sim2real_ros.contract import Contract
from sim2real_ros.errors import DependencyError
from sim2real_ros.robot import Robot
from sim2real_ros.validation.schema import RangesSection, ScenarioSection, ValidationFile

# scalars with coordinates of their own, by how many each has; the order is part of every seed: append only
COORDINATES = {
    'friction': 1, 'payload_kg': 1, 'centre_of_mass_m': 3, 'armature_factor': 1, 'action_delay_s': 1, 'command_delay_s': 1,
    'joint_delay_s': 1, 'imu_delay_s': 1, 'dropped': 1, 'gyro_bias_rad_s': 3, 'imu_mount_rad': 2, 'push_speed_m_s': 1,
    'push_turn_rad_s': 1, 'force_n': 1, 'slope_rad': 1, 'slope_direction_rad': 1, 'force_direction_rad': 1, 'yaw_rad': 1,
}  # fmt: skip
PER_JOINT = (
    'motor_strength_factor', 'stiffness_factor', 'damping_factor', 'joint_friction_factor', 'joint_damping_factor',
    'joint_offset_rad', 'start_joint_rad',
)  # fmt: skip
ANGLES = {'slope_direction_rad': (-np.pi, np.pi), 'force_direction_rad': (-np.pi, np.pi), 'yaw_rad': (-np.pi, np.pi)}


@dataclass(frozen=True, slots=True)
class Draws:
    """Everything that was drawn for B episodes.

    Attributes:
        indices: of the episodes in their scenario.
        values: by the names of `COORDINATES` (B,) or (B, k), of `PER_JOINT` (B, n) in robot order, and `link_mass_factor`
            (B, links), `place` (B, 2) shares of the ground where they start.
        commands: (B, m, 3) velocity commands in m/s, m/s, rad/s, one after another.
        push_s: (B, p) s, times of the pushes.
        push_rad: (B, p) their directions in the world.
    """

    indices: Sequence[int]
    values: Mapping[str, np.ndarray]
    commands: np.ndarray
    push_s: np.ndarray
    push_rad: np.ndarray

    def record(self, i: int) -> dict[str, Any]:
        """Return the draws of the i-th of them for a line of JSON."""
        every = {**self.values, 'commands': self.commands, 'push_s': self.push_s, 'push_rad': self.push_rad}
        return {name: np.asarray(values[i]).tolist() for name, values in every.items()}


def generator(seed: int, scenario: str, index: int, stream: int) -> np.random.Generator:
    """Return the generator of one episode; streams of other numbers are independent of it."""
    return np.random.default_rng([seed, zlib.crc32(scenario.encode()), index, stream])


def coordinates(seed: int, scenario: str, indices: Sequence[int]) -> np.ndarray:
    """Return the coordinates of episodes in [0, 1), (B, width).

    Raises:
        DependencyError: scipy is not installed.
    """
    return _sequence(seed, scenario, 1 << max(8, int(max(indices)).bit_length()))[np.asarray(indices)]


@lru_cache(maxsize=16)
def _sequence(seed: int, scenario: str, count: int) -> np.ndarray:
    try:
        from scipy.stats import qmc  # noqa: PLC0415 - optional
    except ImportError as error:
        raise DependencyError(f'validation needs scipy ({error}): pip install "sim2real_ros[validate]"') from None
    rng = generator(seed, scenario, 0, stream=0)
    # a longer sequence of the same scrambling begins with the shorter one
    return qmc.Sobol(width(), scramble=True, rng=rng).random(count)


def width() -> int:
    """Return the number of coordinates."""
    return sum(COORDINATES.values())


def draw(
    level: ValidationFile,
    scenario: str,
    indices: Sequence[int],
    seed: int,
    robot: Robot,
    contract: Contract,
    *,
    links: int,
    z: np.ndarray | None = None,
) -> Draws:
    """Draw episodes.

    Args:
        level: gives ranges and times.
        scenario: one of its scenarios.
        indices: (B,) of the episodes.
        seed: of the study.
        robot: gives the joints and the figure of the friction.
        contract: gives the ranges of the velocity command.
        links: number of bodies whose mass varies.
        z: (B, width) coordinates instead of the sequence's, for a search.
    """
    ranges, n = level.ranges, len(robot.joints)
    z = coordinates(seed, scenario, indices) if z is None else z
    values, column = {}, 0
    for name, k in COORDINATES.items():
        low, high = _range(name, ranges, level.scenarios[scenario], robot)
        part = np.asarray(low) + z[:, column : column + k] * (np.asarray(high) - np.asarray(low))
        values[name] = part[:, 0] if k == 1 else part
        column += k
    units = [generator(seed, scenario, index, stream=1) for index in indices]  # in this order, whatever the ranges are
    for name in PER_JOINT:
        low, high = getattr(ranges, name)
        values[name] = low + np.stack([rng.random(n) for rng in units]) * (high - low)
    low, high = ranges.link_mass_factor
    values['link_mass_factor'] = low + np.stack([rng.random(links) for rng in units]) * (high - low)
    values['place'] = np.stack([rng.random(2) for rng in units])
    commands = np.stack([_commands(level, contract, rng) for rng in units])
    push_s, push_rad = zip(*(_pushes(level, rng) for rng in units), strict=True)
    return Draws(list(indices), values, commands, np.stack(push_s), np.stack(push_rad))


def _range(name: str, ranges: RangesSection, scenario: ScenarioSection, robot: Robot) -> tuple[Any, Any]:
    if name in ANGLES:
        return ANGLES[name]
    if name == 'slope_rad':
        low, high = scenario.slope_rad
        return low, high
    if name == 'friction' and ranges.friction is None:
        return (robot.simulated().foot_friction,) * 2
    if name == 'centre_of_mass_m':
        return [-most for most in ranges.centre_of_mass_m], ranges.centre_of_mass_m
    low, high = getattr(ranges, name)
    return low, high


def _commands(level: ValidationFile, contract: Contract, rng: np.random.Generator) -> np.ndarray:
    """Return the velocity commands of one episode, (m, 3)."""
    count, velocity = int(np.ceil(level.episode_s / level.command_s)), contract.file.commands.velocity
    units, rest = rng.random((count, 3)), rng.random(count) < level.rest_share
    if velocity is None:
        return np.zeros((count, 3))
    limits = np.array([velocity.x, velocity.y, velocity.yaw])
    commands = limits[:, 0] + units * (limits[:, 1] - limits[:, 0])
    commands[rest] = 0.0
    return commands


def _pushes(level: ValidationFile, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return times (p,) in s and directions (p,) in rad of the pushes of one episode."""
    least, most = level.ranges.push_interval_s
    count = int(np.ceil(level.episode_s / least))
    return np.cumsum(rng.uniform(least, most, count)), rng.uniform(-np.pi, np.pi, count)
