# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs and outputs recorded by the trainer, computed again on the machine that runs the policy.

`golden.npz` holds `in__<input>` (k, width) and `out__<output>` (k, width), by output of the contract or by its tensor. A
wrong file, a broken runtime or a processor that rounds badly shows here, before a motor turns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_ros.contract.attachments import GOLDEN_KEY, attached_bytes
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import ModelFileError, NetworkError
from sim2real_ros.npz import numbers, read_npz
from sim2real_ros.policy.network import Network

TOLERANCE = 1e-3  # on an action of order 1; float32 kernels of two machines differ by less than 1e-5


def check_golden(contract: Contract, widths: Mapping[str, int]) -> float | None:
    """Compare the network with its golden vectors.

    Returns:
        The largest difference, or None when the contract names no golden file or came without a folder.

    Raises:
        ModelFileError: the golden file is missing or damaged.
        NetworkError: the network computes something else.
    """
    if contract.file.golden is None or contract.folder is None:
        return None
    path = contract.folder / contract.file.golden
    try:
        data = read_npz(attached_bytes(contract, contract.file.golden, GOLDEN_KEY))
        inputs = {name: _rows(data, f'in__{name}', width) for name, width in widths.items()}
        expected = {name: _expected(data, name, contract) for name in contract.file.outputs}
        (count,) = {len(rows) for rows in (*inputs.values(), *expected.values())}  # ValueError where they differ
    except (OSError, ValueError) as error:
        raise ModelFileError(f'cannot read the golden vectors {path}: {error}; mend the file or set golden: null') from None
    network = Network(contract, widths)
    differences = []
    for k in range(count):
        outputs = network.run({name: values[k] for name, values in inputs.items()})
        differences += [np.abs(outputs[name] - expected[name][k]).max() for name in expected]
    worst = float(np.max(differences))  # NaN stays NaN, which the comparison below refuses
    if not worst <= TOLERANCE:
        raise NetworkError(
            f'{contract.model_path} differs from its golden vectors {path.name} by {worst:.3g}, allowed is {TOLERANCE:g}: '
            'this is not the network that was validated'
        )
    return worst


def _expected(data: dict[str, np.ndarray], name: str, contract: Contract) -> np.ndarray:
    """Return what an output should be, (k, joints): under its own name in the file, or in its tensor."""
    action = contract.file.outputs[name]
    width = len(contract.action_joints(action))
    if f'out__{name}' in data or action.tensor is None:
        return _rows(data, f'out__{name}', width)
    key = f'out__{action.tensor}'
    if action.columns is None:
        return _rows(data, key, width)
    whole = numbers(data, key)
    wide = _rows(data, key, whole.shape[-1] if whole.ndim else 0)
    if max(action.columns) >= wide.shape[1]:
        raise ValueError(f'{key} has {wide.shape[1]} numbers, outputs.{name} asks for column {max(action.columns)}')
    return wide[:, action.columns]


def _rows(data: dict[str, np.ndarray], key: str, width: int) -> np.ndarray:
    """Return an array of the file as (k, width), k > 0; a batch axis of one, as trainers record it, is dropped."""
    values = numbers(data, key)
    if values.shape[-1:] != (width,) or values.size != len(values) * width or not values.size:
        raise ValueError(f'{key} has the shape {values.shape}, expected is (k, {width})')
    return values.reshape(-1, width)
