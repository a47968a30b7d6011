# SPDX-License-Identifier: Apache-2.0
"""TorchScript to ONNX, with the optional extra `torch`.

A recurrent module hides its state in buffers (hidden_state, cell_state); exported as it is, the state would freeze at zero. It
gets explicit inputs and outputs here. Either way the ONNX file is compared with the original over 200 ticks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_ros.contract.importers.recurrent import STATES, find_recurrent
from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import DependencyError, ModelFileError

TICKS = 200
TOLERANCE = 1e-4
OPSET = 17


def to_onnx(path: Path, target: Path, width: int | None = None) -> Path:
    """Write the ONNX form of a TorchScript policy and check it; returns `target`.

    Tensors are named obs and actions; a recurrent module has h_in, c_in and h_out, c_out besides.

    Args:
        path: the TorchScript file.
        target: the ONNX file.
        width: of the observation; found from the weights when left out.

    Raises:
        DependencyError: torch is not installed.
        ModelFileError: not a TorchScript module, or one that cannot be converted faithfully.
    """
    torch = _torch(path)
    module = _load(torch, path)
    width = width or _width(torch, module, path)
    hidden = [name for name, _ in module.named_buffers() if name in STATES]
    if hidden:
        cell = find_recurrent(torch, module, path)
        state = [torch.zeros(cell.state_shape) for _ in cell.cells]
        _export(torch, cell.module, (torch.zeros(1, width), *state), target, cell.inputs, cell.outputs, path)
        _compare(torch, module, target, width, cell.inputs[1:], path)
    else:
        _export(torch, module, (torch.zeros(1, width),), target, ['obs'], ['actions'], path)
        _compare(torch, module, target, width, [], path)
    return target


def _torch(path: Path) -> Any:
    try:
        import torch  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise DependencyError(
            f'{path} is a TorchScript file; to convert it to ONNX install the extra: pip install "sim2real_ros[torch]" '
            '(or export ONNX in the trainer)'
        ) from None
    torch.set_num_threads(1)
    return torch


def _load(torch: Any, path: Path) -> Any:
    read_model(path)  # missing, empty, a Git-LFS pointer
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return torch.jit.load(str(path), map_location='cpu').eval()
    except Exception as error:  # torch raises RuntimeError, UnpicklingError and others for the same mistake
        raise ModelFileError(
            f'{path} is not a TorchScript module, or a damaged one. A training checkpoint (weights alone) cannot be run: '
            f'export the policy in the trainer, as its play script does (torch: {" ".join(str(error).split())[:160]})'
        ) from None


def _width(torch: Any, module: Any, path: Path) -> int:
    """Return the width of the observation: that of the first weight with which the module runs."""
    candidates = dict.fromkeys(int(value.shape[1]) for _, value in module.state_dict().items() if value.dim() == 2)
    for width in candidates:
        try:
            _restart(module)
            with torch.no_grad():
                module(torch.zeros(1, width))
        except Exception:  # noqa: S112 - the module says in words of its own that the width is wrong
            continue
        return width
    raise ModelFileError(
        f'{path}: the width of the observation cannot be told from the weights '
        f'({", ".join(map(str, candidates)) or "none"} fail); '
        'the module must take one tensor (1, n) and return one (1, m)'
    )


def _restart(module: Any) -> None:
    """Put the state of a module to zero, by its own method where it has one, and in the buffers that are known."""
    for name in ('reset_memory', 'reset'):
        if hasattr(module, name):
            getattr(module, name)()
            break
    for name, buffer in module.named_buffers():
        if name in STATES:
            buffer.detach().zero_()


def _export(
    torch: Any, module: Any, sample: tuple[Any, ...], target: Path, inputs: list[str], outputs: list[str], path: Path
) -> None:
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter('ignore')
            torch.onnx.export(
                module, sample, str(target), input_names=inputs, output_names=outputs, opset_version=OPSET, dynamo=False
            )
    except ImportError as error:
        raise DependencyError(f'the conversion of {path} needs the package {error.name}: pip install {error.name}') from None
    except Exception as error:  # whatever the exporter meets in a graph that it cannot express
        raise ModelFileError(
            f'{path} cannot be exported to ONNX: {" ".join(str(error).split())[:300]}. Export it in the trainer instead'
        ) from None


def _compare(torch: Any, module: Any, target: Path, width: int, states: list[str], path: Path) -> None:
    """Run both over the same ticks; a difference means state that is hidden elsewhere, or a faulty export."""
    run = _runner(target, states)
    _restart(module)
    worst = 0.0
    for row in np.random.default_rng(0).normal(size=(TICKS, 1, width)).astype(np.float32):
        with torch.no_grad():
            wanted = module(torch.from_numpy(row)).numpy()
        worst = max(worst, float(np.abs(run(row) - wanted).max()))
    if not worst <= TOLERANCE:
        buffers = ', '.join(name for name, _ in module.named_buffers()) or 'none'
        raise ModelFileError(
            f'{path}: its ONNX form differs by {worst:.3g} within {TICKS} ticks. The module keeps state that an export freezes '
            f'(buffers: {buffers}); export ONNX with explicit state in the trainer'
        )


def _runner(target: Path, states: list[str]) -> Callable[[np.ndarray], np.ndarray]:
    from sim2real_ros.policy.network import open_session  # noqa: PLC0415 - onnxruntime only where a network is run

    session = open_session(target)
    shapes = {tensor.name: tensor.shape for tensor in session.get_inputs()}
    carried = {name: np.zeros(shapes[name], np.float32) for name in states}

    def run(row: np.ndarray) -> np.ndarray:
        outputs = session.run(None, {'obs': row, **carried})
        carried.update(zip(states, outputs[1:], strict=True))
        return outputs[0]

    return run
