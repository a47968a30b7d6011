# SPDX-License-Identifier: Apache-2.0
"""Golden traces of public policies (`shared/third_party/*/trace.npz`): recorded states, and what upstream fed its network.

Building the network's inputs from the recorded states is the strongest test of a contract: a closed loop often walks with
a wrong one. `replay` does that tick by tick, with the recorded outputs in place of the network's own, so that a difference
belongs to the tick that made it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim2real_ros.contract.contract import Contract
from sim2real_ros.joints import JointMap
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.rotations import multiply_xyzw, world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import LEVEL_XYZW, JointTargets, RobotState

FREE_JOINT = 7  # numbers in qpos, one less in qvel


@dataclass(frozen=True)
class Trace:
    """A recorded run of k policy ticks."""

    joints: tuple[str, ...]  # order of the states: the hinges of the MJCF
    policy_joints: tuple[str, ...]  # order of the targets
    command: np.ndarray  # (3,) m/s, m/s, rad/s
    goal: np.ndarray | None  # (7,) as recorded, where there is one
    states: list[RobotState]  # (k,) joints in the order `joints`
    inputs: dict[str, np.ndarray]  # (k, ...) what upstream fed its network, by tensor name, batch axis of one dropped
    outputs: dict[str, np.ndarray]  # (k, ...) what the network gave, by tensor name
    targets: np.ndarray  # (k, n) rad, in the order `policy_joints`
    meta: dict[str, Any]
    sensors: np.ndarray | None = None  # (k, ...) MuJoCo's sensordata, older than the states by one physics step


def load_trace(folder: Path) -> Trace:
    """Read the trace of a third-party policy; skips the test where it is absent."""
    path = folder / 'trace.npz'
    if not path.is_file():
        pytest.skip(f'there is no {path}')
    with np.load(path, allow_pickle=False) as archive:
        data = dict(archive)
    meta = json.loads(str(data['meta']))
    return Trace(
        tuple(meta['mjcf_hinge_joints']),
        tuple(meta['policy_joints']),
        np.array(meta['command'], dtype=float),
        np.array(meta['goal'], dtype=float) if 'goal' in meta else None,
        [_state(*sample) for sample in zip(data['t'].tolist(), data['qpos'], data['qvel'], strict=True)],
        {key.removeprefix('in__'): values[:, 0] for key, values in data.items() if key.startswith('in__')},
        {key.removeprefix('out__'): values[:, 0] for key, values in data.items() if key.startswith('out__')},
        data['target'],
        meta,
        data.get('sensordata'),
    )


def trace_states(folder: Path) -> list[RobotState]:
    """Return the recorded states of a third-party policy, joints in the order of the trace (`Trace.joints`)."""
    return load_trace(folder).states


def in_order(trace: Trace, joints: Sequence[str]) -> list[RobotState]:
    """Return the states with other joints: the policy's, or the robot's."""
    pick = JointMap(trace.joints, joints, source='the trace', target='the contract')
    return [replace(s, joint_pos=pick(s.joint_pos), joint_vel=pick(s.joint_vel)) for s in trace.states]


def a_step_before(state: RobotState, timestep: float) -> RobotState:
    """Return position and orientation as they were one physics step earlier; velocities are those of now.

    MuJoCo moves positions with the velocities that a step ends with, and recorders read sensors and body poses that it has
    computed before that step.
    """
    omega = state.base_ang_vel
    assert omega is not None
    angle = float(np.linalg.norm(omega))
    axis = omega / angle if angle > 0 else np.array([0.0, 0.0, 1.0])
    half = -0.5 * angle * timestep
    back = np.array([*(np.sin(half) * axis), np.cos(half)])
    return replace(
        state,
        joint_pos=state.joint_pos - timestep * state.joint_vel,
        base_quat_xyzw=multiply_xyzw(state.base_quat_xyzw, back),
    )


def replay(contract: Contract, trace: Trace, **options: Any) -> dict[str, np.ndarray]:
    """Return what the contract feeds the network, (k, ...) by tensor name, from the recorded states and outputs.

    Args:
        contract: with its network file.
        trace: of the same policy.
        options: for `PolicyRunner.step`, as `goal=`.
    """
    return replay_all(contract, trace, **options)[0]


def replay_all(contract: Contract, trace: Trace, **options: Any) -> tuple[dict[str, np.ndarray], list[JointTargets]]:
    """Return what `replay` returns, and the targets of every tick in the contract's joint order."""
    runner = PolicyRunner(contract)
    tape = _Tape(runner, trace)
    targets = []
    for tick, state in enumerate(in_order(trace, contract.joints)):
        tape.tick = tick
        targets.append(runner.step(state, trace.command, **options))
    return {name: np.stack([feed[name] for feed in tape.fed]) for name in tape.fed[0]}, targets


def differences(built: dict[str, np.ndarray], trace: Trace) -> dict[str, float]:
    """Return the largest difference of every recorded input."""
    return {
        name: float(np.abs(built[name].reshape(len(values), -1) - values.reshape(len(values), -1)).max())
        for name, values in trace.inputs.items()
    }


class _Tape:
    """Stands between a network and its session: notes what is fed in a tick and plays the recorded outputs."""

    def __init__(self, runner: PolicyRunner, trace: Trace) -> None:
        network: Any = runner.network
        self._session, self._run, self._trace = network._session, network.run, trace
        network._session, network.run = self, self._tick
        self.tick, self._within = 0, False
        self.fed: list[dict[str, np.ndarray]] = []

    def _tick(self, *arguments: Any) -> Any:
        self._within = True
        try:
            return self._run(*arguments)
        finally:
            self._within = False

    def run(self, fetch: list[str], feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return the recorded outputs within a tick, the session's own in a query beside it."""
        if not self._within:
            return self._session.run(fetch, feed)
        self.fed.append(
            {name: np.array(values)[0] if np.ndim(values) > 1 else np.array(values) for name, values in feed.items()}
        )
        return [self._trace.outputs[name][self.tick][None] for name in fetch]

    def __getattr__(self, name: str) -> Any:
        """Everything else is the session's."""
        return getattr(self._session, name)


def _state(stamp: float, qpos: np.ndarray, qvel: np.ndarray) -> RobotState:
    if len(qpos) == len(qvel):
        return RobotState(stamp, qpos, qvel, LEVEL_XYZW, np.zeros(3), np.zeros(3))
    quat = xyzw_from_wxyz(qpos[3:7])
    return RobotState(
        stamp, qpos[FREE_JOINT:], qvel[FREE_JOINT - 1 :], quat, qvel[3:6], world_to_base(quat, qvel[:3]), base_pos=qpos[:3]
    )
