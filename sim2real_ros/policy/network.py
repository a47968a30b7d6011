# SPDX-License-Identifier: Apache-2.0
"""`Network`: an ONNX file behind its contract. Names, widths and types are checked once; the state is carried along."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import ModelFileError, NetworkError
from sim2real_ros.policy.memory import Memory
from sim2real_ros.policy.session import open_session, read_metadata
from sim2real_ros.policy.tensors import BODY_WIDTHS, action_tensor, faults_of, quantities, tensors_of
from sim2real_ros.policy.widen import widened

__all__ = ['Network', 'open_session', 'read_metadata']

WARM_UP_RUNS = 20


class Network:
    """Evaluates a policy network for one robot or a batch.

    A file with a free batch dimension takes the whole batch in one call, and so does one whose fixed dimension can be
    freed (`widen.py`); one with recurrent state is called once per robot.

    Attributes:
        warm_up_ms: median time of one call after warm-up.
        played: what the last call said of the reference motion, (*batch, width) by quantity; empty if it plays none.
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
        self._batch, robots = batch, math.prod(batch)
        inputs, outputs = tensors_of(self._session.get_inputs()), tensors_of(self._session.get_outputs())
        faults = faults_of(contract, widths, inputs, outputs)
        if faults:
            raise NetworkError(
                f'{self._name} does not fit its contract {contract.source}:\n' + '\n'.join(f'  - {f}' for f in faults)
            )
        whole = not contract.states and all(tensor.free_batch for tensor in inputs)
        remembers = bool(contract.states or contract.counters or contract.flags)
        if not whole and not remembers and robots > 1 and (wide := widened(contract.model_path, self._session)):
            self._session, whole = wide, True
        self._lanes, self._rows = (1, robots) if whole else (robots, 1)
        named = {tensor.name: tensor for tensor in inputs}
        self._shapes = {name: (k,) if len(named[name].shape) == 1 else (self._rows, k) for name, k in widths.items()}
        self._dtypes = {name: named[name].dtype for name in widths}
        self._memory = Memory(contract, named, self._lanes, self._rows)
        self._actions: dict[str, tuple[str, np.ndarray | None, int]] = {}  # by output: tensor, its columns, joints
        for name, action in contract.file.outputs.items():
            tensor = action_tensor(contract.tensors[name], outputs)
            assert tensor is not None  # or it were a fault
            columns = None if action.columns is None else np.array(action.columns)
            self._actions[name] = tensor.name, columns, len(contract.action_joints(action))
        self._quantities = {
            name: (tensor, row, BODY_WIDTHS.get(name, len(contract.joints)))
            for name, (tensor, row) in quantities(contract).items()
        }
        wanted = [*(part[0] for part in (*self._actions.values(), *self._quantities.values())), *self._memory.outputs]
        self._fetch = list(dict.fromkeys(wanted))
        self.played: dict[str, np.ndarray] = {}
        self._zeros = {name: np.zeros((*batch, width), np.float32) for name, width in widths.items()}
        self._warm_up()

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Put state and counters to their start, of the robots in `mask` (batch-shaped bool) or of all."""
        self._memory.reset(mask)

    def run(self, observations: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Evaluate one tick.

        Args:
            observations: (*batch, width) by input name.

        Returns:
            The actions, (*batch, joints) by output of the contract. They may be non-finite; the caller decides what that means.

        Raises:
            NetworkError: the network fails.
        """
        try:
            return self._run(observations)
        except Exception as error:  # onnxruntime raises classes of its own that share no public base
            raise NetworkError(f'{self._name} fails: {_brief(error)}') from None

    def _run(self, observations: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        lanes = [self._run_lane(lane, observations) for lane in range(self._lanes)]
        for lane, outputs in enumerate(lanes):
            self._memory.keep(lane, outputs)
        if self._quantities:
            self.played = self._motion(lanes)
        return {name: self._action(lanes, *how) for name, how in self._actions.items()}

    def query(self) -> dict[str, np.ndarray]:
        """Return what the network says of the reference motion at the next tick, (*batch, width) by quantity.

        It is asked with an observation of zeros; neither its state nor its counters advance.
        """
        return self._motion([self._run_lane(lane, self._zeros) for lane in range(self._lanes)])

    def _run_lane(self, lane: int, observations: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        feed = self._memory.feed(lane)
        for name, values in observations.items():
            rows = values.reshape(self._lanes, self._rows, -1)[lane]
            feed[name] = rows.reshape(self._shapes[name]).astype(self._dtypes[name], copy=False)
        return dict(zip(self._fetch, self._session.run(self._fetch, feed), strict=True))

    def _action(self, lanes: list[dict[str, np.ndarray]], tensor: str, columns: np.ndarray | None, width: int) -> np.ndarray:
        parts = [outputs[tensor].reshape(self._rows, -1) for outputs in lanes]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return (rows if columns is None else rows[:, columns]).reshape(*self._batch, width)

    def _motion(self, lanes: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        played = {}
        for name, (tensor, row, width) in self._quantities.items():
            bodies = np.concatenate([outputs[tensor].reshape(self._rows, -1, width) for outputs in lanes])
            played[name] = bodies[:, row or 0].reshape(*self._batch, width).astype(float)
        return played

    def _warm_up(self) -> None:
        times = []
        try:
            for _ in range(WARM_UP_RUNS):
                start = time.perf_counter()
                outputs = self._run(self._zeros)
                times.append(time.perf_counter() - start)
        except Exception as error:  # onnxruntime's own classes again, and widths that only a run can tell
            raise NetworkError(f"{self._name} fails on zeros of the contract's shape: {_brief(error)}") from None
        for name, values in (outputs | self.played).items():
            if not np.isfinite(values).all():
                bad = int((~np.isfinite(values)).sum())
                raise NetworkError(
                    f'{self._name} computes {bad} non-finite numbers in output {name} from an observation of zeros: '
                    'its weights are damaged (NaN or overflow); export the policy again'
                )
        self.warm_up_ms = 1e3 * float(np.median(times))
        self.reset()


def _brief(error: Exception) -> str:
    return ' '.join(str(error).split())[:300]
