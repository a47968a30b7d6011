# SPDX-License-Identifier: Apache-2.0
"""Small studies of the shipped policy for the tests of the validation."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from sim2real_ros.contract import Contract, load_contract
from sim2real_ros.document import validate
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import load_robot
from sim2real_ros.validation.episodes import Trial
from sim2real_ros.validation.schema import ValidationFile, load_validation


def level(seconds: float = 2.0, ranges: dict[str, Any] | None = None, **changes: Any) -> ValidationFile:
    """Return the standard level with short episodes; `ranges` replaces some of its ranges, or all when it is {}."""
    document = load_validation('standard')[0].model_dump(by_alias=True)
    document |= {'episode_s': seconds, 'command_s': 2.0, **changes}
    if ranges is not None:
        document['ranges'] = {**document['ranges'], **ranges} if ranges else {}
    return validate(ValidationFile, document, 'level')


@cache
def _prepared(seed: int) -> Trial:
    return Trial.of(level(), load_robot('go2'), load_contract('go2_velocity'), seed)


def trial(seed: int = 1, **changes: Any) -> Trial:
    """Return the shipped policy's trial; `changes` as in `level`."""
    return replace(_prepared(seed), level=level(**changes))


def deadly(task: int) -> int:
    """Work that kills its worker at task 3."""
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def refuse(why: str, task: int) -> None:
    """Work that is a user's mistake."""
    raise DocumentError(f'{why} {task}', ['it is not there'])


def lagged(contract: Contract, folder: Path, lags: int = 6) -> Contract:
    """Return a policy that is given a history and uses its newest frame alone: the shipped network behind a slice."""
    model = onnx.load(contract.model_path)
    graph, (tensor,) = model.graph, model.graph.input
    width = tensor.type.tensor_type.shape.dim[1].dim_value
    inner = f'{tensor.name}_now'
    for node in graph.node:
        node.input[:] = [inner if name == tensor.name else name for name in node.input]
    for name, value in (('_begin', (lags - 1) * width), ('_end', lags * width), ('_axis', 1)):
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    graph.node.insert(0, helper.make_node('Slice', [tensor.name, '_begin', '_end', '_axis'], [inner]))
    tensor.type.tensor_type.shape.dim[1].dim_value = lags * width
    onnx.save(model, folder / 'policy.onnx')
    document = json.loads(contract.to_json()) | {'golden': None, 'model': {'file': 'policy.onnx'}}
    document.pop('novelty', None)
    stack = document['inputs'][tensor.name]['stack']
    document['inputs'][tensor.name]['stack'] = stack | {'lags': [*range(lags)][::-1], 'layout': 'frame_major'}
    path = folder / 'policy.yaml'
    path.write_text(json.dumps(document), encoding='utf-8')
    return load_contract(path)
