# SPDX-License-Identifier: Apache-2.0
"""Policies to swap with: the shipped one under another name, altered, or as another trainer might have made it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import helper, numpy_helper

from sim2real_ros.paths import find_policy

OURS = find_policy('go2_velocity').parent
TERMS = (  # in another order, joint angles absolute, rates unscaled
    ('phase', 2), ('joint_pos', 12), ('velocity_command', 3), ('last_action', 12), ('joint_vel', 12), ('projected_gravity', 3),
    ('base_ang_vel', 3),
)  # fmt: skip


def copy_of_ours(folder: Path, **changes: object) -> Path:
    """Return a folder with our policy under another name, so that it is another policy to everybody."""
    shutil.copytree(OURS, folder)
    data = yaml.safe_load((folder / 'policy.yaml').read_text())
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data | {'name': folder.name} | changes, sort_keys=False))
    return folder


def translated(folder: Path) -> Path:
    """Return a policy that does the same with its joints backwards, another observation set and a history of two."""
    shutil.copytree(OURS, folder)
    data: dict[str, Any] = yaml.safe_load((OURS / 'policy.yaml').read_text())
    backwards = np.arange(12)[::-1]
    ours = data['inputs']['obs']['terms']
    uses = {'joint_pos': {'term': 'joint_pos'}, 'last_action': {'term': 'last_action', 'value': 'clipped'}}
    terms = [uses.get(name, {'term': name}) for name, _ in TERMS]
    stack = {'lags': [1, 0], 'layout': 'frame_major', 'fill': 'first'}
    changes = {'name': folder.name, 'model': {'file': 'policy.onnx'}, 'golden': None, 'novelty': None}
    changes |= {'joints': data['joints'][::-1], 'inputs': {'obs': {'stack': stack, 'terms': terms}}}
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data | changes, sort_keys=False))

    frame, (matrix, offset) = sum(width for _, width in TERMS), (np.zeros((94, 47)), np.zeros(47))
    begins = dict(zip((name for name, _ in TERMS), np.cumsum([0, *(width for _, width in TERMS)]), strict=False))
    column = 0
    for use in ours:
        name = use['term'].removesuffix('_rel')
        width = dict(TERMS)[name]
        order = backwards if width == 12 else np.arange(width)
        rows = frame + begins[name] + order  # of the newest frame, which is the last
        matrix[rows, column + np.arange(width)] = np.broadcast_to(use.get('scale', 1.0), width)
        if use['term'] == 'joint_pos_rel':
            offset[column : column + width] = [-data['default_position'][joint] for joint in data['joints']]
        column += width
    model = onnx.load(str(OURS / 'policy.onnx'))
    graph = model.graph
    graph.node[0].input[0], graph.node[-1].output[0] = 'ours', 'forwards'
    graph.node.insert(0, helper.make_node('Gemm', ['obs', 'to_ours', 'offset'], ['ours']))
    graph.node.append(helper.make_node('Gather', ['forwards', 'backwards'], ['actions'], axis=1))
    constants = {'to_ours': matrix.astype(np.float32), 'offset': offset.astype(np.float32), 'backwards': backwards.copy()}
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in constants.items())
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 94
    onnx.save(model, str(folder / 'policy.onnx'))
    return folder


def seasick(folder: Path) -> Path:
    """Return a policy that does the same until the robot has turned by 60 degrees, where it computes NaN."""
    shutil.copytree(OURS, folder)
    data: dict[str, Any] = yaml.safe_load((OURS / 'policy.yaml').read_text())
    data |= {'name': folder.name, 'model': {'file': 'policy.onnx'}, 'golden': None, 'novelty': None}
    data['inputs']['obs']['terms'].append({'term': 'base_quat_xyzw'})
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data, sort_keys=False))
    model = onnx.load(str(OURS / 'policy.onnx'))
    graph = model.graph
    graph.node[0].input[0], graph.node[-1].output[0] = 'ours', 'well'
    graph.node.insert(0, helper.make_node('Gather', ['obs', 'first'], ['ours'], axis=1))
    graph.node.insert(1, helper.make_node('Gather', ['obs', 'yaw'], ['z'], axis=1))
    graph.node.extend(
        [
            helper.make_node('Abs', ['z'], ['turned']),
            helper.make_node('Sub', ['half', 'turned'], ['left']),
            helper.make_node('Sqrt', ['left'], ['root']),
            helper.make_node('Mul', ['root', 'nothing'], ['illness']),
            helper.make_node('Add', ['well', 'illness'], ['actions']),
        ]
    )
    constants = {'first': np.arange(47), 'yaw': np.array([49]), 'half': np.float32([0.5]), 'nothing': np.float32([0.0])}
    graph.initializer.extend(numpy_helper.from_array(np.asarray(values), name) for name, values in constants.items())
    graph.input[0].type.tensor_type.shape.dim[1].dim_value = 51
    onnx.save(model, str(folder / 'policy.onnx'))
    return folder
