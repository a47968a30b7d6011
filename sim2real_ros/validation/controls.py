# SPDX-License-Identifier: Apache-2.0
"""`Controls`: the stages of the nodes on B robots at once: policy at its rate, PD, limits and checks at the joint states' rate.

The order of a control tick is the nodes': the state of a tick goes to the policy (when a tick of its is due) and to the
limits; targets that answer a state count from the next state on, or after the drawn delay.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.contract import Contract
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.robot import Robot
from sim2real_ros.safety.certificate import Certificate
from sim2real_ros.safety.fleet_checks import FleetChecks
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.signals import Gains, JointTargets, RobotState
from sim2real_ros.timing import tick_due
from sim2real_ros.validation.draws import Draws

FIELDS = ('position', 'velocity', 'effort')  # of targets


class Controls:
    """Policy and safety stages of B robots; arrays are (B, n) in robot order.

    Attributes:
        checks: what the safety filter would have stopped them for.
        altered: (B,) share of joint torques altered in the last tick.
        torque: (B, n) N m, the last one.
    """

    def __init__(self, robot: Robot, contract: Contract, certificate: Certificate, draws: Draws, pose: np.ndarray) -> None:
        """Load the policy and hold a pose (n,) rad until its first targets; raises what `PolicyRunner` raises."""
        size, values = len(draws.indices), draws.values
        self.runner = PolicyRunner(contract, (size,))
        self.checks = FleetChecks(robot, size)
        self._limiter = TorqueLimiter(robot, (size,), certificate=certificate)
        self._dt, self._period = 1.0 / robot.sensors.rate_hz, contract.period_s
        self._to_policy = np.array([robot.joints.index(joint) for joint in contract.joints])
        self._to_robot = np.array([contract.joints.index(joint) for joint in robot.joints])
        kp, kd = (gains[self._to_robot] for gains in (contract.gains.stiffness, contract.gains.damping))
        self._asked = Gains(kp, kd)
        self._gains = Gains(kp * values['stiffness_factor'], kd * values['damping_factor'])
        rest = np.zeros((size, len(robot.joints)))
        self._active = JointTargets(0.0, np.tile(pose, (size, 1)), rest, rest.copy())
        self._delay = np.maximum(1, np.ceil(values['action_delay_s'] / self._dt - 1e-9)).astype(int)  # control ticks
        self._pending: list[tuple[int, JointTargets]] = []  # control tick that they answer, oldest first
        self._tick = 0
        self.altered, self.torque = np.zeros(size), rest.copy()

    def due(self) -> bool:
        """Return whether the policy answers the coming state."""
        return self._tick == 0 or tick_due(self._tick * self._dt, (self._tick - 1) * self._dt, self._period)

    def step(self, state: RobotState, command: np.ndarray, gap: np.ndarray | int = 1) -> np.ndarray:
        """Answer the state of one control tick.

        Args:
            state: with the signals that the policy needs.
            command: (B, 3) m/s, m/s, rad/s.
            gap: (B,) periods since the last sample that was a new one.

        Returns:
            Torque (B, n) N m; used again by the next call.

        Raises:
            NetworkError: an observation or action is not finite.
        """
        due = self.due()
        self._activate()
        state = self.checks.see_state(state, gap)
        wanted = pd_torque(self._active, self._gains, state.joint_pos, state.joint_vel)
        self.torque, limited = self._limiter.apply(wanted, state.joint_pos, state.joint_vel, self._dt)
        self.altered = np.count_nonzero(limited, axis=-1) / limited.shape[-1]
        self.checks.see_torque(self.altered)
        if due:
            self._pending.append((self._tick, self._ask(state, command)))
        self._tick += 1
        return self.torque

    def _ask(self, state: RobotState, command: np.ndarray) -> JointTargets:
        order = self._to_policy
        view = RobotState(
            state.stamp, state.joint_pos[:, order], state.joint_vel[:, order], state.base_quat_xyzw, state.base_ang_vel,
            state.base_lin_vel, base_pos=state.base_pos,
        )  # fmt: skip
        targets = self.runner.step(view, command)
        own = JointTargets(state.stamp, *(getattr(targets, field)[:, self._to_robot] for field in FIELDS))
        self.checks.see_targets(own, self._asked)
        return own

    def _activate(self) -> None:
        """Let targets count for the robots whose delay is over."""
        for born, targets in self._pending:
            now = self._delay == self._tick - born
            if now.all():
                self._active = targets
            elif now.any():
                self._active = JointTargets(
                    targets.stamp,
                    *(np.where(now[:, None], getattr(targets, field), getattr(self._active, field)) for field in FIELDS),
                )
        self._pending = [entry for entry in self._pending if self._tick - entry[0] < self._delay.max()]
