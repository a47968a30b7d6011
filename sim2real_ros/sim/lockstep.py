# SPDX-License-Identifier: Apache-2.0
"""The whole stack in one process and without ROS: the reference that the nodes are held against, and the quick way to try.

The order of one control tick is the nodes': the state of step k goes to the policy (when a tick is due) and to the
filter; targets that answer state k count from state k + 1 on; the torque that answers state k acts until state k + 1.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.joints import JointMap
from sim2real_ros.policy.runner import PolicyRunner
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.signals import RobotState, SafeTorque
from sim2real_ros.sim.world import World
from sim2real_ros.timing import tick_due


class Lockstep:
    """World, policy and filter, one control tick at a time.

    Attributes:
        command: (3,) velocity command in m/s, m/s, rad/s.
        sent: the torque of the last tick, None while the filter commands nothing.
    """

    def __init__(self, world: World, safety: SafetyFilter, runner: PolicyRunner) -> None:
        """Couple the parts; the filter takes the runner's contract here (see `SafetyFilter.accept` for the errors)."""
        self.world, self.safety, self.runner = world, safety, runner
        self.command = np.zeros(3)
        self.sent: SafeTorque | None = None
        contract = runner.contract
        self._to_policy = JointMap(world.robot.joints, contract.joints, source=world.robot.name, target=contract.file.name)
        self._previous_stamp = world.time
        self._rest = np.zeros(len(world.robot.joints))
        safety.accept(contract)

    def tick(self, applied: np.ndarray | None = None) -> RobotState:
        """Run one control tick.

        Args:
            applied: (n,) N m, a torque that acts instead of the computed one, to replay what another loop did.

        Returns:
            The state that was answered.
        """
        state = self.world.state()
        if tick_due(state.stamp, self._previous_stamp, self.runner.contract.period_s):
            self._policy_tick(state)
        self._previous_stamp = state.stamp
        self.sent = self.safety.step(state)
        computed = self._rest if self.sent is None else self.sent.torque
        self.world.step(computed if applied is None else applied)
        return state

    def _policy_tick(self, state: RobotState) -> None:
        if self.safety.mode is not Mode.ACTIVE:
            self.runner.reset()  # until the robot follows, every tick is a first tick
        view = RobotState(
            state.stamp,
            self._to_policy(state.joint_pos),
            self._to_policy(state.joint_vel),
            state.base_quat_xyzw,
            state.base_ang_vel,
            state.base_lin_vel,
        )
        self.safety.set_targets(self.runner.contract.id, self.runner.step(view, self.command))

    def run(self, seconds: float) -> None:
        """Run for a simulated time."""
        for _ in range(round(seconds / self.world.model.opt.timestep)):
            self.tick()
