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
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.safety.adoption import Adopted, adopt
from sim2real_ros.safety.checks import Fault, StateChecks
from sim2real_ros.safety.entry import lean_refusals, pose_refusals
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.safety.modes import OPERATOR, TRANSITIONS, Event, Mode, possible
from sim2real_ros.safety.pose import PoseMove
from sim2real_ros.signals import Gains, JointTargets, RobotState, SafeTorque
from sim2real_ros.timing import tick_due

POLICY_TIMEOUT_PERIODS = 2.5  # newest targets older than this: damping, well within 3 policy periods
FUTURE_S = 0.1  # targets may answer a state that this filter has not seen yet, but not a later one
REST_SPEED = 0.2  # rad/s
BLEND_S = 0.3  # from holding the pose to following the policy


class SafetyFilter:
    """State machine, checks and limits of one robot. Arrays are (n,) in robot joint order.

    Attributes:
        mode: what the motors do now.
        fault: why it stopped, while in the mode `fault`.
        last_change: why the mode before this one was left: fault, time-out or operator; for diagnostics.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.mode = Mode.OFF
        self.fault: Fault | None = None
        self.last_change = ''
        self._checks = StateChecks(robot)
        self._limiter = TorqueLimiter(robot)
        self._still, self._ones = np.zeros(len(robot.joints)), np.ones(len(robot.joints))
        self._goal = robot.pose('stand')
        self._pose_gains = Gains(robot.pose_move.stiffness, robot.pose_move.damping)
        self._policy: Adopted | None = None
        self._targets: JointTargets | None = None
        self._next_targets: JointTargets | None = None
        self._move: PoseMove | None = None
        self._state: RobotState | None = None
        self._active_since = math.inf
        self._first = True  # the next state is the first that is commanded on

    # --- the policy

    def accept(self, contract: Contract) -> None:
        """Take the contract of the policy that will send targets; whatever it says is held against the robot.

        Raises:
            JointError: it drives joints that the robot lacks.
            DocumentError: its default pose is outside the robot's limits, or it is meant for another robot, or another
                policy is being followed now.
        """
        if self._policy is not None and contract.id == self._policy.contract.id:
            return
        adopted = adopt(self.robot, contract)
        if self.mode is Mode.ACTIVE:
            raise DocumentError(contract.source, ['another policy is active; leave the mode active before changing it'])
        self._policy, self._goal = adopted, adopted.goal
        self._targets = self._next_targets = None
        if self.mode is Mode.POSE and self._state is not None:
            self._begin_pose(self._state)

    @property
    def contract(self) -> Contract | None:
        """The accepted contract."""
        return self._policy.contract if self._policy is not None else None

    def set_targets(self, contract_id: str, targets: JointTargets) -> None:
        """Take the newest targets; they count from the next joint state on.

        Targets of a contract that was not accepted, or older than the newest, are ignored.

        Args:
            contract_id: contract that the targets belong to.
            targets: (k,) in the contract's joint order.
        """
        policy = self._policy
        if policy is None or contract_id != policy.contract.id:
            return
        newest = self._next_targets or self._targets
        if newest is not None and targets.stamp <= newest.stamp:
            return
        if self._state is None or targets.stamp - self._state.stamp > FUTURE_S:
            return
        spread = policy.spread(targets)
        if spread is not None:
            self._next_targets = spread
        elif self.mode is Mode.ACTIVE:
            name = policy.contract.file.name
            self.trip(Fault('bad_target', f'targets of policy {name} are not finite or of a wrong length'))

    def awaits_targets(self, stamp: float) -> bool:
        """Return whether a policy that has kept pace has still to answer a tick from before a stamp; lockstep waits then."""
        newest, previous = self._next_targets or self._targets, self._state
        if self.mode is not Mode.ACTIVE or self._policy is None or newest is None or previous is None:
            return False
        period = self._policy.contract.period_s
        behind = newest.stamp < previous.stamp and tick_due(previous.stamp, newest.stamp, period)
        return behind and stamp - newest.stamp < 2 * period

    # --- the operator

    def request(self, event: Event) -> str | None:
        """Ask for a mode change.

        Returns:
            None when it was done, else the reason for the refusal.
        """
        goal = TRANSITIONS.get((self.mode, event))
        if goal is None or event not in OPERATOR:
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
        fault = self._checks.check(state, 0.0 if self._first else dt)  # how old states were in `off` is no fault
        self._first = False
        if fault is not None:
            self.trip(fault)
        self._check_policy(state)
        if fault is not None and not self._checks.joints_finite(state):  # no limit can be computed: damp what can be damped
            self._limiter.reset()
            return last_resort(self.robot, state.stamp, state.joint_vel)
        wanted = self._torque(state)
        torque, limited = self._limiter.apply(wanted, state.joint_pos, state.joint_vel, min(max(dt, 0.0), 0.02))
        if not math.isfinite(self._ones @ torque):
            self.trip(Fault('non_finite_torque', f'the torque of the mode {self.mode.value} is not finite'))
            return self.rest()
        return SafeTorque(state.stamp, torque, limited)

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves, by the last state."""
        return self._state is not None and float(np.abs(self._state.joint_vel).max()) < REST_SPEED

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
        if self.mode is Mode.ACTIVE and self._policy is not None and self._targets is not None:
            followed = pd_torque(self._targets, self._policy.gains, q, v)
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
        return POLICY_TIMEOUT_PERIODS * self._policy.contract.period_s if self._policy is not None else 0.0

    def _policy_age(self, state: RobotState) -> float:
        return state.stamp - self._targets.stamp if self._targets is not None else math.inf

    def _refusal(self, goal: Mode) -> str | None:
        """Return why a mode cannot be entered now, or None."""
        state = self._state
        if state is None:
            return 'no complete sensor sample has arrived yet (joint_states, and imu/data for a floating base)'
        if not self._checks.finite(state):
            return 'the last sensor sample is not finite'
        if self.mode is Mode.FAULT and (cause := self._checks.cause(state)) is not None:
            return f'the cause is still there: {cause.message}'
        reasons = lean_refusals(self.robot, state) if goal in (Mode.POSE, Mode.ACTIVE) else []
        if goal is Mode.ACTIVE:
            reasons += self._policy_refusals(state) + pose_refusals(self.robot, state, self._goal)
        return '; '.join(reasons) or None

    def _policy_refusals(self, state: RobotState) -> list[str]:
        reasons = []
        if self._policy is None:
            reasons.append('no policy has announced its contract')
        elif self._policy_age(state) > self._policy_timeout():
            reasons.append(f'policy {self._policy.contract.file.name} sends no targets (is policy_node active?)')
        if self._move is None or not self._move.done(state.stamp):
            reasons.append('the move into the default pose is not over')
        return reasons

    def _enter(self, goal: Mode, why: str) -> None:
        if goal not in (self.mode, Mode.ACTIVE):
            self.last_change = why
        if goal is not Mode.FAULT:
            self.fault = None
        if self.mode in (Mode.OFF, Mode.FAULT):
            self._checks.reset()
        if self.mode is Mode.OFF:
            self._limiter.reset()
            self._first = True
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
