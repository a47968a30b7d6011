# SPDX-License-Identifier: Apache-2.0
"""The pure stages, in this process: one policy tick without its network, one safety tick."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bench.result import Result
from sim2real_ros.contract import load_contract
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.network import open_session
from sim2real_ros.robot import load_robot
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.modes import Event
from sim2real_ros.signals import JointTargets, RobotState

ROUNDS, CALLS = 40, 250
SAFETY_BUDGET_US = 40.0


def median_us(call: Callable[[], object]) -> float:
    """Return the median over rounds of the mean time of a call, in us."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e6 * statistics.median(times)


def reference_network(folder: Path, width: int = 48) -> Path:
    """Write a 3 x 256 ELU network with 12 outputs, the size that most public policies have."""
    rng, nodes, weights, name = np.random.default_rng(0), [], [], 'obs'
    sizes = (width, 256, 256, 256, 12)
    for i, (n, m) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        weights += [
            numpy_helper.from_array(rng.normal(0, n**-0.5, (n, m)).astype(np.float32), f'w{i}'),
            numpy_helper.from_array(np.zeros(m, np.float32), f'b{i}'),
        ]
        last = i == len(sizes) - 2
        nodes.append(helper.make_node('Gemm', [name, f'w{i}', f'b{i}'], ['actions' if last else f'g{i}']))
        if not last:
            nodes.append(helper.make_node('Elu', [f'g{i}'], [f'h{i}']))
            name = f'h{i}'
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, k]) for n, k in (('obs', width), ('actions', 12))]
    graph = helper.make_graph(nodes, 'reference', tensors[:1], tensors[1:], weights)
    path = folder / 'reference.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    return path


def policy_tick() -> Result:
    """Observation and action of the shipped policy against a bare `session.run` of the reference network."""
    runner = PolicyRunner(load_contract('go2_velocity'))
    state, command = _state(0.0, len(runner.contract.joints)), np.array([0.5, 0.0, 0.1])
    outputs = runner.network.run({name: np.zeros(runner.builder.width(name), np.float32) for name in runner.builder.slots})
    runner.network.run = lambda _: outputs  # type: ignore[method-assign] - the network is measured on its own
    with tempfile.TemporaryDirectory() as folder:
        session = open_session(reference_network(Path(folder)))
        feed = {'obs': np.zeros((1, 48), np.float32)}
        network = median_us(lambda: session.run(None, feed))
        tick = median_us(lambda: runner.step(state, command))
    return Result(
        'policy tick without network / session.run of 3 x 256',
        f'{tick:.0f} us / {network:.0f} us = {tick / network:.2f}',
        'at most 1',
        tick <= network,
    )


def safety_tick() -> Result:
    """PD and the whole filter, following targets."""
    robot = load_robot('go2')
    contract = load_contract('go2_velocity')
    safety, pose = SafetyFilter(robot), contract.default_position
    safety.accept(contract)
    clock = _Clock()

    def tick() -> None:
        stamp = clock.next()
        if clock.steps % 10 == 0:
            zeros = np.zeros(len(pose))
            safety.set_targets(contract.id, JointTargets(stamp - 1e-4, pose, zeros, zeros))
        safety.step(_state(stamp, len(pose), pose))

    tick()
    safety.request(Event.DAMP)
    tick()
    safety.request(Event.POSE)
    for _ in range(1500):
        tick()
    refusal = safety.request(Event.ACTIVATE)
    assert refusal is None, refusal
    for _ in range(200):
        tick()
    us = median_us(tick)
    assert safety.mode is Mode.ACTIVE
    return Result(
        'safety tick: PD and whole filter, 12 joints', f'{us:.0f} us', f'{SAFETY_BUDGET_US:g} us', us <= SAFETY_BUDGET_US
    )


class _Clock:
    """Stamps of a 500 Hz joint state."""

    def __init__(self) -> None:
        self.steps = 0

    def next(self) -> float:
        self.steps += 1
        return 0.002 * self.steps


ANGULAR, QUAT = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])


def _state(stamp: float, n: int, pose: np.ndarray | None = None) -> RobotState:
    return RobotState(stamp, np.zeros(n) if pose is None else pose, np.zeros(n), QUAT, ANGULAR, ANGULAR)
