# SPDX-License-Identifier: Apache-2.0
"""Left-right symmetry: the mirror image of everything a robot saw and did is experience too.

Every mirrored quantity is a permutation and a sign; `Mirror` builds both from joint names, so that it holds for any
robot whose left and right joints differ by a letter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tensordict import TensorDict

from sim2real_ros.observation import ObservationBuilder

SIGNS = {
    'base_ang_vel': (-1, 1, -1),
    'projected_gravity': (1, -1, 1),
    'velocity_command': (1, -1, -1),
    'base_lin_vel': (1, -1, 1),
}


def swap_side(joint: str) -> str:
    """Return the joint on the other side: FL_... <-> FR_..., RL_... <-> RR_..."""
    return joint[0] + {'L': 'R', 'R': 'L'}[joint[1]] + joint[2:]


def joint_mirror(joints: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return permutation and sign of joint values; hips swing sideways, so their sign turns."""
    index = np.array([joints.index(swap_side(joint)) for joint in joints])
    return index, np.array([-1.0 if 'hip' in joint else 1.0 for joint in joints])


def observation_mirror(builder: ObservationBuilder, name: str, joints: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return permutation and sign of a frame of observation `name`."""
    index, sign = joint_mirror(joints)
    indices, signs = [], []
    for slot in builder.slots[name]:
        width = slot.stop - slot.start
        if slot.name in SIGNS:
            own_index, own_sign = np.arange(width), np.array(SIGNS[slot.name], dtype=float)
        elif slot.name == 'phase':  # left and right are half a period apart, which turns sine and cosine
            own_index, own_sign = np.arange(width), -np.ones(width)
        else:
            own_index, own_sign = index, sign
        indices.append(slot.start + own_index)
        signs.append(own_sign)
    return np.concatenate(indices), np.concatenate(signs)


class Mirror:
    """The augmentation function of rsl_rl: appends the mirror image to a batch."""

    def __init__(self, observations: dict[str, tuple[np.ndarray, np.ndarray]], action: tuple[np.ndarray, np.ndarray]) -> None:
        """Take (permutation, sign) for each observation group and for the action."""
        self._groups = {name: self._tensors(pair) for name, pair in observations.items()}
        self._action = self._tensors(action)

    def __call__(self, env: Any, obs: TensorDict | None, actions: torch.Tensor | None) -> tuple[Any, Any]:
        """Return observations and actions, twice as many of each."""
        both = None
        if obs is not None:
            groups = {name: torch.cat((obs[name], obs[name][:, i] * s)) for name, (i, s) in self._groups.items()}
            both = TensorDict(groups, batch_size=[2 * obs.batch_size[0]])
        index, sign = self._action
        return both, None if actions is None else torch.cat((actions, actions[:, index] * sign))

    @staticmethod
    def _tensors(pair: tuple[np.ndarray, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(pair[0]), torch.from_numpy(pair[1].astype(np.float32))
