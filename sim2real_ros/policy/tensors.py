# SPDX-License-Identifier: Apache-2.0
"""The tensors of an ONNX file held against its contract: names, types, widths. Every fault is listed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Counter, First, State, tensor_and_row

FLOATS: dict[str, type] = {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(float16)': np.float16}
INTEGERS: dict[str, type] = {f'tensor({kind.__name__})': kind for kind in (np.int64, np.int32, np.int16, np.int8, np.uint8)}
TYPES = FLOATS | INTEGERS | {'tensor(bool)': np.bool_}
BODY_WIDTHS = {'anchor_pos': 3, 'anchor_quat': 4}  # of the quantities of a motion that are not per joint


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output as the file declares it; dimensions that are no numbers are free."""

    name: str
    shape: list[Any]
    type: str

    @property
    def dtype(self) -> np.dtype:
        """Type in numpy."""
        return np.dtype(TYPES[self.type])

    @property
    def closed_shape(self) -> list[int]:
        """Shape with every free dimension taken as 1."""
        return [d if isinstance(d, int) else 1 for d in self.shape]

    @property
    def free_batch(self) -> bool:
        """Whether it is (batch, width) with any batch."""
        return len(self.shape) == 2 and not isinstance(self.shape[0], int)


def tensors_of(nodes: list[Any]) -> list[Tensor]:
    """Return the inputs or outputs of a session."""
    return [Tensor(node.name, node.shape, node.type) for node in nodes]


def quantities(contract: Contract) -> dict[str, tuple[str, int | None]]:
    """Return the output tensor, and the row of the anchor in it, of each quantity of a motion that the network plays."""
    motion = contract.file.motion
    if motion is None or motion.source != 'network':
        return {}
    return {name: tensor_and_row(text) for name, text in motion.quantities.items()}


def action_tensor(key: str, outputs: list[Tensor]) -> Tensor | None:
    """Return the tensor of a file that `Contract.tensors` means by `#3` or by a name; None if there is none."""
    if key.startswith('#') and key[1:].isdecimal():
        return outputs[int(key[1:])] if int(key[1:]) < len(outputs) else None
    return next((tensor for tensor in outputs if tensor.name == key), None)


def faults_of(contract: Contract, widths: Mapping[str, int], inputs: list[Tensor], outputs: list[Tensor]) -> list[str]:
    """Return all that does not fit."""
    return [
        *_name_faults(contract, inputs, outputs),
        *_input_faults(contract, widths, inputs),
        *_output_faults(contract, outputs),
    ]


def _name_faults(contract: Contract, inputs: list[Tensor], outputs: list[Tensor]) -> list[str]:
    faults = []
    names = [tensor.name for tensor in inputs]
    missing = [name for name in contract.file.inputs if name not in names]
    if missing:
        faults.append(f'input {", ".join(missing)}: not in the file; its inputs are {", ".join(names)}')
    wanted = [key for key in contract.tensors.values() if action_tensor(key, outputs) is None]
    there = [tensor.name for tensor in outputs]
    wanted += [part.state for part in contract.states.values() if part.state not in there]
    wanted += [tensor for tensor, _ in quantities(contract).values() if tensor not in there]
    if wanted:
        missing = list(dict.fromkeys(wanted))
        faults.append(f'output {", ".join(missing)}: not in the file; its outputs are {", ".join(there)}')
    unfed = [name for name in names if name not in contract.file.inputs]
    if unfed:
        faults.append(f'input {", ".join(unfed)}: the file needs it, the contract does not describe it')
    return faults


def _input_faults(contract: Contract, widths: Mapping[str, int], inputs: list[Tensor]) -> list[str]:
    faults = []
    for tensor in inputs:
        part, where = contract.file.inputs.get(tensor.name), f'input {tensor.name}'
        allowed = TYPES if isinstance(part, (State, First)) else FLOATS | INTEGERS if isinstance(part, Counter) else FLOATS
        if tensor.type not in allowed:
            faults.append(f'{where}: type {tensor.type} is not supported; supported are {", ".join(allowed)}')
        elif tensor.name in widths:
            faults += _width_faults(where, tensor, widths[tensor.name], "the contract's terms make")
        elif isinstance(part, State):
            faults += _state_faults(where, tensor, part)
        elif isinstance(part, (Counter, First)) and math.prod(tensor.closed_shape) != 1:
            faults.append(f'{where}: takes one number, the file has the shape {tensor.shape}')
    return faults


def _state_faults(where: str, tensor: Tensor, state: State) -> list[str]:
    if any(not isinstance(d, int) for d in tensor.shape[-1:]):
        return [f'{where}: the width of a state must be fixed in the file, its shape is {tensor.shape}']
    size = math.prod(tensor.closed_shape)
    if isinstance(state.initial, list) and len(state.initial) != size:
        return [f'{where}: the initial state has {len(state.initial)} numbers, the file has {size}']
    return []


def _output_faults(contract: Contract, outputs: list[Tensor]) -> list[str]:
    faults = []
    for name, action in contract.file.outputs.items():
        tensor = action_tensor(contract.tensors[name], outputs)
        if tensor is None:
            continue
        where, width = f'output {tensor.name}', tensor.shape[-1] if tensor.shape else 1
        if action.tensor is not None and action.tensor != tensor.name:
            faults.append(f'output number {action.index} is {tensor.name}, the contract calls it {action.tensor}')
        if tensor.type not in FLOATS:
            faults.append(f'{where}: type {tensor.type} is not supported; supported are {", ".join(FLOATS)}')
        elif action.columns is None:
            faults += _width_faults(where, tensor, len(contract.action_joints(action)), 'the contract has joints for')
        elif isinstance(width, int) and max(action.columns) >= width:
            faults.append(
                f'{where}: has {width} numbers, outputs.{name} asks for column {max(action.columns)} (the first is 0)'
            )
    for quantity, (name, row) in quantities(contract).items():
        faults += _quantity_faults(quantity, row, action_tensor(name, outputs), len(contract.joints))
    return faults


def _quantity_faults(quantity: str, row: int | None, tensor: Tensor | None, joints: int) -> list[str]:
    """Return why a tensor cannot be a quantity of the motion: one row of its width, or one such row per body."""
    if tensor is None:
        return []
    width, where = BODY_WIDTHS.get(quantity, joints), f'output {tensor.name}'
    if tensor.type not in FLOATS:
        return [f'{where}: type {tensor.type} is not supported; supported are {", ".join(FLOATS)}']
    size = math.prod(tensor.closed_shape)
    if isinstance(tensor.shape[-1], int) and tensor.shape[-1] != width:
        return [f'{where}: is the {quantity} of the motion, {width} numbers, the network has {tensor.shape[-1]}']
    if row is None and size > width:
        return [f'{where}: has {size // width} bodies; say which is the anchor, motion.quantities.{quantity}: {tensor.name}[0]']
    if row is not None and (row + 1) * width > size:
        return [f'{where}: has {size // width} bodies, motion.quantities.{quantity} asks for number {row} (the first is 0)']
    return []


def _width_faults(where: str, tensor: Tensor, width: int, made: str) -> list[str]:
    shape = tensor.shape
    if len(shape) not in (1, 2):
        return [f'{where}: has {len(shape)} dimensions {shape}; 1 or 2 are expected']
    if isinstance(shape[-1], int) and shape[-1] != width:
        verdict = f'{abs(shape[-1] - width)} {"missing" if width < shape[-1] else "too many"}'
        return [f'{where}: the network has {shape[-1]} numbers, {made} {width} ({verdict})']
    if len(shape) == 2 and isinstance(shape[0], int) and shape[0] != 1:
        return [f'{where}: the batch dimension is fixed at {shape[0]}; export the policy with a batch of 1 or a free one']
    return []
