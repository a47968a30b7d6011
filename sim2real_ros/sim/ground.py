# SPDX-License-Identifier: Apache-2.0
"""What a simulated robot stands on: a plane, level or as a slope, or a field of bumps or steps. Heights in the world, m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real_ros.sim.model import FLOOR, import_mujoco

if TYPE_CHECKING:
    import mujoco

CELL, CELLS = 0.08, 640  # m and number of the squares along one side of a field: 51 m
BUMP, TILE = 0.24, 0.8  # m, between the random heights of rough ground, and side of a step's tile
PATCH = 6.4  # m, side of a patch of mixed ground
BASE = 1.0  # m, thickness below the lowest point
PLACES = 4.0  # m, the square in the middle of a field where robots start
SEED = 20260  # of the fields: every robot of a scenario walks on the same one, each starts somewhere else


@dataclass(frozen=True, slots=True)
class Plane:
    """Through the origin; level until a simulation tilts it."""

    def add(self, spec: mujoco.MjSpec) -> None:
        """Leave it to `build_model`, which makes one."""

    def height(self, xy: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Return the height under points (..., 2) m of the world, for planes with the unit normals (..., 3)."""
        return -(xy[..., 0] * normal[..., 0] + xy[..., 1] * normal[..., 1]) / normal[..., 2]


@dataclass(frozen=True, slots=True)
class Field:
    """Heights on a grid, (CELLS + 1, CELLS + 1) m, row by row in y."""

    heights: np.ndarray

    @classmethod
    def rough(cls, height_m: float) -> Field:
        """Return smooth bumps that reach `height_m` above and below the mean."""
        knots, rng = int(np.ceil(CELL * CELLS / BUMP)) + 2, np.random.default_rng(SEED)
        field = _between(rng.uniform(-height_m, height_m, (knots, knots)), np.arange(CELLS + 1) * CELL / BUMP)
        return cls(field)

    @classmethod
    def steps(cls, height_m: float) -> Field:
        """Return square tiles at random heights from 0 to `height_m`, one step from the other."""
        tiles, rng = int(np.ceil(CELL * CELLS / TILE)) + 1, np.random.default_rng(SEED)
        of = (np.arange(CELLS + 1) * CELL / TILE).astype(int)
        return cls(rng.uniform(0.0, height_m, (tiles, tiles))[np.ix_(of, of)])

    @classmethod
    def mixed(cls, bump_m: float, step_m: float) -> Field:
        """Return patches of level, rough and stepped ground side by side, each `PATCH` wide."""
        rng, patches = np.random.default_rng(SEED), int(np.ceil(CELL * CELLS / PATCH)) + 1
        of = (np.arange(CELLS + 1) * CELL / PATCH).astype(int)
        kind = rng.integers(0, 3, (patches, patches))[np.ix_(of, of)]
        return cls(np.choose(kind, (np.zeros_like(kind, float), cls.rough(bump_m).heights, cls.steps(step_m).heights)))

    def add(self, spec: mujoco.MjSpec) -> None:
        """Put it into a model under the name of the floor."""
        mujoco = import_mujoco()
        low, high, half = float(self.heights.min()), float(self.heights.max()), 0.5 * CELL * CELLS
        rise = max(high - low, 1e-6)
        spec.add_hfield(
            name='ground', size=[half, half, rise, BASE], nrow=CELLS + 1, ncol=CELLS + 1,
            userdata=((self.heights - low) / rise).ravel().astype(np.float32),
        )  # fmt: skip
        spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname='ground', pos=[0, 0, low])

    def height(self, xy: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Return the height under points (..., 2) m of the world; `normal` is a plane's and does not count."""
        del normal
        at = np.clip(xy / CELL + 0.5 * CELLS, 0.0, CELLS - 1e-9)
        cell = at.astype(int)
        u, v = np.moveaxis(at - cell, -1, 0)
        column, row = np.moveaxis(cell, -1, 0)
        h = self.heights
        low = (1 - u) * h[row, column] + u * h[row, column + 1]
        return (1 - v) * low + v * ((1 - u) * h[row + 1, column] + u * h[row + 1, column + 1])


Ground = Plane | Field  # what `build_model` takes


def _between(knots: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return bilinear values between knots, at the places `at` (m,) along both axes, (m, m)."""
    cell = at.astype(int)
    share = at - cell
    rows = knots[cell] * (1 - share)[:, None] + knots[cell + 1] * share[:, None]
    return rows[:, cell] * (1 - share) + rows[:, cell + 1] * share
