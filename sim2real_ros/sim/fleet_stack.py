# SPDX-License-Identifier: Apache-2.0
"""`FleetStack`: the stages of the nodes on a whole fleet at once: policy at its rate, PD and limits at the joint-state rate."""

from __future__ import annotations

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.contract import Contract
from sim2real_ros.errors import JointError
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.signals import Gains, JointTargets, RobotState
from sim2real_ros.sim.fleet import Fleet
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.sim.verdict import START_HEIGHT, fallen

TIMESTEP = 0.002  # s


class FleetStack:
    """B robots under one policy.

    Modes and latched faults are the business of one robot's `SafetyFilter`; here a robot that leans or sinks too far
    simply counts as fallen.

    Attributes:
        fleet: the robots.
        command: (B, 3) m/s, m/s, rad/s.
        fallen: (B,) whether each has fallen.
        limited: share of joint-steps whose torque the limiter altered.
    """

    def __init__(self, robot: Robot, contract: Contract, size: int, ranges: Ranges, seed: int) -> None:
        """Build the fleet and stand it up in the policy's default pose; raises what its parts raise."""
        self.fleet = Fleet(robot, size, ranges=ranges, seed=seed, timestep=TIMESTEP)
        self._runner = PolicyRunner(contract, (size,))
        unknown = [joint for joint in robot.joints if joint not in contract.joints]
        if unknown:
            raise JointError(f'policy {contract.file.name} does not drive {", ".join(unknown)} of robot {robot.name}')
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
        self._active = self._next = JointTargets(0.0, np.tile(pose, (size, 1)), rest, rest)
        self._ticks_per_policy = round(contract.period_s / TIMESTEP)
        # targets count from the next joint state on, as in the nodes, or after the drawn delay
        self._release = np.maximum(1, np.ceil(own.delay_s / TIMESTEP - 1e-9)).astype(int)
        self._step = 0
        self._altered = 0

    @property
    def limited(self) -> float:
        """Share of joint-steps whose torque was altered."""
        return self._altered / max(1, self._step * self.command.shape[0] * self._to_robot.size)

    def policy_tick(self) -> None:
        """Run one policy period."""
        self._observe()
        for substep in range(self._ticks_per_policy):
            if substep < self._release.max() + 1:
                new = (substep >= self._release)[:, None]
                now = JointTargets(0.0, *(np.where(new, getattr(self._next, f), getattr(self._active, f)) for f in FIELDS))
            self._physics(now)
        self._active = self._next
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
        targets = self._runner.step(state, self.command)
        self._next = JointTargets(seen.stamp, *(getattr(targets, field)[:, self._to_robot] for field in FIELDS))

    def _physics(self, targets: JointTargets) -> None:
        fleet, own = self.fleet, self.fleet.randomizer
        joint_pos, joint_vel = fleet.joint_pos + own.joint_offset, fleet.joint_vel
        torque, limited = self._limiter.apply(
            pd_torque(targets, self._gains, joint_pos, joint_vel), joint_pos, joint_vel, TIMESTEP
        )
        fleet.ctrl[:] = torque * own.strength
        fleet.batch.step()
        self._step += 1
        self._altered += int(np.count_nonzero(limited))


FIELDS = ('position', 'velocity', 'effort')
