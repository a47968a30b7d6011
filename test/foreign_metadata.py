# SPDX-License-Identifier: Apache-2.0
"""Metadata as mjlab and holosoma write it, and kinfer archives, for the tests of their importers."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import onnx
from foreign import write_network
from onnx import TensorProto, helper, numpy_helper

from sim2real_ros.contract.importers.kinfer import MEMBERS

CSV = {
    'run_path': '/home/someone/runs/1',
    'joint_names': 'hip_joint,knee_joint',
    'joint_stiffness': '40.179,99.098',
    'joint_damping': '2.558,6.309',
    'default_joint_pos': '-0.312,0.669',
    'command_names': 'twist',
    'observation_names': 'base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command',
    'action_scale': '0.548,0.351',
}
CSV_WIDTH = 3 + 3 + 2 + 2 + 2 + 3


G1 = [
    *(f'{side}_{part}_joint' for side in ('left', 'right')
      for part in ('hip_pitch', 'hip_roll', 'hip_yaw', 'knee', 'ankle_pitch', 'ankle_roll')),
    'waist_yaw_joint', 'waist_roll_joint', 'waist_pitch_joint',
    *(f'{side}_{part}_joint' for side in ('left', 'right')
      for part in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow', 'wrist_roll', 'wrist_pitch', 'wrist_yaw')),
]  # fmt: skip


def holosoma_meta(joints, **changes):
    n = len(joints)
    values = {'dof_names': joints, 'kp': [40.179238471] * n, 'kd': [2.557889765] * n}
    values |= {'command_ranges': {'lin_vel_x': [-1.0, 1.0], 'lin_vel_y': [-0.5, 0.5], 'ang_vel_yaw': [-0.7, 0.7]}}
    return {key: json.dumps(value) for key, value in (values | changes).items() if value is not ...}


KINFER_JOINTS = ['hip', 'knee']
KINFER_INPUTS = {
    'joint_angles': (2,), 'joint_angular_velocities': (2,), 'projected_gravity': (3,), 'gyroscope': (3,), 'command': (3,),
    'carry': (2, 4),
}  # fmt: skip


def init_fn(path, carry):
    node = helper.make_node('Constant', [], ['carry'], value=numpy_helper.from_array(np.asarray(carry, np.float32)))
    output = helper.make_tensor_value_info('carry', TensorProto.FLOAT, np.shape(carry))
    onnx.save(helper.make_model(helper.make_graph([node], 'init', [], [output]), ir_version=8), str(path))
    return path


def kinfer_archive(tmp_path, inputs=KINFER_INPUTS, n=2, carry=None, extra=(), skip=(), **meta):
    write_network(tmp_path / 'step_fn.onnx', inputs, {'action': (n,), 'carry_out': (2, 4)})
    init_fn(tmp_path / 'init_fn.onnx', np.zeros((2, 4)) if carry is None else carry)
    data = {'joint_names': KINFER_JOINTS, 'num_commands': 3, 'carry_size': [2, 4]} | meta
    (tmp_path / 'metadata.json').write_text(json.dumps(data))
    path = tmp_path / 'walk.kinfer'
    with tarfile.open(path, 'w:gz') as tar:
        for name in MEMBERS:
            if name not in skip:
                tar.add(tmp_path / name, arcname=name)
        for member, content in extra:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
