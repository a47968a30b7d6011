# SPDX-License-Identifier: Apache-2.0
"""`Network`: an ONNX file behind its contract. Names, widths and types are checked once; the state is carried along."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import ModelFileError, NetworkError

FLOATS = {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(float16)': np.float16}
WARM_UP_RUNS = 20


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """Open an ONNX file on one thread that does not spin: a control loop shares the cores with others.

    Raises:
        ModelFileError: with the reason: missing, a Git-LFS pointer, truncated, without its data file.
    """
    read_model(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry('session.intra_op.allow_spinning', '0')
    options.add_session_config_entry('session.inter_op.allow_spinning', '0')
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    except Exception as error:  # onnxruntime raises classes of its own that share no public base
        text = ' '.join(str(error).split())
        if 'external' in text.lower() or f'{path.name}.data' in text:
            hint = f'its weights lie in a file of their own (often {path.name}.data) that is not beside it: copy both files'
        else:
            hint = 'the file is truncated or not an ONNX model'
        raise ModelFileError(f'cannot open the network {path}: {hint} (onnxruntime: {text[:200]})') from None


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of an ONNX file."""
    return dict(open_session(path).get_modelmeta().custom_metadata_map)


class Network:
    """Evaluates a policy network for one robot or a batch.

    A file with a free batch dimension takes the whole batch in one call; one with a fixed batch, or with recurrent
    state, is called once per robot.

    Attributes:
        warm_up_ms: median time of one call after warm-up.
    """

    def __init__(self, contract: Contract, widths: Mapping[str, int], batch: tuple[int, ...] = ()) -> None:
        """Open the file, compare it with the contract and warm it up.

        Args:
            contract: names the file and its tensors.
            widths: width of each observation input, as the builder makes it.
            batch: shape of the batch of robots; () for one.

        Raises:
            ModelFileError: the file cannot be opened.
            NetworkError: names, widths or types differ from the contract (all faults are listed), or the network
                computes non-finite numbers from zeros.
        """
        if contract.model_path is None:
            raise ModelFileError(f'{contract.source} names no file on this machine')
        self._name = str(contract.model_path)
        self._session = open_session(contract.model_path)
        self._batch = batch
        self._inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        self._outputs = [tensor.name for tensor in self._session.get_outputs()]
        self._states = {name: part.state for name, part in contract.states.items()}
        self._actions = {name: len(contract.action_joints(part)) for name, part in contract.file.outputs.items()}
        faults = [*self._name_faults(contract), *self._width_faults(widths)]
        if faults:
            raise NetworkError(
                f'{self._name} does not fit its contract {contract.source}:\n' + '\n'.join(f'  - {f}' for f in faults)
            )
        whole = not self._states and all(_free_batch(self._inputs[name].shape) for name in widths)
        self._lanes = 1 if whole else int(np.prod(batch, dtype=int))
        self._rows = int(np.prod(batch, dtype=int)) if whole else 1
        self._shapes = {name: self._shape(name, width) for name, width in widths.items()}
        self._dtypes = {name: FLOATS[self._inputs[name].type] for name in widths}
        self._fetch = [
            *self._actions,
            *dict.fromkeys(output for output in self._states.values() if output not in self._actions),
        ]
        self.reset()
        self._warm_up(widths)

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Put the recurrent state to zero, of the robots in `mask` (batch-shaped bool) or of all."""
        zeros = {
            name: np.zeros([d if isinstance(d, int) else 1 for d in self._inputs[name].shape], FLOATS[self._inputs[name].type])
            for name in self._states
        }
        if mask is None:
            self._carried = [dict(zeros) for _ in range(self._lanes)]
        elif self._states:
            for lane in np.flatnonzero(mask):
                self._carried[lane] = dict(zeros)

    def run(self, observations: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Evaluate one tick.

        Args:
            observations: (*batch, width) by input name.

        Returns:
            The actions, (*batch, width) by output name. They may be non-finite; the caller decides what that means.
        """
        lanes = [self._run_lane(lane, observations) for lane in range(self._lanes)]
        return {
            name: np.concatenate([outputs[i].reshape(self._rows, width) for outputs in lanes]).reshape(*self._batch, width)
            for i, (name, width) in enumerate(self._actions.items())
        }

    def _run_lane(self, lane: int, observations: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        feed: dict[str, Any] = dict(self._carried[lane])
        for name, values in observations.items():
            rows = values.reshape(self._lanes, self._rows, -1)[lane]
            feed[name] = rows.reshape(self._shapes[name]).astype(self._dtypes[name], copy=False)
        outputs = self._session.run(self._fetch, feed)
        for name, output in self._states.items():
            self._carried[lane][name] = outputs[self._fetch.index(output)]
        return outputs

    def _shape(self, name: str, width: int) -> tuple[int, ...]:
        return (width,) if len(self._inputs[name].shape) == 1 else (self._rows, width)

    def _name_faults(self, contract: Contract) -> list[str]:
        faults = []
        for kind, wanted, there in (
            ('input', list(contract.file.inputs), list(self._inputs)),
            ('output', [*self._actions, *self._states.values()], self._outputs),
        ):
            missing = [name for name in wanted if name not in there]
            if missing:
                faults.append(f'{kind} {", ".join(missing)}: not in the file; its {kind}s are {", ".join(there)}')
        unfed = [name for name in self._inputs if name not in contract.file.inputs]
        if unfed:
            faults.append(f'input {", ".join(unfed)}: the file needs it, the contract does not describe it')
        return faults

    def _width_faults(self, widths: Mapping[str, int]) -> list[str]:
        faults = []
        for name, tensor in self._inputs.items():
            if tensor.type not in FLOATS:
                faults.append(f'input {name}: type {tensor.type} is not supported; supported are {", ".join(FLOATS)}')
            if name in widths:
                faults += _width_fault('input', name, tensor.shape, widths[name], "the contract's terms make")
            elif name in self._states and any(not isinstance(d, int) for d in tensor.shape[-1:]):
                faults.append(f'input {name}: the width of a state must be fixed in the file, its shape is {tensor.shape}')
        for tensor in self._session.get_outputs():
            if tensor.name in self._actions and tensor.type not in FLOATS:
                faults.append(f'output {tensor.name}: type {tensor.type} is not supported; supported are {", ".join(FLOATS)}')
            elif tensor.name in self._actions:
                faults += _width_fault(
                    'output', tensor.name, tensor.shape, self._actions[tensor.name], 'the contract has joints for'
                )
        return faults

    def _warm_up(self, widths: Mapping[str, int]) -> None:
        zeros = {name: np.zeros((*self._batch, width), np.float32) for name, width in widths.items()}
        times = []
        try:
            for _ in range(WARM_UP_RUNS):
                start = time.perf_counter()
                outputs = self.run(zeros)
                times.append(time.perf_counter() - start)
        except Exception as error:  # onnxruntime's own classes again, and widths that only a run can tell
            raise NetworkError(
                f"{self._name} fails on zeros of the contract's shape: {' '.join(str(error).split())[:300]}"
            ) from None
        for name, values in outputs.items():
            if not np.isfinite(values).all():
                bad = int((~np.isfinite(values)).sum())
                raise NetworkError(
                    f'{self._name} computes {bad} non-finite numbers in output {name} from an observation of zeros: '
                    'its weights are damaged (NaN or overflow); export the policy again'
                )
        self.warm_up_ms = 1e3 * float(np.median(times))
        self.reset()


def _free_batch(shape: list[Any]) -> bool:
    return len(shape) == 2 and not isinstance(shape[0], int)


def _width_fault(kind: str, name: str, shape: list[Any], width: int, made: str) -> list[str]:
    if len(shape) not in (1, 2):
        return [f'{kind} {name}: has {len(shape)} dimensions {shape}; 1 or 2 are expected']
    if isinstance(shape[-1], int) and shape[-1] != width:
        verdict = f'{abs(shape[-1] - width)} {"missing" if width < shape[-1] else "too many"}'
        return [f'{kind} {name}: the network has {shape[-1]} numbers, {made} {width} ({verdict})']
    if len(shape) == 2 and isinstance(shape[0], int) and shape[0] != 1:
        return [f'{kind} {name}: the batch dimension is fixed at {shape[0]}; export the policy with a batch of 1 or a free one']
    return []
