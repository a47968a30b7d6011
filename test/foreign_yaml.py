# SPDX-License-Identifier: Apache-2.0
"""Policies of trainers that write YAML, for the tests of their importers: small ones made here, and public ones."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from makers import make_onnx, write_yaml
from traces import differences, load_trace, replay_all

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.importers import import_policy

LEGS = ['FR', 'FL', 'RR', 'RL']
SDK = [f'{leg}_{part}_joint' for leg in LEGS for part in ('hip', 'thigh', 'calf')]
SWAP = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]  # policy FL FR RL RR, motors FR FL RR RL
POSE = [0.1, 0.8, -1.5] * 4


def term(scale: Any = None, clip: Any = None, length: int = 1, **params: Any) -> dict[str, Any]:
    """Return a term of a deploy.yaml."""
    return {'params': params, 'clip': clip, 'scale': scale, 'history_length': length}


DEPLOY: dict[str, Any] = {
    'joint_ids_map': SWAP,
    'step_dt': 0.02,
    'stiffness': [float(i + 1) for i in range(12)],  # of motor i
    'damping': [0.5] * 12,
    'default_joint_pos': POSE,
    'commands': {'base_velocity': {'ranges': {'lin_vel_x': [-1.0, 1.0], 'lin_vel_y': [-0.4, 0.4], 'ang_vel_z': [-1.0, 1.0]}}},
    'actions': {'JointPositionAction': {'clip': None, 'scale': [0.25] * 12, 'offset': POSE, 'joint_ids': None}},
    'observations': {
        'base_ang_vel': term([0.2] * 3),
        'projected_gravity': term(),
        'velocity_commands': term(),
        'joint_pos_rel': term(),
        'joint_vel_rel': term([0.05] * 12),
        'last_action': term(),
    },
}
SAR_BASE: dict[str, Any] = {
    'dt': 0.005,
    'decimation': 4,
    'num_of_dofs': 12,
    'joint_names': SDK,
    'default_dof_pos': [0.0] * 12,
    'joint_mapping': list(range(12)),
}
SAR: dict[str, Any] = {
    'model_name': 'policy.onnx',
    'num_observations': 45,
    'observations': ['ang_vel', 'gravity_vec', 'commands', 'dof_pos', 'dof_vel', 'actions'],
    'observations_history': [],
    'observations_history_priority': 'time',
    'clip_obs': 100.0,
    'clip_actions_lower': [-100.0] * 12,
    'clip_actions_upper': [100.0] * 12,
    'rl_kp': [20.0] * 12,
    'rl_kd': [0.5] * 12,
    'action_scale': [0.125, 0.25, 0.25] * 4,
    'wheel_indices': [],
    'lin_vel_scale': 2.0,
    'ang_vel_scale': 0.25,
    'dof_pos_scale': 1.0,
    'dof_vel_scale': 0.05,
    'commands_scale': [2.0, 2.0, 0.25],
    'default_dof_pos': POSE,
    'joint_mapping': SWAP,
}
GYM: dict[str, Any] = {
    'policy_path': '{LEGGED_GYM_ROOT_DIR}/deploy/pre_train/g1/policy.onnx',
    'simulation_dt': 0.002,
    'control_decimation': 10,
    'kps': [100.0] * 12,
    'kds': [2.0] * 12,
    'default_angles': [-0.1, 0.0, 0.0, 0.3, -0.2, 0.0] * 2,
    'ang_vel_scale': 0.25,
    'dof_pos_scale': 1.0,
    'dof_vel_scale': 0.05,
    'action_scale': 0.25,
    'cmd_scale': [2.0, 2.0, 0.25],
    'num_actions': 12,
    'num_obs': 47,
    'cmd_init': [0.5, 0, 0],
}
LEGGED: dict[str, Any] = {
    'model_path': 'src/policies/policy.onnx',
    'input_dim': 45,
    'output_dim': 12,
    'policy_dt': 0.02,
    'joint_ids_map': SWAP,
    'stiffness': [20.0] * 12,
    'damping': [0.5] * 12,
    'commands': {'base_velocity': {'process_order': ['clip'], 'min': [-0.5, -0.4, -1.0], 'max': [1.0, 0.4, 1.0]}},
    'actions': {'JointPositionAction': {'process_order': ['scale', 'offset'], 'scale': 0.25, 'offset': POSE}},
    'observations': {
        'terms': {
            'base_ang_vel_B': {'process_order': ['scale'], 'scale': 0.25},
            'projected_gravity': None,
            'velocity_commands': None,
            'joint_pos': {'process_order': ['offset'], 'offset': [-value for value in POSE]},
            'joint_vel': {'process_order': ['scale', 'clip'], 'scale': 0.05, 'min': -100.0, 'max': 100.0},
            'last_action': None,
        }
    },
}


def deploy(folder: Path, width: int = 45, data: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Write a policy of unitree_rl_lab and return its folder."""
    (folder / 'params').mkdir(parents=True)
    (folder / 'exported').mkdir()
    make_onnx(folder / 'exported' / 'policy.onnx', {'obs': width}, {'actions': 12})
    write_yaml(folder / 'params' / 'deploy.yaml', copy.deepcopy(data or DEPLOY) | changes)
    return folder


def sar(folder: Path, width: int = 45, outputs: int = 12, **changes: Any) -> Path:
    """Write a policy of rl_sar and return its folder."""
    (folder / 'walk').mkdir(parents=True)
    write_yaml(folder / 'base.yaml', {'dog': copy.deepcopy(SAR_BASE)})
    write_yaml(folder / 'walk' / 'config.yaml', {'dog/walk': copy.deepcopy(SAR) | changes})
    make_onnx(folder / 'walk' / 'policy.onnx', {'input': width}, {'output': outputs})
    return folder


def gym(folder: Path, width: int = 47, name: str = 'g1', **changes: Any) -> Path:
    """Write a policy of unitree_rl_gym (deploy_mujoco) and return its folder."""
    folder.mkdir(parents=True)
    joints = changes.get('num_actions')
    make_onnx(folder / 'policy.onnx', {'obs': width}, {'actions': joints if joints == 10 else 12})
    write_yaml(folder / f'{name}.yaml', copy.deepcopy(GYM) | changes)
    return folder


def legged(folder: Path, width: int = 45, **changes: Any) -> Path:
    """Write a policy of legged_rl_deploy and return its folder."""
    folder.mkdir(parents=True)
    make_onnx(folder / 'policy.onnx', {'obs': width}, {'actions': 12})
    data = {
        'llc_config_file': 'src/unitree_lowlevel/config/go2.yaml',
        'll_dt': 0.005,
        'policy': copy.deepcopy(LEGGED) | changes,
    }
    write_yaml(folder / 'config.yaml', data)
    return folder


def fields(contract: Contract) -> set[str]:
    """Return the fields that were assumed."""
    return {one.field for one in contract.file.assumptions}


def public(third_party: Path, tmp_path: Path, name: str, **options: Any) -> tuple[Contract, dict[str, Any]]:
    """Import a public policy; return its contract and the specification by which it was recorded."""
    contract = import_policy(third_party / name, tmp_path / name, **options)
    return contract, json.loads((third_party / name / 'spec.json').read_text(encoding='utf-8'))


def against_trace(contract: Contract, folder: Path) -> tuple[float, float]:
    """Return the largest difference of the observations and of the targets to the recorded ones."""
    trace = load_trace(folder)
    built, targets = replay_all(contract, trace)
    order = [contract.joints.index(joint) for joint in trace.policy_joints]
    positions = np.stack([target.position for target in targets])[:, order]
    return max(differences(built, trace).values()), float(np.abs(positions - trace.targets).max())
