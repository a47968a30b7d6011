# SPDX-License-Identifier: Apache-2.0
"""`SafetyFilter`: the only way from targets to a torque, and the only maker of `SafeTorque`.

One `step` per joint state: check the sensors, compute the torque of the mode, blend, limit, send. Nothing of it knows
ROS, the policy file or the clock of the machine: time is the stamp of the states.
"""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.action.pd import pd_torque
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DocumentError, JointError
from sim2real_ros.robot import Robot
from sim2real_ros.safety.checks import Fault, StateChecks
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.safety.modes import TRANSITIONS, Event, Mode, possible
from sim2real_ros.safety.pose import PoseMove
from sim2real_ros.signals import Gains, JointTargets, RobotState, SafeTorque

POLICY_TIMEOUT_PERIODS = 2.5  # newest targets older than this: damping, well within 3 policy periods
BLEND_S = 0.3  # from holding the pose to following the policy
ENTRY_POSE_ERROR = 0.35  # rad, largest distance from the default pose on activation
ENTRY_TILT = 0.5  # rad
ENTRY_SPEED = 1.0  # rad/s, fastest joint


class SafetyFilter:
    """State machine, checks and limits of one robot. Arrays are (n,) in robot joint order.

    Attributes:
        mode: what the motors do now.
        fault: why it stopped, while in the mode `fault`.
        last_stop: why the policy was left the last time (fault, time-out or operator), for diagnostics.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.mode = Mode.OFF
        self.fault: Fault | None = None
        self.last_stop = ''
        self._checks = StateChecks(robot)
        self._limiter = TorqueLimiter(robot)
        self._still = np.zeros(len(robot.joints))
        self._goal = robot.pose('stand')
        self._pose_gains = Gains(robot.pose_move.stiffness, robot.pose_move.damping)
        self._contract: Contract | None = None
        self._gains = self._pose_gains
        self._targets: JointTargets | None = None
        self._next_targets: JointTargets | None = None
        self._move: PoseMove | None = None
        self._state: RobotState | None = None
        self._active_since = math.inf

    # --- the policy

    def accept(self, contract: Contract) -> None:
        """Take the contract of the policy that will send targets; whatever it says is held against the robot.

        Raises:
            JointError: it drives joints that the robot lacks.
            DocumentError: its default pose is outside the robot's limits, or it is meant for another robot, or another
                policy is being followed now.
        """
        robot, file = self.robot, contract.file
        if self._contract is not None and contract.id == self._contract.id:
            return
        unknown = [joint for joint in contract.joints if joint not in robot.joints]
        if unknown:
            raise JointError(
                f'policy {file.name} drives {", ".join(unknown)}, which robot {robot.name} does not have; its joints are '
                f'{", ".join(robot.joints)}',
                extra=unknown,
            )
        faults = []
        if file.robot != robot.name:
            faults.append(f'robot: the policy was made for "{file.robot}", this robot is "{robot.name}"')
        if self.mode is Mode.ACTIVE:
            faults.append('another policy is active; leave the mode active before changing the policy')
        index = np.array([robot.joints.index(joint) for joint in contract.joints])
        for i, name, value in zip(index, contract.joints, contract.default_position, strict=True):
            if not robot.limits.lower[i] <= value <= robot.limits.upper[i]:
                faults.append(
                    f"default_position.{name}: {value:g} rad is outside the robot's range "
                    f'[{robot.limits.lower[i]:g}, {robot.limits.upper[i]:g}]'
                )
        if faults:
            raise DocumentError(contract.source, faults)
        # joints that the policy does not drive are held at the robot's standing pose with the pose gains
        goal, kp, kd = robot.pose('stand').copy(), robot.pose_move.stiffness.copy(), robot.pose_move.damping.copy()
        goal[index], kp[index], kd[index] = contract.default_position, contract.gains.stiffness, contract.gains.damping
        self._index = index
        self._goal, self._gains, self._contract = goal, Gains(kp, kd), contract
        self._targets = self._next_targets = None
        if self.mode is Mode.POSE and self._state is not None:
            self._begin_pose(self._state)

    @property
    def contract(self) -> Contract | None:
        """The accepted contract."""
        return self._contract

    def set_targets(self, contract_id: str, targets: JointTargets) -> None:
        """Take the newest targets; they count from the next joint state on.

        Targets of a contract that was not accepted, or older than the newest, are ignored.

        Args:
            contract_id: contract that the targets belong to.
            targets: (k,) in the contract's joint order.
        """
        contract = self._contract
        if contract is None or contract_id != contract.id:
            return
        newest = self._next_targets or self._targets
        if newest is not None and targets.stamp <= newest.stamp:
            return
        values = np.stack((targets.position, targets.velocity, targets.effort))
        if values.shape[1] != len(contract.joints) or not np.isfinite(values).all():
            if self.mode is Mode.ACTIVE:
                self.trip(Fault('bad_target', f'targets of policy {contract.file.name} are not finite or of a wrong length'))
            return
        full = np.zeros((3, len(self.robot.joints)))
        full[0] = self._goal
        full[:, self._index] = values
        self._next_targets = JointTargets(targets.stamp, full[0], full[1], full[2])

    # --- the operator

    def request(self, event: Event) -> str | None:
        """Ask for a mode change.

        Returns:
            None when it was done, else the reason for the refusal.
        """
        goal = TRANSITIONS.get((self.mode, event))
        if goal is None:
            return f'{event.value} is not possible in the mode {self.mode.value}; possible: {", ".join(possible(self.mode))}'
        if event is Event.ESTOP:
            self.trip(Fault('estop', 'emergency stop requested'))
            return None
        refusal = self._refusal(goal)
        if refusal is None:
            self._enter(goal, f'operator: {event.value}')
        return refusal

    def trip(self, fault: Fault) -> None:
        """Latch a fault. The first one stays; without power on the motors there is nothing to stop."""
        if self.fault is None and (self.mode is not Mode.OFF or fault.name == 'estop'):
            self.fault = fault
            self._enter(Mode.FAULT, f'{fault.name}: {fault.message}')

    # --- the loop

    def step(self, state: RobotState) -> SafeTorque | None:
        """Compute the torque that answers a joint state.

        Args:
            state: complete, joints in robot order.

        Returns:
            The torque, or None when nothing may be commanded: in the mode `off`, and for a state that was seen before.
        """
        previous = self._state
        dt = state.stamp - previous.stamp if previous is not None else 0.0
        if previous is not None and dt == 0:
            return None
        self._state = state
        if dt < 0:  # the clock started afresh: targets of before it would look new for ever
            self._targets = self._next_targets = None
        if self._next_targets is not None and self._next_targets.stamp < state.stamp:
            self._targets, self._next_targets = self._next_targets, None
        if self.mode is Mode.OFF:
            return None
        fault = self._checks.check(state, dt)
        if fault is not None:
            self.trip(fault)
        self._check_policy(state)
        if not self._checks.finite(state):
            return self.rest()  # damping from a NaN speed would be NaN
        wanted = self._torque(state)
        torque, limited = self._limiter.apply(wanted, state.joint_pos, state.joint_vel, min(max(dt, 0.0), 0.02))
        if not math.isfinite(float(torque.sum())):
            self.trip(Fault('non_finite_torque', f'the torque of the mode {self.mode.value} is not finite'))
            return self.rest()
        return SafeTorque(state.stamp, torque, limited)

    def rest(self) -> SafeTorque | None:
        """Return no torque at all, for when sensors are silent; None in the mode `off`."""
        if self.mode is Mode.OFF or self._state is None:
            return None
        self._limiter.reset()
        return SafeTorque(self._state.stamp, self._still, self._still.astype(np.uint8))

    def _torque(self, state: RobotState) -> np.ndarray:
        q, v = state.joint_pos, state.joint_vel
        if self.mode in (Mode.DAMPING, Mode.FAULT) or self._move is None:
            return -self.robot.damping * v
        since = state.stamp - self._active_since
        if self.mode is Mode.ACTIVE and self._targets is not None:
            followed = pd_torque(self._targets, self._gains, q, v)
            if since >= BLEND_S:
                return followed
            s = max(since, 0.0) / BLEND_S
            share = s * s * (3 - 2 * s)
            return share * followed + (1 - share) * pd_torque(self._move.targets(state.stamp), self._pose_gains, q, v)
        return pd_torque(self._move.targets(state.stamp), self._pose_gains, q, v)

    def _check_policy(self, state: RobotState) -> None:
        if self.mode is Mode.ACTIVE and not self._policy_age(state) <= self._policy_timeout():
            self._enter(Mode.DAMPING, f'policy_timeout: no targets for {1e3 * self._policy_age(state):.0f} ms')

    def _policy_timeout(self) -> float:
        return POLICY_TIMEOUT_PERIODS * self._contract.period_s if self._contract is not None else 0.0

    def _policy_age(self, state: RobotState) -> float:
        return state.stamp - self._targets.stamp if self._targets is not None else math.inf

    def _refusal(self, goal: Mode) -> str | None:
        """Return why a mode cannot be entered now, or None."""
        state = self._state
        if state is None:
            return 'no complete sensor sample has arrived yet (joint_states, and imu/data for a floating base)'
        if not self._checks.finite(state):
            return 'the last sensor sample is not finite'
        reasons = []
        if goal in (Mode.POSE, Mode.ACTIVE) and self.robot.floating:
            x, y = state.base_quat_xyzw[0], state.base_quat_xyzw[1]
            lean = math.acos(max(-1.0, min(1.0, 1 - 2 * float(x * x + y * y))))
            if lean > ENTRY_TILT:
                reasons.append(f'the base leans by {lean:.2f} rad, allowed {ENTRY_TILT} rad')
        if goal is Mode.ACTIVE:
            reasons += self._activation_refusals(state)
        return '; '.join(reasons) or None

    def _activation_refusals(self, state: RobotState) -> list[str]:
        reasons = []
        if self._contract is None:
            reasons.append('no policy has announced its contract')
        elif self._policy_age(state) > self._policy_timeout():
            reasons.append(f'policy {self._contract.file.name} sends no targets (is policy_node active?)')
        if self._move is None or not self._move.done(state.stamp):
            reasons.append('the move into the default pose is not over')
        error = np.abs(state.joint_pos - self._goal)
        if error.max() > ENTRY_POSE_ERROR:
            worst = int(error.argmax())
            reasons.append(
                f'{self.robot.joints[worst]} is {error[worst]:.2f} rad from the default pose, allowed {ENTRY_POSE_ERROR}'
            )
        if np.abs(state.joint_vel).max() > ENTRY_SPEED:
            worst = int(np.abs(state.joint_vel).argmax())
            reasons.append(f'{self.robot.joints[worst]} moves at {state.joint_vel[worst]:.2f} rad/s, allowed {ENTRY_SPEED}')
        return reasons

    def _enter(self, goal: Mode, why: str) -> None:
        if goal not in (self.mode, Mode.ACTIVE):
            self.last_stop = why
        if goal is not Mode.FAULT:
            self.fault = None
        if self.mode in (Mode.OFF, Mode.FAULT):
            self._checks.reset()
        if self.mode is Mode.OFF:
            self._limiter.reset()
        if goal is Mode.POSE and self._state is not None:
            self._begin_pose(self._state)
        self._active_since = self._state.stamp if goal is Mode.ACTIVE and self._state is not None else math.inf
        self.mode = goal

    def _begin_pose(self, state: RobotState) -> None:
        self._move = PoseMove(self.robot, state, self._limiter.torque, self._goal)


def last_resort(robot: Robot, stamp: float, joint_vel: np.ndarray) -> SafeTorque:
    """Return the torque of a watchdog that knows nothing but the joint speeds: damping, or none where they are not finite.

    Args:
        robot: gives the damping gains and the effort limits.
        stamp: s, of the joint sample.
        joint_vel: (n,) rad/s, robot order.
    """
    torque = np.where(np.isfinite(joint_vel), -robot.damping * joint_vel, 0.0)
    torque = np.clip(torque, -robot.limits.effort, robot.limits.effort)
    return SafeTorque(stamp, torque, np.zeros(len(torque), np.uint8))
