# SPDX-License-Identifier: Apache-2.0
"""`Trace`: what really happened in the simulator, step by step: the truth that summaries and tests are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from sim2real_ros.sim.world import World


class Source(IntEnum):
    """Whose command acted in a step."""

    NONE = 0
    SAFETY = 1
    WATCHDOG = 2


@dataclass(frozen=True, slots=True)
class Row:
    """What acted in one physics step."""

    torque: np.ndarray  # (n,) N m, robot order
    source: Source
    mode: str  # of the safety node when it computed the torque
    command_age: float  # s, from the stamp that the command answers; NaN when it does not say
    targets_stamp: float  # s, newest stamp that the policy answered


class Trace:
    """One row per physics step, kept in memory until `save`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: list[Row] = []
        self._states: list[np.ndarray] = []
        self._feet: list[np.ndarray] = []

    def add(self, row: Row) -> None:
        """Add a row: the world's state before the step, and what acts in it."""
        world = self._world
        self._rows.append(row)
        self._states.append(np.concatenate(([world.time], world.data.qpos, world.data.qvel)))
        self._feet.append(world.foot_heights())

    def save(self, path: Path) -> None:
        """Write an npz: the fields of `Row`, time (k,), qpos, qvel in MuJoCo's layout, foot_height (k, feet), joints.

        `hinges` are the joints in the order of qpos.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        model = self._world.model
        nq, nv = model.nq, model.nv
        states = np.array(self._states).reshape(-1, 1 + nq + nv)
        with path.open('wb') as file:  # given a path, numpy adds .npz to its name where it is missing
            np.savez_compressed(
                file,
                time=states[:, 0],
                qpos=states[:, 1 : 1 + nq],
                qvel=states[:, 1 + nq :],
                torque=np.array([row.torque for row in self._rows]),
                source=np.array([row.source for row in self._rows], np.int8),
                mode=np.array([row.mode for row in self._rows]),
                command_age=np.array([row.command_age for row in self._rows]),
                targets_stamp=np.array([row.targets_stamp for row in self._rows]),
                foot_height=np.array(self._feet),
                joints=np.array(self._world.robot.joints),
                # all but the free joint of the base, whose type is 0
                hinges=np.array([model.joint(i).name for i in range(model.njnt) if model.jnt_type[i]]),
            )
