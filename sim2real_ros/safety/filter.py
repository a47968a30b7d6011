# SPDX-License-Identifier: Apache-2.0
"""`SafetyFilter`: the only way from targets to a torque.

One `step` per joint state: admit the state, decide on the mode, answer with its torque (`response.py`), watch what came of
it. Nothing of it knows ROS, the policy file or the clock of the machine: time is the stamp of the states.
"""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.safety import entry
from sim2real_ros.safety.adoption import Adopted, adopt
from sim2real_ros.safety.calm import Calm
from sim2real_ros.safety.certificate import Certificate, certify, gain_faults
from sim2real_ros.safety.checks import StateChecks
from sim2real_ros.safety.conduct import ConductMonitor
from sim2real_ros.safety.dynamics import coupling
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.following import PoseWatch
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.safety.modes import OPERATOR, TRANSITIONS, Event, Mode, possible
from sim2real_ros.safety.policy_link import PolicyLink
from sim2real_ros.safety.recorder import FlightRecorder
from sim2real_ros.safety.response import Response
from sim2real_ros.safety.stream import StreamMonitor
from sim2real_ros.safety.wiggle import Wiggle
from sim2real_ros.signals import Gains, JointTargets, RobotState, SafeImpedance, SafeTorque

REST_SPEED = 0.2  # rad/s
LONGEST_DT_S = 0.02  # what the torque may change by grows no further than this
OVERRUNS = 3  # ticks in a row that take longer than a period


class SafetyFilter:
    """State machine, monitors and limits of one robot. Arrays are (n,) in robot joint order.

    Attributes:
        mode: what the motors do now.
        fault: why it stopped, while in the mode `fault`.
        last_change: why the mode before this one was left: fault, withdrawal or operator; for diagnostics.
        obstacles: reasons from outside why the robot may not be armed, by name.
        wiggle: the joint whose turn it is in the mode `wiggle`, or was last.
        wiggle_joint: whose turn it is next.
        certificate: what its joints can brake.
        coupled: whether the barrier knows the mass matrix.
    """

    def __init__(self, robot: Robot, *, certificate: Certificate | None = None, recorder: FlightRecorder | None = None) -> None:
        """Prepare the filter of a robot.

        Args:
            robot: gives limits, gains and thresholds.
            certificate: of the robot, where it is known already.
            recorder: keeps what happened around every trip.

        Raises:
            DocumentError: the robot's own gains cannot be held at its rate; all are listed.
            DependencyError: the robot file asks for the coupled barrier and MuJoCo is not installed.
        """
        self.robot, self.mode, self.last_change = robot, Mode.OFF, ''
        self.fault: Fault | None = None
        self.certificate = certificate or certify(robot)
        hold, damp = Gains(robot.pose_move.stiffness, robot.pose_move.damping), Gains(0 * robot.damping, robot.damping)
        faults = gain_faults(robot, hold, self.certificate, 'pose_move')
        faults += gain_faults(robot, damp, self.certificate, 'mode damping')
        if faults:
            raise DocumentError(str(robot.path), faults)
        dynamics = coupling(robot)
        self.coupled = dynamics is not None
        self._response = Response(robot, TorqueLimiter(robot, certificate=self.certificate, dynamics=dynamics), recorder)
        self._checks, self._stream, self._conduct = StateChecks(robot), StreamMonitor(robot), ConductMonitor(robot)
        self._link, self._recorder = PolicyLink(), recorder
        self._pose_watch = PoseWatch(robot)
        self._state: RobotState | None = None
        self._first = True  # the next state is the first that is commanded on
        self._calm = Calm()
        self._operator_stamp = -math.inf
        self._overruns = 0
        self.obstacles: dict[str, str] = {}
        self.wiggle: Wiggle | None = None
        self.wiggle_joint = robot.joints[0]

    # --- the policy

    def accept(self, contract: Contract) -> None:
        """Take the contract of the policy that will send targets; whatever it says is held against the robot.

        Raises:
            JointError: it drives joints that the robot lacks.
            DocumentError: its default pose is outside the robot's limits, its gains cannot be held at the robot's rate, it
                is meant for another robot, or another policy is being followed now.
        """
        known = [policy.contract.id for policy in (self._link.adopted, self._link.candidate) if policy is not None]
        if self.mode is Mode.ACTIVE and contract.id in known:
            return  # a candidate takes over with its first targets
        if self._link.adopted is not None and contract.id == self._link.adopted.contract.id:
            return
        adopted = self._adopt(contract)
        if self.mode is Mode.ACTIVE:
            raise DocumentError(contract.source, ['another policy is active; announce this one as a candidate first'])
        self._link.accept(adopted)
        self._follow(adopted)
        if self.mode is Mode.POSE and self._state is not None:
            self._response.begin(Mode.POSE, Mode.POSE, self._state)

    def propose(self, contract: Contract) -> None:
        """Take the contract of a policy that will replace the one that is followed, from its first targets on.

        Raises:
            JointError, DocumentError: as `accept`; the policy that is followed goes on.
        """
        self._link.candidate = None
        self._link.candidate = self._adopt(contract)

    def _adopt(self, contract: Contract) -> Adopted:
        adopted = adopt(self.robot, contract)
        faults = gain_faults(self.robot, adopted.gains, self.certificate, 'gains')
        if faults:
            raise DocumentError(contract.source, faults)
        return adopted

    def _follow(self, adopted: Adopted) -> None:
        self._response.reference.goal = adopted.goal
        if self._recorder is not None:
            self._recorder.policy(adopted.contract.file.name, adopted.contract.id)

    @property
    def contract(self) -> Contract | None:
        """The accepted contract."""
        return self._link.adopted.contract if self._link.adopted is not None else None

    def joints_of(self, contract_id: str) -> tuple[str, ...] | None:
        """Return the joint order of targets of a contract; None where that was neither accepted nor proposed."""
        return self._link.joints_of(contract_id)

    def set_targets(self, contract_id: str, targets: JointTargets) -> None:
        """Take the newest targets, (k,) in the contract's joint order; they count from the next joint state on.

        Targets of a contract that was not accepted, or older than the newest, are ignored.
        """
        fault = self._link.offer(contract_id, targets, self._state.stamp if self._state is not None else None)
        if fault is not None and self.mode is Mode.ACTIVE:
            self.trip(fault)

    def awaits_targets(self, stamp: float) -> bool:
        """Return whether the policy has still to answer a tick from before a stamp; lockstep waits then."""
        return self.mode is Mode.ACTIVE and self._state is not None and self._link.behind(stamp, self._state.stamp)

    # --- the operator and the node

    def request(self, event: Event) -> str | None:
        """Ask for a mode change.

        Returns:
            None when it was done, else the reason for the refusal.
        """
        goal = TRANSITIONS.get((self.mode, event))
        if goal is None or event not in OPERATOR:
            return f'{event.value} is not possible in the mode {self.mode.value}; possible: {", ".join(possible(self.mode))}'
        if event is Event.ESTOP:
            self.trip(Fault('estop', 'emergency stop requested'), Event.ESTOP)
            return None
        refusal = self._refusal(goal)
        if refusal is None:
            self._enter(goal, f'operator: {event.value}')
        if refusal is None and event is Event.WIGGLE and self._state is not None:
            self.wiggle = Wiggle(self.robot, self.wiggle_joint, self._state)
        return refusal

    def trip(self, fault: Fault, event: Event = Event.FAULT) -> None:
        """Latch a fault. The first one stays; without power on the motors there is nothing to stop."""
        goal = TRANSITIONS.get((self.mode, event))
        if goal is None or self.fault is not None:
            return
        self.fault = fault
        if event is Event.FAULT and self._state is not None:
            self._calm.disturb(self._state.stamp, fault.message)
        self._note_trip(fault)
        self._enter(goal, f'{fault.name}: {fault.message}', abrupt=fault.abrupt)

    def withdraw(self, reason: Fault) -> None:
        """Leave what the robot was doing for damping; not latched."""
        goal = TRANSITIONS.get((self.mode, Event.WITHDRAW))
        if goal is not None:
            self._note_trip(reason)
            self._enter(goal, f'{reason.name}: {reason.message}')

    def operator_alive(self) -> None:
        """Take note of the operator's heartbeat."""
        if self._state is not None:
            self._operator_stamp = self._state.stamp

    def took(self, seconds: float) -> None:
        """Take note of how long a tick took; several in a row above the period end the motion."""
        self._overruns = self._overruns + 1 if seconds * self.robot.sensors.rate_hz > 1 else 0
        if self._overruns >= OVERRUNS:
            self.withdraw(Fault('loop_overrun', f'{OVERRUNS} ticks in a row took longer than a period'))

    @property
    def warnings(self) -> dict[str, str]:
        """What is odd but no fault, by name."""
        conduct = self._conduct.warnings if self.mode is Mode.ACTIVE else {}
        return {**self._stream.warnings, **self._checks.warnings, **conduct, **self.obstacles}

    # --- the loop

    def step(self, state: RobotState, arrival: float | None = None) -> SafeTorque | None:
        """Compute the torque that answers a joint state.

        Args:
            state: complete, joints in robot order.
            arrival: s on the machine's steady clock; None when stamps are simulated time.

        Returns:
            The torque to send; None in the mode `off` and for a state that is not newer than the last.
        """
        usable, fault = self._stream.see(state.stamp, arrival)
        if not usable:
            if fault is not None and self._state is not None:
                self._judge(self._state.stamp, fault)
            return None
        previous, self._state = self._state, state
        dt = max(state.stamp - previous.stamp, 0.0) if previous is not None else 0.0
        if previous is not None and state.stamp < previous.stamp:
            self._link.forget()
            self._operator_stamp = -math.inf  # else a heartbeat of before would count until the clock is there again
        fresh = self._link.advance(state.stamp)
        if fresh and self._link.succeed() and self._link.adopted is not None:
            self._follow(self._link.adopted)
            self._response.reference.hand_over(state.stamp)
            self._conduct.forget_targets()
        if self.mode is Mode.OFF:
            return None
        state, found = self._checks.check(state, 0.0 if self._first else dt)  # how old states were in `off` is no fault
        if self._first:
            self._calm.first(state.stamp)
            self._first = False
        self._judge(state.stamp, fault or found)
        if found is not None and not self._checks.joints_finite(state):  # no limit can be computed: damp what can be damped
            return self._response.blind(self.mode, state)
        if self.mode is Mode.ACTIVE:
            self._watch_policy(state.stamp, fresh)
        return self._command(state, min(dt, LONGEST_DT_S))

    def impedance(self, safe: SafeTorque) -> SafeImpedance:
        """Return the last torque as a command to drives with a PD law of their own."""
        return self._response.impedance(safe)

    @property
    def at_rest(self) -> bool:
        """Whether no joint moves, by the last state."""
        return self._state is not None and float(np.abs(self._state.joint_vel).max()) < REST_SPEED

    def rest(self) -> SafeTorque | None:
        """Return no torque at all, for when sensors are silent; None in the mode `off`."""
        if self.mode is Mode.OFF or self._state is None:
            return None
        return self._response.rest(self._state.stamp)

    def _judge(self, stamp: float, fault: Fault | None) -> None:
        """Trip on a fault, and remember when anything was last wrong."""
        if fault is not None:
            self._calm.disturb(stamp, fault.message)
            self.trip(fault)
        elif not self._checks.green or self.obstacles or self._calm.ahead(stamp):
            self._calm.disturb(stamp, '; '.join(self.warnings.values()) or 'a sensor is at the edge of its range')

    def _watch_policy(self, stamp: float, fresh: bool) -> None:
        timeout, targets, adopted = self.robot.monitors.operator_timeout_s, self._link.targets, self._link.adopted
        if self._link.silent(stamp):
            age = f'{1e3 * self._link.age(stamp):.0f} ms' if targets is not None else 'ever'
            self.withdraw(Fault('policy_timeout', f'no targets for {age}'))
        elif timeout is not None and stamp - self._operator_stamp > timeout:
            self.withdraw(Fault('operator_timeout', f'no heartbeat of the operator for {timeout:g} s'))
        elif fresh and targets is not None and adopted is not None:
            reason = self._conduct.see_targets(targets, adopted.gains)
            if reason is not None:
                self.withdraw(reason)

    def _command(self, state: RobotState, dt: float) -> SafeTorque:
        mode, response = self.mode, self._response
        if response.slack:
            going = self.wiggle if mode is Mode.WIGGLE else None
            return response.open_loop(mode, state, going.torque(state) if going is not None else None)
        safe = response.torque(mode, state, dt, self._link.followed())
        if safe is None:
            self.trip(Fault('non_finite_torque', f'the torque of the mode {mode.value}, or of its limits, is not finite'))
            return response.blind(self.mode, state)
        reason = None
        if mode is Mode.POSE and response.asked is not None:
            reason = self._pose_watch.see(response.asked.targets.position, state.joint_pos, dt)
        elif mode is Mode.ACTIVE and not response.reference.blending:
            reason = self._conduct.see_torque(int(np.count_nonzero(safe.limited)), dt)
        if reason is not None:
            self.withdraw(reason)
        return safe

    # --- modes

    def _refusal(self, goal: Mode) -> str | None:
        """Return why a mode cannot be entered now, or None."""
        state = self._state
        if state is None:
            return 'no complete sensor sample has arrived yet (joint_states, and imu/data for a floating base)'
        if not self._checks.finite(state):
            return f'{self._checks.not_finite(state).message}; does its driver have that state interface?'
        if self.mode in (Mode.OFF, Mode.FAULT, Mode.DAMPING):
            if self._stream.standing:
                return f'time stands still at {state.stamp:.3f} s: the simulation is paused, let it go on'
            if self.obstacles:
                return '; '.join(self.obstacles.values())
        reasons: list[str] = []
        if goal is Mode.ACTIVE or self.mode in (Mode.FAULT, Mode.DAMPING):
            reasons = self._calm.refusals(state.stamp, latched=self.mode is Mode.FAULT)
        if (self.mode, goal) == (Mode.DAMPING, Mode.DAMPING):
            return None
        if goal is Mode.ACTIVE or (self.mode, goal) == (Mode.DAMPING, Mode.POSE):
            reasons += entry.rest_refusals(self.robot, state)
        if goal is Mode.ACTIVE:
            reasons += self._policy_refusals(state)
        if goal is Mode.WIGGLE:
            reasons += entry.wiggle_refusals(self.robot, state, self.wiggle if self.mode is Mode.WIGGLE else None)
        return '; '.join(reasons) or None

    def _policy_refusals(self, state: RobotState) -> list[str]:
        timeout = self.robot.monitors.operator_timeout_s
        alone = timeout is not None and state.stamp - self._operator_stamp > timeout
        reasons = ["the operator's heartbeat is silent"] if alone else []
        reasons += entry.pose_refusals(self.robot, state, self._response.reference)
        return reasons + entry.policy_refusals(self.robot, state, self._link, self._response.acting, well=not reasons)

    def _enter(self, goal: Mode, why: str, *, abrupt: bool = False) -> None:
        if goal is self.mode:
            return
        if goal is not Mode.ACTIVE:
            self.last_change = why
        if goal is not Mode.FAULT:
            self.fault = None
        if self.mode is Mode.OFF:
            self._checks.reset()
            self._stream.begin_window()
            self._first = True
            self._calm.begin(self._state.stamp if self._state is not None else None)
        self._pose_watch.reset()
        if goal is Mode.ACTIVE:
            self._conduct.reset()
        self._response.begin(self.mode, goal, self._state, abrupt=abrupt)
        self.mode = goal

    def _note_trip(self, fault: Fault) -> None:
        if self._recorder is not None:
            self._recorder.trip(fault.name, fault.message)
