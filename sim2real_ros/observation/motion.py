# SPDX-License-Identifier: Apache-2.0
"""`MotionTracker`: the reference motion at every tick, from the network's tick before or from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Motion
from sim2real_ros.errors import ModelFileError
from sim2real_ros.observation.anchor import Alignment, AnchorChain
from sim2real_ros.observation.moment import Reference
from sim2real_ros.observation.motion_file import MotionFile
from sim2real_ros.rotations import inverse_xyzw, multiply_xyzw, world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import RobotState

Told = Mapping[str, np.ndarray]  # (*batch, width) by quantity: joint_pos, joint_vel, anchor_pos, anchor_quat


class MotionTracker:
    """Holds the reference of a contract, for a batch of robots.

    A network that plays its motion tells at tick k what the observation of tick k + 1 needs. For the first tick it is asked
    beside the loop, through `query`.
    """

    def __init__(self, contract: Contract, motion: Motion, query: Callable[[], Told], batch: tuple[int, ...] = ()) -> None:
        """Load the motion.

        Args:
            contract: of the policy.
            motion: its reference motion.
            query: returns what the network would tell at its next tick.
            batch: shape of the batch of robots; () for one.

        Raises:
            ModelFileError: the file of the motion is missing or damaged.
        """
        if motion.source == 'file' and contract.folder is None:
            raise ModelFileError(f'{contract.source} names the motion {motion.file}, but no folder that it lies in')
        self._file = MotionFile(contract, motion) if motion.source == 'file' else None
        self._query, self._xyzw = query, motion.quaternion == 'xyzw'
        self._anchored = motion.anchor is not None and 'anchor_quat' in motion.quantities
        self._chain, self._alignment = AnchorChain(contract), Alignment(batch, motion.align_heading)
        self._told: dict[str, np.ndarray] = {}
        self._fresh, self._any_fresh = np.ones(batch, dtype=bool), True

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Begin anew, for the robots in `mask` (batch-shaped bool) or for all."""
        self._fresh |= np.ones_like(self._fresh) if mask is None else mask
        self._any_fresh = True
        self._alignment.reset(mask)

    def hear(self, told: Told) -> None:
        """Take what the network told in this tick, for the next one."""
        self._told = dict(told)

    def tick(self, state: RobotState, time: np.ndarray) -> Reference:
        """Return the reference of this tick.

        Args:
            state: joints in policy order.
            time: (*batch, 1) s since the activation.
        """
        if self._file is not None:
            told = self._file.at(time[..., 0])
        else:
            if self._any_fresh:
                self._ask()
            told = self._told
        pos, quat = self._seen_from_anchor(told, state) if self._anchored else (None, None)
        return Reference(told.get('joint_pos'), told.get('joint_vel'), pos, quat)

    def _ask(self) -> None:
        asked, fresh = self._query(), self._fresh[..., None]
        self._told = {name: np.where(fresh, values, self._told.get(name, values)) for name, values in asked.items()}
        self._fresh, self._any_fresh = np.zeros_like(self._fresh), False

    def _seen_from_anchor(self, told: Told, state: RobotState) -> tuple[np.ndarray | None, np.ndarray]:
        """Return where the reference's anchor is and how it is turned, seen from the robot's: m, quaternion xyzw."""
        theirs = told['anchor_quat'] if self._xyzw else xyzw_from_wxyz(told['anchor_quat'])
        ours = self._chain.orientation_xyzw(state.base_quat_xyzw, state.joint_pos)
        target = told.get('anchor_pos')
        self._alignment.begin(ours, theirs, state.base_pos, target)
        quat = multiply_xyzw(inverse_xyzw(ours), self._alignment.quat(theirs))
        if target is None or state.base_pos is None:
            return None, quat
        return world_to_base(ours, self._alignment.pos(target) - state.base_pos), quat
