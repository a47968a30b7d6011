# SPDX-License-Identifier: Apache-2.0
"""Velocity commands for training and evaluation: mixed, straight, sideways, turning and none."""

from __future__ import annotations

import numpy as np

from sim2real_ros.contract import Contract

SHARES = (0.10, 0.20, 0.10, 0.10)  # none, straight, sideways, turning; the rest is mixed


class CommandSampler:
    """Draws commands (k, 3) in m/s, m/s, rad/s from the contract's range."""

    def __init__(self, contract: Contract, rng: np.random.Generator) -> None:
        velocity = contract.file.commands.velocity
        assert velocity is not None, 'a velocity task has a velocity command'
        self._low, self._high = np.array([velocity.x, velocity.y, velocity.yaw]).T
        self._deadband, self._rng = velocity.deadband, rng

    def draw(self, k: int) -> np.ndarray:
        """Return k commands; those inside the dead band are zero."""
        commands = self._rng.uniform(self._low, self._high, (k, 3))
        kind = np.searchsorted(np.cumsum(SHARES), self._rng.uniform(size=k), side='right')
        keep = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
        commands *= keep[kind]
        commands[np.linalg.norm(commands, axis=1) < self._deadband] = 0
        return commands
