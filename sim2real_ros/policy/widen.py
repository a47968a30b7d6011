# SPDX-License-Identifier: Apache-2.0
"""A network that was exported for one robot, opened for many at once, where its graph allows that.

Most public files have a batch dimension fixed at 1. Calling them once per robot costs more than all the rest of a
simulation, so the dimension is freed in memory; whether the graph bears it (no constant shapes inside) is tried out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from sim2real_ros.policy.session import session_options
from sim2real_ros.policy.tensors import Tensor, tensors_of

TRIALS = 5  # rows of random numbers on which both must agree, bit for bit


def widened(path: Path, session: onnxruntime.InferenceSession) -> onnxruntime.InferenceSession | None:
    """Return a session of the same network with a free batch dimension, or None where it must be called once per robot.

    Args:
        path: of the file.
        session: of the file as it is; every tensor must be (1, width).
    """
    inputs, outputs = tensors_of(session.get_inputs()), tensors_of(session.get_outputs())
    if any(len(tensor.shape) != 2 or tensor.shape[0] != 1 or not isinstance(tensor.shape[1], int) for tensor in inputs):
        return None
    if any(len(tensor.shape) < 2 or tensor.shape[0] != 1 for tensor in outputs):
        return None
    try:
        import onnx  # noqa: PLC0415 - optional; without it the network is called once per robot

        model = onnx.load(str(path))
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_param = 'batch'
        del model.graph.value_info[:]  # shapes inside that the exporter wrote down
        wide = onnxruntime.InferenceSession(model.SerializeToString(), session_options(), providers=['CPUExecutionProvider'])
        return wide if _agree(session, wide, inputs) else None
    except Exception:  # whatever onnx or onnxruntime have against it: the slow way always works
        return None


def _agree(single: onnxruntime.InferenceSession, wide: onnxruntime.InferenceSession, inputs: list[Tensor]) -> bool:
    rng = np.random.default_rng(0)
    feed = {tensor.name: rng.normal(size=(TRIALS, tensor.shape[1])).astype(tensor.dtype) for tensor in inputs}
    together = wide.run(None, feed)
    for row in range(TRIALS):
        alone = single.run(None, {name: values[row : row + 1] for name, values in feed.items()})
        if not all(_same(many, one, row) for many, one in zip(together, alone, strict=True)):
            return False
    return True


def _same(many: np.ndarray, one: np.ndarray, row: int) -> bool:
    return many.shape[0] == TRIALS and many[row : row + 1].tobytes() == one.tobytes()
