# SPDX-License-Identifier: Apache-2.0
"""`Pilot`: one policy at the controls of one robot: states in robot order in, joint targets in policy order out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import NetworkError
from sim2real_ros.joints import JointMap
from sim2real_ros.policy.novelty import NoveltyMonitor
from sim2real_ros.policy.rehearsal import rehearse
from sim2real_ros.policy.runner import PolicyRunner
from sim2real_ros.robot import Robot
from sim2real_ros.safety.adoption import adopt
from sim2real_ros.signals import JointTargets, RobotState

SETTLE_S = 0.5  # what a policy sees before it takes over from another one: history, recurrent state


class Pilot:
    """A loaded and checked policy.

    Attributes:
        contract: of the policy.
        runner: of the policy.
        unfamiliar: the sentence of the novelty monitor, '' while it is silent.
    """

    def __init__(self, robot: Robot, contract: Contract) -> None:
        """Load everything; raises what `adopt`, `PolicyRunner`, `NoveltyMonitor.of` and `rehearse` raise."""
        adopt(robot, contract)  # what the safety node will say, before anything runs
        self.contract, self.runner = contract, PolicyRunner(contract)
        self.runner.restrict_command(robot.command_share)
        self._novelty = NoveltyMonitor.of(contract)
        self._to_policy = JointMap(robot.joints, contract.joints, source=f'robot {robot.name}', target=contract.file.name)
        self.unfamiliar = ''
        self._refuse_slow()
        rehearse(self.step, robot, self.name, len(contract.file.contacts), contract.period_s)
        self.reset()

    def _refuse_slow(self) -> None:
        took, allowed = self.runner.network.warm_up_ms, 1e3 * self.contract.period_s
        if took > allowed:
            raise NetworkError(f'{self.name} cannot run at its rate here: one call takes {took:.1f} ms of {allowed:.1f} ms')

    @classmethod
    def of(cls, robot: Robot, policy: str) -> Pilot:
        """Load a policy by what a user calls it; see `load_contract`."""
        return cls(robot, load_contract(policy))

    @property
    def name(self) -> str:
        """Name and id, for people."""
        return f'{self.contract.file.name} [{self.contract.id}]'

    @property
    def needs(self) -> list[str]:
        """Sensors beside the joint states."""
        return self.runner.builder.needs

    @property
    def settling_ticks(self) -> int:
        """How many ticks it must have run beside another one before it takes over."""
        return max(self.runner.builder.depth, round(SETTLE_S / self.contract.period_s))

    def reset(self) -> None:
        """Start afresh."""
        self.runner.reset()
        self.unfamiliar = ''
        if self._novelty is not None:
            self._novelty.reset()

    def step(self, state: RobotState, command: np.ndarray, goal: np.ndarray | None = None) -> JointTargets:
        """Compute one tick.

        Args:
            state: joints in robot order.
            command: (3,) m/s, m/s, rad/s.
            goal: (7,) m and quaternion x, y, z, w, in the frame of the contract's `commands.pose`; None before there is one.

        Returns:
            Targets in policy order.

        Raises:
            NetworkError: the observation or the network's output is not finite.
            SignalError: the state lacks what a term needs.
        """
        view = replace(state, joint_pos=self._to_policy(state.joint_pos), joint_vel=self._to_policy(state.joint_vel))
        return self.runner.step(view, command, goal)

    def seen(self) -> np.ndarray:
        """Return the observation of the last tick as the network got it, all inputs side by side."""
        return np.concatenate([part.ravel() for part in self.runner.observation.values()])

    def judge(self) -> None:
        """Hold what it saw in the last tick against what it saw in training; sets `unfamiliar`."""
        finding = self._novelty.update(self.runner.observation, self.runner.action) if self._novelty is not None else None
        self.unfamiliar = finding.message if finding is not None else ''
