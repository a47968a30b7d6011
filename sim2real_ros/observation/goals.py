# SPDX-License-Identifier: Apache-2.0
"""`Goals`: the goal pose as the contract wants it, and the one that counts before the operator has given any."""

from __future__ import annotations

import numpy as np

from sim2real_ros.contract.contract import Contract

TO_WXYZ = [0, 1, 2, 6, 3, 4, 5]


class Goals:
    """Puts goal poses, (*batch, 7) m and quaternion x, y, z, w, into the quaternion order of the contract."""

    def __init__(self, contract: Contract, batch: tuple[int, ...]) -> None:
        pose = contract.file.commands.pose
        self._initial = None if pose is None else np.broadcast_to(np.array(pose.initial), (*batch, 7))
        self._turned = pose is not None and pose.quaternion == 'wxyz'

    def of(self, goal: np.ndarray | None) -> np.ndarray | None:
        """Return the goal of this tick; None where the contract takes none."""
        if goal is None or self._initial is None:
            return self._initial
        return goal[..., TO_WXYZ] if self._turned else goal
