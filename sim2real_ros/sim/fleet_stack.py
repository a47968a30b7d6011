# SPDX-License-Identifier: Apache-2.0
"""`FleetStack`: the stages of the nodes on a whole fleet at once: policy at its rate, PD and limits at the joint-state rate."""

from __future__ import annotations

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.contract import Contract
from sim2real_ros.errors import DocumentError, JointError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.signals import Gains, JointTargets, RobotState
from sim2real_ros.sim.fleet import Fleet
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.sim.verdict import START_HEIGHT, fallen
from sim2real_ros.timing import tick_due

TIMESTEP = 0.002  # s, of the physics and of the joint states
FIELDS = ('position', 'velocity', 'effort')  # of targets


class FleetStack:
    """B robots under one policy.

    Modes and latched faults are the business of one robot's `SafetyFilter`; here a robot that leans or sinks too far
    simply counts as fallen.

    Attributes:
        fleet: the robots.
        runner: their policy.
        command: (B, 3) m/s, m/s, rad/s.
        fallen: (B,) whether each has fallen.
        limited: share of joint-steps whose torque the limiter altered.
    """

    def __init__(self, robot: Robot, contract: Contract, size: int, ranges: Ranges, seed: int) -> None:
        """Build the fleet and stand it up in the policy's default pose; raises what its parts raise."""
        self.fleet = Fleet(robot, size, ranges=ranges, seed=seed, timestep=TIMESTEP)
        self.runner = PolicyRunner(contract, (size,))
        unknown = [joint for joint in robot.joints if joint not in contract.joints]
        if unknown:
            raise JointError(f'policy {contract.file.name} does not drive {", ".join(unknown)} of robot {robot.name}')
        if contract.period_s < TIMESTEP:
            fault = f'rate_hz: {contract.file.rate_hz:g} is more than the {1 / TIMESTEP:g} Hz of the simulated joint states'
            raise DocumentError(contract.source, [fault])
        self._to_policy = np.array([robot.joints.index(joint) for joint in contract.joints])
        self._to_robot = np.array([contract.joints.index(joint) for joint in robot.joints])
        self._limiter = TorqueLimiter(robot, (size,))
        self.command = np.zeros((size, 3))
        self.fallen = np.zeros(size, dtype=bool)
        pose = contract.default_position[self._to_robot]
        self.fleet.reset(np.arange(size), pose, START_HEIGHT)
        own = self.fleet.randomizer
        kp, kd = contract.gains.stiffness[self._to_robot], contract.gains.damping[self._to_robot]
        self._gains = Gains(kp * own.stiffness, kd * own.damping)
        rest = np.zeros((size, len(robot.joints)))
        self._active = JointTargets(0.0, np.tile(pose, (size, 1)), rest, rest.copy())
        self._pending: list[tuple[int, JointTargets]] = []  # step at which they were computed, oldest first
        # targets count from the next joint state on, as in the nodes, or after the drawn delay
        self._delay = np.maximum(1, np.ceil(own.delay_s / TIMESTEP - 1e-9)).astype(int)  # steps
        self._period = contract.period_s
        self._step = 0
        self._altered = 0

    @property
    def limited(self) -> float:
        """Share of joint-steps whose torque was altered."""
        return self._altered / max(1, self._step * self.command.shape[0] * self._to_robot.size)

    def policy_tick(self) -> None:
        """Run from one policy tick to the next, which comes when the nodes would have it come."""
        self._observe()
        due = False
        while not due:
            self._activate()
            self._physics()
            due = tick_due(self._step * TIMESTEP, (self._step - 1) * TIMESTEP, self._period)
        self.fallen |= fallen(self.fleet.quat_xyzw, self.fleet.qpos[:, 2])

    def _observe(self) -> None:
        seen = self.fleet.sense(self._step * TIMESTEP)
        order = self._to_policy
        state = RobotState(
            seen.stamp,
            seen.joint_pos[:, order],
            seen.joint_vel[:, order],
            seen.base_quat_xyzw,
            seen.base_ang_vel,
            self.fleet.lin_vel,
        )
        targets = self.runner.step(state, self.command)
        self._pending.append(
            (self._step, JointTargets(seen.stamp, *(getattr(targets, field)[:, self._to_robot] for field in FIELDS)))
        )

    def _activate(self) -> None:
        """Let targets count for the robots whose delay is over."""
        for born, targets in self._pending:
            now = self._delay == self._step - born
            if now.any():
                for field in FIELDS:
                    getattr(self._active, field)[now] = getattr(targets, field)[now]
        self._pending = [entry for entry in self._pending if self._step - entry[0] < self._delay.max()]

    def _physics(self) -> None:
        fleet, own = self.fleet, self.fleet.randomizer
        joint_pos, joint_vel = fleet.joint_pos + own.joint_offset, fleet.joint_vel
        torque, limited = self._limiter.apply(
            pd_torque(self._active, self._gains, joint_pos, joint_vel), joint_pos, joint_vel, TIMESTEP
        )
        fleet.ctrl[:] = torque * own.strength
        fleet.batch.step()
        self._step += 1
        self._altered += int(np.count_nonzero(limited))
