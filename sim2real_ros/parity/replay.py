# SPDX-License-Identifier: Apache-2.0
"""Running a contract over a trace: what it would have fed the network, with the recorded outputs in place of the network's.

So a difference belongs to the tick that made it, and does not live on in the last action or a carried state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import JointError
from sim2real_ros.joints import JointMap
from sim2real_ros.parity.trace import Trace
from sim2real_ros.policy.runner import PolicyRunner


@dataclass(frozen=True, slots=True)
class Replay:
    """What a contract made of a trace, k ticks."""

    inputs: dict[str, np.ndarray]  # (k, width) by tensor name: observations only
    counted: dict[str, np.ndarray]  # (k, 1) by tensor name: counters and first-tick flags
    targets: np.ndarray  # (k, n) rad, positions in the contract's joint order


def replay(contract: Contract, trace: Trace) -> Replay:
    """Run a contract over a trace.

    Raises:
        JointError: the trace lacks a joint, or an output, of the contract.
        Sim2RealError: the policy cannot be loaded, or an observation is not finite.
    """
    missing = [name for name, action in contract.file.outputs.items() if (action.tensor or name) not in trace.outputs]
    if missing:
        raise JointError(f'the trace lacks the outputs {", ".join(missing)}; it has {", ".join(trace.outputs) or "none"}')
    pick = JointMap(trace.joints, contract.joints, source='the trace', target='the contract')
    runner = PolicyRunner(contract)
    tape = _Tape(runner, trace)
    observed: dict[str, list[np.ndarray]] = {name: [] for name in runner.builder.slots}
    counted: dict[str, list[np.ndarray]] = {name: [] for name in (*contract.counters, *contract.flags)}
    targets = []
    for tick, state in enumerate(trace.states):
        tape.tick = tick
        own = replace(state, joint_pos=pick(state.joint_pos), joint_vel=pick(state.joint_vel))
        options: dict[str, Any] = {} if trace.goal is None else {'goal': trace.goal[tick]}
        targets.append(runner.step(own, trace.commands[tick], **options).position)
        for name, rows in observed.items():
            rows.append(runner.observation[name].copy())
        for name, rows in counted.items():
            rows.append(np.array(tape.fed[name], dtype=float).ravel())
    inputs, counts = ({name: np.array(rows, dtype=float) for name, rows in part.items()} for part in (observed, counted))
    return Replay(inputs, counts, np.array(targets))


def outputs_of_network(contract: Contract, trace: Trace, *, carry: bool = True) -> dict[str, np.ndarray]:
    """Return the actions that the network computes from the recorded inputs, (k, m) by entry of `outputs`.

    Args:
        contract: of the network.
        trace: holds its observations.
        carry: whether recurrent state is carried from tick to tick, as it should be.
    """
    runner = PolicyRunner(contract)
    names = list(runner.builder.slots)
    rows: dict[str, list[np.ndarray]] = {name: [] for name in contract.file.outputs}
    for tick in range(len(trace.states)):
        if not carry:
            runner.network.reset()
        given = runner.network.run({name: trace.inputs[name][tick].astype(np.float32) for name in names})
        for name, values in rows.items():
            values.append(np.asarray(given[name], dtype=float).ravel())
    return {name: np.array(values) for name, values in rows.items()}


class _Tape:
    """Stands between a network and its session and plays the recorded outputs within a tick."""

    def __init__(self, runner: PolicyRunner, trace: Trace) -> None:
        network: Any = runner.network
        self._session, self._run, self._trace = network._session, network.run, trace
        network._session, network.run = self, self._tick
        self.tick, self._within = 0, False
        self.fed: dict[str, np.ndarray] = {}  # in the last tick

    def _tick(self, *arguments: Any) -> Any:
        self._within = True
        try:
            return self._run(*arguments)
        finally:
            self._within = False

    def run(self, fetch: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return the recorded outputs within a tick, the session's own where none were recorded and in a query beside it."""
        if not self._within:
            return list(self._session.run(fetch, feed))
        self.fed, recorded = feed, self._trace.outputs
        missing = [name for name in fetch if name not in recorded]
        own = dict(zip(missing, self._session.run(missing, feed), strict=True)) if missing else {}
        return [own[name] if name in own else recorded[name][self.tick] for name in fetch]

    def __getattr__(self, name: str) -> Any:
        """Everything else is the session's."""
        return getattr(self._session, name)
