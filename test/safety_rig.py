# SPDX-License-Identifier: Apache-2.0
"""A safety filter of the real Go2 with sensors that a test turns by hand: no physics, 500 Hz stamps."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.certificate import Certificate, certify
from sim2real_ros.safety.modes import Event
from sim2real_ros.safety.wiggle import RISE_S, SETTLE_S
from sim2real_ros.signals import LEVEL_XYZW, JointTargets, RobotState, SafeTorque

DT = 0.002  # s
POLICY_EVERY = 10  # joint states


@cache
def go2() -> Robot:
    """The shipped robot."""
    return load_robot('go2')


@cache
def go2_certificate() -> Certificate:
    """Its certificate, sampled once."""
    return certify(go2())


def contract(robot: Robot | None = None, joints: tuple[str, ...] | None = None, **changes: Any) -> Contract:
    """Return the contract of a position policy whose default pose is the robot's stand."""
    robot = robot or go2()
    stand = dict(zip(robot.joints, robot.pose('stand').tolist(), strict=True))
    own = joints or robot.joints
    data = {
        'schema': 1,
        'name': 'rig',
        'robot': robot.name,
        'model': {'file': 'policy.onnx'},
        'rate_hz': 50,
        'joints': list(own),
        'default_position': {name: stand.get(name, 0.0) for name in own},
        'stiffness': {'.*': 25.0},
        'damping': {'.*': 0.6},
        'inputs': {
            'obs': {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': [{'term': 'joint_pos_rel'}]}
        },
        'outputs': {'actions': {'type': 'joint_position', 'scale': 0.25, 'offset': 'default', 'clip': None}},
        'provenance': {'trainer': 'none, made for a test'},
    }
    return resolve(validate(ContractFile, data | changes, 'rig.yaml'), 'rig.yaml', None)


def lean(angle: float) -> np.ndarray:
    """Return the orientation (4,) xyzw of a base that leans to its side."""
    return np.array([np.sin(angle / 2), 0.0, 0.0, np.cos(angle / 2)])


class Rig:
    """Filter, contract and hand-turned sensors.

    Attributes:
        safety: the filter under test.
        contract: accepted by it.
        q, v, quat, imu_age: what the sensors say next.
        target: position targets in policy order; None while the policy is silent.
        k: number of the last state.
    """

    def __init__(self, robot: Robot | None = None, own: Contract | None = None, *, accept: bool = True) -> None:
        self.robot = robot or go2()
        self.contract = own or contract(self.robot)
        known = go2_certificate() if self.robot is go2() else None
        self.safety = SafetyFilter(self.robot, certificate=known)
        self._rng = np.random.default_rng(0)
        if accept:
            self.safety.accept(self.contract)
        self.q, self.v = self.robot.pose('stand').copy(), np.zeros(len(self.robot.joints))
        self.quat, self.imu_age = LEVEL_XYZW.copy(), 0.0
        self.target: np.ndarray | None = self.contract.default_position.copy()
        self.k = 0

    @property
    def stamp(self) -> float:
        """s, of the last state."""
        return self.k * DT

    def state(self, **changes: Any) -> RobotState:
        """Return the sample of the sensors at the last stamp."""
        noise = 1e-9 * self._rng.standard_normal(len(self.q))  # sensors that never change are broken
        sample = RobotState(self.stamp, self.q + noise, self.v.copy(), self.quat.copy(), imu_age=self.imu_age)
        return replace(sample, **changes)

    def send(self, position: np.ndarray, stamp: float | None = None, contract_id: str | None = None) -> None:
        """Send targets, of this contract and the last stamp if not said otherwise."""
        rest = np.zeros(len(position))
        targets = JointTargets(self.stamp if stamp is None else stamp, np.asarray(position, float), rest, rest)
        self.safety.set_targets(self.contract.id if contract_id is None else contract_id, targets)

    def step(self, **changes: Any) -> SafeTorque | None:
        """Go on by one state; the policy answers every tenth one first, as in lockstep."""
        self.k += 1
        if self.target is not None and self.k % POLICY_EVERY == 0:
            self.send(self.target)
        return self.safety.step(self.state(**changes))

    def run(self, steps: int) -> SafeTorque | None:
        """Go on by a number of states; returns the last torque."""
        torque = None
        for _ in range(steps):
            torque = self.step()
        return torque

    def move(self, q: np.ndarray, speed: float = 2.0) -> SafeTorque | None:
        """Go on while the joints move to other positions, slowly enough for encoders; returns the last torque."""
        begin = self.q
        steps = max(1, int(np.ceil(np.abs(q - begin).max() / (speed * DT))))
        torque = None
        for k in range(steps):
            self.q = begin + (k + 1) / steps * (q - begin)
            torque = self.step()
        return torque

    def insist(self, event: Event) -> None:
        """Request an event that must be granted."""
        refusal = self.safety.request(event)
        assert refusal is None, refusal

    def bring_to(self, mode: Mode) -> Rig:
        """Bring a new rig to a mode the way an operator would: pose and wiggle to their end, active past its blend."""
        self.run(1)
        if mode is Mode.OFF:
            return self
        if mode is Mode.WIGGLE:
            self.insist(Event.WIGGLE)
            self.run(round(2.1 * (RISE_S + SETTLE_S) / DT))
            return self
        self.insist(Event.DAMP)
        self.run(3)
        if mode in (Mode.POSE, Mode.ACTIVE):
            self.run(500)  # nothing wrong for a second
        if mode in (Mode.POSE, Mode.ACTIVE):
            self.insist(Event.POSE)
            self.run(300)
        if mode is Mode.ACTIVE:
            self.insist(Event.ACTIVATE)
            self.run(200)
        if mode is Mode.FAULT:
            self.insist(Event.ESTOP)
            self.run(3)
        assert self.safety.mode is mode
        return self


@cache
def _prepared(mode: Mode) -> Rig:
    return Rig().bring_to(mode)


def rig_in(mode: Mode) -> Rig:
    """Return a fresh rig of the shipped robot in a mode."""
    prepared = _prepared(mode)
    kept = {id(part): part for part in (prepared.robot, prepared.contract)}  # immutable: shared, not copied
    return copy.deepcopy(prepared, kept)
