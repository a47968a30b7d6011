# SPDX-License-Identifier: Apache-2.0
"""Small files as Isaac Lab writes them, for the tests of its importers."""

from __future__ import annotations

import copy

import yaml
from foreign import write_network

ROBOT = ['wheel', 'a_hip', 'a_knee']  # of the simulator
JOINTS = ['a_hip', 'a_knee']  # of the action


def seen(name, shape, joints=None, **overloads):
    entry = {'name': name, 'full_path': f'isaaclab.envs.mdp.observations.{name}', 'mdp_type': 'Observation', 'shape': [shape]}
    entry |= {'dtype': 'torch.float32', 'extras': {'modifiers': None, 'units': '-'}}
    entry['overloads'] = {'clip': None, 'scale': None, 'history_length': 0, 'flatten_history_dim': True} | overloads
    return entry | ({'joint_names': joints} if joints else {})


DESCRIPTOR = {
    'actions': [
        {
            'name': 'joint_position_action', 'full_path': 'isaaclab.envs.mdp.actions.joint_actions.JointPositionAction',
            'mdp_type': 'Action', 'joint_names': JOINTS, 'scale': 0.5, 'offset': [0.4, -0.8], 'clip': None, 'shape': [2],
        }
    ],
    'articulations': {
        'robot': {
            'joint_names': ROBOT, 'default_joint_pos': [0.0, 0.4, -0.8], 'default_joint_stiffness': [0.0, 25.0, 30.0],
            'default_joint_damping': [1.0, 0.5, 0.6],
        }
    },
    'observations': {
        'policy': [
            seen('base_ang_vel', 3, scale=0.25, clip=[-100.0, 100.0]), seen('projected_gravity', 3),
            seen('generated_commands', 3), seen('joint_pos_rel', 2, JOINTS), seen('joint_vel_rel', 2, JOINTS[::-1]),
            seen('last_action', 2),
        ]
    },
    'scene': {'physics_dt': 0.005, 'dt': 0.02, 'decimation': 4},
}  # fmt: skip


def descriptor(**changes):
    return copy.deepcopy(DESCRIPTOR) | changes


def descriptor_run(tmp_path, data, width=15, n=2):
    folder = tmp_path / 'run'
    folder.mkdir(exist_ok=True)
    (folder / 'IO_descriptors.yaml').write_text(yaml.safe_dump(data))
    write_network(folder / 'exported' / 'policy.onnx', {'obs': (1, width)}, {'actions': (1, n)})
    return folder


LEGGED = """
sim: {dt: 0.005}
decimation: 4
scene:
  robot:
    init_state:
      rot: !!python/tuple [1.0, 0.0, 0.0, 0.0]
      joint_pos: {.*_hip: 0.1, .*_knee: -1.5}
    actuators:
      legs: {class_type: 'isaaclab.actuators:DCMotor', joint_names_expr: ['.*'], stiffness: {.*: 25.0}, damping: 0.5}
observations:
  policy:
    concatenate_terms: true
    enable_corruption: false
    history_length: null
    flatten_history_dim: true
    base_ang_vel: {func: 'isaaclab.envs.mdp.observations:base_ang_vel', params: {}, scale: 0.25, noise: null,
                   clip: !!python/tuple [-100.0, 100.0], history_length: 0}
    cmd: {func: 'isaaclab.envs.mdp.observations:generated_commands', params: {command_name: base_velocity}, history_length: 0}
    joint_pos: {func: 'isaaclab.envs.mdp.observations:joint_pos_rel', params: {}, scale: null, clip: null, history_length: 0}
    actions: {func: 'isaaclab.envs.mdp.observations:last_action', params: {}, history_length: 0}
  critic: {}
actions:
  joint_pos:
    class_type: isaaclab.envs.mdp.actions.joint_actions:JointPositionAction
    joint_names: ['.*']
    scale: {.*_hip: 0.125, .*_knee: 0.25}
    offset: 0.0
    clip: {.*_hip: !!python/tuple [-1.0, 1.0]}
    use_default_offset: true
    preserve_order: false
  gripper: null
commands:
  base_velocity:
    class_type: isaaclab.envs.mdp.commands.velocity_command:UniformVelocityCommand
    ranges: {lin_vel_x: !!python/tuple [-1.0, 2.0], lin_vel_y: [-0.5, 0.5], ang_vel_z: [-1.0, 1.0], heading: null}
"""
LEGS = ('l_hip', 'r_hip', 'l_knee', 'r_knee')
ENV_WIDTH = 3 + 3 + 4 + 4


def env_run(tmp_path, text=LEGGED, width=ENV_WIDTH, n=4):
    folder = tmp_path / 'run'
    (folder / 'params').mkdir(parents=True, exist_ok=True)
    (folder / 'params' / 'env.yaml').write_text(text)
    write_network(folder / 'exported' / 'policy.onnx', {'obs': (1, width)}, {'actions': (1, n)})
    return folder
