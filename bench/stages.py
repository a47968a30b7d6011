# SPDX-License-Identifier: Apache-2.0
"""The pure stages, in this process: one policy tick without its network, one safety tick."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
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
from sim2real_ros.safety.dynamics import FixedBaseDynamics
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.safety.modes import Event
from sim2real_ros.signals import JointTargets, RobotState
from sim2real_ros.sim.lockstep import Lockstep
from sim2real_ros.sim.world import World

ROUNDS, CALLS = 40, 250
SAFETY_BUDGET_US, COUPLED_BUDGET_US = 40.0, 400.0
REFERENCE_US = 28.0  # of the reference network's session.run on an undisturbed 2 GHz core


def median_us(*calls: Callable[[], object]) -> list[float]:
    """Return the median over rounds of the mean time of each call, in us; the calls take turns, so that noise hits all."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            own.append((time.perf_counter() - start) / CALLS)
    return [1e6 * statistics.median(own) for own in times]


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
        network, tick = median_us(lambda: session.run(None, feed), lambda: runner.step(state, command))
    return Result(
        'policy tick without network / session.run of 3 x 256',
        f'{tick:.0f} us / {network:.0f} us = {tick / network:.2f}',
        'at most 1',
        tick <= network,
    )


def safety_tick() -> Result:
    """PD, monitors and the whole filter on the states of a walking robot, replayed, beside the reference network.

    The budget is meant for an undisturbed 2 GHz core, on which the reference takes 28 us. Whatever else runs slows both down
    alike, so where the time itself is above the budget the ratio counts.
    """
    session = Session()
    gc.collect()
    gc.freeze()  # as the nodes do
    with tempfile.TemporaryDirectory() as folder:
        network = open_session(reference_network(Path(folder)))
        feed = {'obs': np.zeros((1, 48), np.float32)}
        turns = [session.replay(lambda: network.run(None, feed)) for _ in range(5)]
    tick, reference = (1e6 * statistics.median(statistics.median(turn[i]) for turn in turns) for i in range(2))
    what = 'safety tick: PD, monitors and whole filter, 12 joints, walking / session.run'
    most = SAFETY_BUDGET_US / REFERENCE_US
    budget = f'{SAFETY_BUDGET_US:g} us, or {most:.2f}'
    return Result(
        what,
        f'{tick:.0f} us / {reference:.0f} us = {tick / reference:.2f}',
        budget,
        bool(tick <= SAFETY_BUDGET_US or tick / reference <= most),
    )


class Session:
    """What a safety filter is told while the robot stands up and walks in the embedded simulator."""

    def __init__(self, seconds: float = 10.0) -> None:
        self._robot, self._contract = load_robot('go2'), load_contract('go2_velocity')
        self._told: list[JointTargets | Event | RobotState] = []
        safety, told = SafetyFilter(self._robot), self._told
        self._certificate = safety.certificate
        accept, request, step = safety.set_targets, safety.request, safety.step
        safety.set_targets = lambda id_, targets: (told.append(targets), accept(id_, targets))[1]  # type: ignore[method-assign]
        safety.step = lambda state: (told.append(state), step(state))[1]  # type: ignore[method-assign,assignment]
        stack = Lockstep(World(self._robot), safety, PolicyRunner(self._contract))
        stack.command[0] = 0.5
        events = [Event.DAMP, Event.POSE, Event.ACTIVATE]
        while stack.world.time < seconds:
            if events and stack.world.time > 0.01 and request(events[0]) is None:
                told.append(events.pop(0))
            stack.tick()
        assert safety.mode is Mode.ACTIVE

    def replay(self, other: Callable[[], object]) -> tuple[list[float], list[float]]:
        """Tell it all to a new filter.

        Args:
            other: is called, and its time taken, now and then in between, so that both are disturbed alike.

        Returns:
            The times of the steps while it follows the policy, and of the other, s.
        """
        safety = SafetyFilter(self._robot, certificate=self._certificate)
        safety.accept(self._contract)
        times: list[float] = []
        others = []
        for told in self._told:
            if isinstance(told, Event):
                safety.request(told)
            elif isinstance(told, JointTargets):
                safety.set_targets(self._contract.id, told)
            else:
                start = time.perf_counter()
                safety.step(told)
                if safety.mode is Mode.ACTIVE:
                    times.append(time.perf_counter() - start)
                    if len(times) % 10 == 0:
                        other()  # what comes first after something else is slow
                        start = time.perf_counter()
                        other()
                        others.append(time.perf_counter() - start)
        return times, others


def coupled_limits() -> Result:
    """The limiter with mass matrix on the Go2's joints, base held; most states have some bound violated."""
    robot = replace(load_robot('go2'), floating=False)
    limiter = TorqueLimiter(robot, dynamics=FixedBaseDynamics(robot))
    rng, limits = np.random.default_rng(0), robot.limits
    states = [
        (rng.uniform(-0.5, 0.5, 12) * limits.effort, rng.uniform(limits.lower, limits.upper), rng.normal(0, 2, 12))
        for _ in range(200)
    ]
    calls = iter(range(10**9))
    (us,) = median_us(lambda: limiter.apply(*states[next(calls) % 200], 0.002))
    what = 'limits with the coupled barrier, 12 joints'
    return Result(what, f'{us:.0f} us', f'{COUPLED_BUDGET_US:g} us', us <= COUPLED_BUDGET_US)


ANGULAR, QUAT = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])


def _state(stamp: float, n: int, pose: np.ndarray | None = None) -> RobotState:
    return RobotState(stamp, np.zeros(n) if pose is None else pose, np.zeros(n), QUAT, ANGULAR, ANGULAR)
