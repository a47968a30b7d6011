# SPDX-License-Identifier: Apache-2.0
"""Drawn parameters one by one, as plots and people want them: a number each, a name, a unit, and the range they came from.

What is drawn per joint, link or axis becomes one parameter for each; of the velocity commands the largest per axis counts.
Directions and places are left out: nothing that a robot feels depends on them alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim2real_ros.validation.draws import PER_JOINT
from sim2real_ros.validation.schema import ValidationFile

OUT_OF_QUESTION = ('place', 'push_s', 'push_rad', 'yaw_rad', 'force_direction_rad', 'slope_direction_rad')
PER_LINK = 'link_mass_factor'
AXES = ('x', 'y', 'z')
COMMANDS = ('x', 'y', 'yaw')
COMMAND = 'command'
SUFFIXES = {  # of names, and how figures show them: unit, factor; the longer first
    '_rad_s': ('rad/s', 1.0), '_m_s': ('m/s', 1.0), '_rad': ('rad', 1.0), '_kg': ('kg', 1.0), '_s': ('ms', 1e3),
    '_m': ('m', 1.0), '_n': ('N', 1.0), '_factor': ('of nominal', 1.0), 'dropped': ('% of samples', 100.0),
}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Parameter:
    """One drawn number of an episode.

    Attributes:
        name: as in the file of the level; `command` for the velocity commands.
        part: joint, axis or link; '' where there is only one.
    """

    name: str
    part: str = ''

    @property
    def words(self) -> str:
        """Its name for people, with the part."""
        if self.name == COMMAND:
            return f'largest command, {self.part}'
        suffix = next((suffix for suffix in SUFFIXES if self.name.endswith(suffix) and suffix != self.name), '')
        words = self.name.removesuffix(suffix).replace('_', ' ')
        return f'{words}, {self.part}' if self.part else words

    @property
    def unit(self) -> str:
        """In which figures show it."""
        return self._shown[0]

    @property
    def factor(self) -> float:
        """By which its number is multiplied to be shown in `unit`."""
        return self._shown[1]

    @property
    def _shown(self) -> tuple[str, float]:
        if self.name == COMMAND:
            return ('rad/s' if self.part == 'yaw' else 'm/s'), 1.0
        return next((shown for suffix, shown in SUFFIXES.items() if self.name.endswith(suffix)), ('', 1.0))

    def show(self, value: float) -> str:
        """Return a value with its unit, for people."""
        return f'{self.factor * value:.3g} {self.unit}'.rstrip()


def parameters(draw: Mapping[str, Any], joints: Sequence[str]) -> dict[Parameter, float]:
    """Return every drawn parameter of an episode.

    Args:
        draw: of the episode, as it is written down.
        joints: (n,) of the robot, in its order.
    """
    values: dict[Parameter, float] = {}
    for name, drawn in draw.items():
        if name == 'commands':
            largest = np.abs(np.asarray(drawn, float).reshape(-1, len(COMMANDS))).max(axis=0)
            values.update((Parameter(COMMAND, axis), float(most)) for axis, most in zip(COMMANDS, largest, strict=True))
        elif isinstance(drawn, (int, float)):
            if name not in OUT_OF_QUESTION:
                values[Parameter(name)] = float(drawn)
        elif name not in OUT_OF_QUESTION:
            parts = _parts(name, len(drawn), joints)
            values.update((Parameter(name, part), float(value)) for part, value in zip(parts, drawn, strict=True))
    return values


def _parts(name: str, count: int, joints: Sequence[str]) -> Sequence[str]:
    if name == PER_LINK:
        return [f'link {i + 1}' for i in range(count)]
    return joints if name in PER_JOINT else AXES[:count]


def range_of(parameter: Parameter, level: ValidationFile, scenario: str) -> tuple[float, float] | None:
    """Return the range from which a parameter was drawn; None where the level has none for it."""
    if parameter.name == 'slope_rad':
        low, high = level.scenarios[scenario].slope_rad
        return low, high
    drawn = getattr(level.ranges, parameter.name, None)
    if drawn is None:
        return None
    if parameter.name == 'centre_of_mass_m':
        most = drawn[AXES.index(parameter.part)]
        return -most, most
    return drawn[0], drawn[1]


@dataclass(frozen=True, slots=True)
class Outlier:
    """A parameter that came out unusually close to an end of its range; to the upper one where it begins at 0.

    Attributes:
        chance: of a value at least as close to an end, by luck; for all parts of this name together.
    """

    parameter: Parameter
    value: float
    chance: float


def outliers(
    draw: Mapping[str, Any], level: ValidationFile, scenario: str, joints: Sequence[str], chance: float = 0.1
) -> list[Outlier]:
    """Return what is unusual about an episode's draws, the most unusual first: of each name the most extreme part."""
    found: dict[str, Outlier] = {}
    every = parameters(draw, joints)
    for parameter, value in every.items():
        limits = range_of(parameter, level, scenario)
        if limits is None or limits[1] <= limits[0]:
            continue
        parts = sum(other.name == parameter.name for other in every)
        below = (value - limits[0]) / (limits[1] - limits[0])
        tail = 1.0 - below if limits[0] == 0 else 2.0 * min(below, 1.0 - below)  # a delay or a push of 0 is harmless
        luck = 1.0 - (1.0 - min(1.0, max(0.0, tail))) ** parts
        if luck < min(chance, found[parameter.name].chance if parameter.name in found else 1.0):
            found[parameter.name] = Outlier(parameter, value, luck)
    return sorted(found.values(), key=lambda outlier: outlier.chance)
