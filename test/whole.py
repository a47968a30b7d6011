# SPDX-License-Identifier: Apache-2.0
"""A contract with nearly everything that a contract can have, and the files that belong to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from makers import JOINTS, contract_data

HIPS, KNEES = [JOINTS[0], JOINTS[2]], [JOINTS[3], JOINTS[1]]
ROWS = 4
INITIAL = [0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0]
PHASE = {'period_s': 0.8, 'encoding': ['sin'], 'offsets': [0.0], 'timebase': 'policy_ticks', 'stop_at_zero_command': False}


def term(name: str, **how: Any) -> dict[str, Any]:
    return {'term': name} | how


def data_of_everything() -> dict[str, Any]:
    """Blocks, lags, subsets, offsets, a goal, the time, a motion; wheels beside integrating hips that share a tensor."""
    data = contract_data(phase=PHASE, stiffness={'.*_hip_joint': 25.0, '.*_knee_joint': 0.0}, contacts=['left', 'right'])
    now = {
        'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'},
        'terms': [
            term('base_ang_vel', lags=[2, 0]),
            term('joint_pos_rel', joints=KNEES, scale=2.0, offset=[0.5, -0.5], process=['offset', 'scale']),
            term('last_action', value='filtered'),
            term('pose_command'),
            term('time'),
            term('phase_sin'),
            term('foot_contacts'),
        ],
    }
    then = {
        'stack': {'lags': [1, 3], 'layout': 'frame_major', 'fill': 'zeros'},
        'terms': [
            term('joint_vel', scale=0.1),
            term('motion_command'),
            term('motion_anchor_pos_b'),
            term('motion_anchor_ori_b'),
        ],
    }
    data['inputs'] = {'obs': {'blocks': [now, then]}}
    common = {'scale': 0.2, 'offset': 'zeros', 'clip': [-1.0, 1.0], 'tensor': 'mu', 'filter': {'share': 0.4}}
    data['outputs'] = {
        'wheels': common | {'type': 'joint_velocity', 'joints': KNEES, 'columns': [3, 1]},
        'hips': common
        | {
            'type': 'joint_position',
            'joints': HIPS,
            'columns': [0, 2],
            'relative_to': 'last_target',
            'target_clip': {'a_hip_joint': [-1.0, 1.0]},
        },
    }
    data['commands']['pose'] = {'frame': 'world', 'quaternion': 'wxyz', 'initial': INITIAL}
    names = ('joint_pos', 'joint_vel', 'anchor_pos', 'anchor_quat')
    data['motion'] = {
        'source': 'file',
        'file': 'motion.npz',
        'rate_hz': 50.0,
        'end': 'return',
        'quantities': {name: name for name in names},
        'anchor': {'body': 'torso', 'chain': [['a_hip_joint', 'z']]},
    }
    return data


WIDTH = (6 + 2 + 4 + 7 + 1 + 1 + 2) + 2 * (4 + 8 + 3 + 6)


def write_motion(folder: Path) -> dict[str, np.ndarray]:
    """Write `motion.npz` and return its arrays."""
    rng = np.random.default_rng(7)
    quat = rng.normal(size=(ROWS, 4))
    arrays = {
        'joint_pos': rng.normal(size=(ROWS, 4)),
        'joint_vel': rng.normal(size=(ROWS, 4)),
        'anchor_pos': rng.normal(size=(ROWS, 3)),
        'anchor_quat': quat / np.linalg.norm(quat, axis=1, keepdims=True),
    }
    np.savez(folder / 'motion.npz', **arrays)
    return arrays
