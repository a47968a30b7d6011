# SPDX-License-Identifier: Apache-2.0
"""`Trace`: what really happened in the simulator, step by step: the truth that summaries and tests are made of."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import numpy as np

from sim2real_ros.sim.world import World


class Source(IntEnum):
    """Whose command acted in a step."""

    NONE = 0
    SAFETY = 1
    WATCHDOG = 2


class Trace:
    """Rows of (time, qpos, qvel, torque, source, command age), one per physics step, kept in memory until `save`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: list[np.ndarray] = []
        self._feet: list[np.ndarray] = []

    def add(self, torque: np.ndarray, source: Source, command_age: float) -> None:
        """Add the state before a step and the torque (n,) N m that acts in it."""
        world = self._world
        self._rows.append(np.concatenate(([world.time, source, command_age], world.data.qpos, world.data.qvel, torque)))
        self._feet.append(world.foot_heights())

    def save(self, path: Path) -> None:
        """Write an npz with time (k,), source, command_age, qpos, qvel (MuJoCo's layout), torque (robot order), foot_height."""
        path.parent.mkdir(parents=True, exist_ok=True)
        nq, nv, n = self._world.model.nq, self._world.model.nv, len(self._world.robot.joints)
        rows = np.array(self._rows).reshape(-1, 3 + nq + nv + n)
        time, source, age, qpos, qvel, torque = np.split(rows, np.cumsum([1, 1, 1, nq, nv]), axis=1)
        np.savez_compressed(
            path, time=time[:, 0], source=source[:, 0].astype(np.int8), command_age=age[:, 0], qpos=qpos, qvel=qvel,
            torque=torque, foot_height=np.array(self._feet), joints=np.array(self._world.robot.joints),
        )  # fmt: skip
