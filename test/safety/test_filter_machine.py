# SPDX-License-Identifier: Apache-2.0
"""The filter as a state machine under random events, states, targets and contracts, whatever their order.

A few seconds by default; `HYPOTHESIS_PROFILE=nightly pytest test/safety/test_filter_machine.py --timeout 0` runs 100,000 cases.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from safety_rig import DT, contract, go2, lean, rig_in

from sim2real_ros.errors import DocumentError
from sim2real_ros.safety import Mode, SafetyFilter, filter
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.modes import TRANSITIONS, Event
from sim2real_ros.signals import JointTargets, RobotState, SafeTorque

ROBOT = go2()
N = len(ROBOT.joints)
OTHER = contract(name='other', stiffness={'.*': 40.0})
WRONG = contract(default_position={'.*': 2.0})
ARROWS = {(source, goal) for (source, _), goal in TRANSITIONS.items()}
ODD = st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e12, 30.0, -30.0, 3.0, 0.3, -0.05])
JOINT = st.integers(0, N - 1)
OUTSIDE = 'said_from_outside'


def names_of_tables() -> set[str]:
    """Return every name that the package gives a finding, plus the one of this test; all are in the tables of the docs."""
    names = {OUTSIDE}
    for path in Path(filter.__file__).parent.glob('*.py'):
        names |= set(re.findall(r"(?:Fault|_fault)\(\s*'(\w+)'", path.read_text(encoding='utf-8')))
    return names


NAMES = names_of_tables()


class Watched(SafetyFilter):
    """A filter that notes every change of its mode."""

    changes: list[tuple[Mode, Mode]]

    def _enter(self, goal: Mode, why: str, *, abrupt: bool = False) -> None:
        self.changes.append((self.mode, goal))
        super()._enter(goal, why, abrupt=abrupt)


class FilterMachine(RuleBasedStateMachine):
    """Everything that a robot, a policy, an operator or another node can do to the filter."""

    @initialize(mode=st.sampled_from(Mode))
    def begin(self, mode: Mode) -> None:
        self.rig = rig_in(mode)
        self.safety = self.rig.safety
        self.safety.__class__, self.safety.changes = Watched, []
        self.seen = mode
        self.twin: SafetyFilter | None = None  # a filter with the same past, and no policy since the latch
        self.follow()

    def follow(self, *, reset: bool = False) -> None:
        """Check the changes since the last call, and keep the twin."""
        for source, goal in self.safety.changes:
            assert source is self.seen, 'a mode was left without being entered'
            assert source is goal or (source, goal) in ARROWS
            assert source is not Mode.FAULT or goal is Mode.FAULT or reset, 'a fault was left without a reset'
            self.seen = goal
        self.safety.changes.clear()
        assert self.safety.mode is self.seen
        fault = self.safety.fault
        assert (fault is not None) is (self.seen is Mode.FAULT)
        assert fault is None or fault.name in NAMES
        name = self.safety.last_change.split(':')[0]
        assert name in NAMES | {'', 'operator'}
        if self.seen is not Mode.FAULT:
            self.twin = None
        elif self.twin is None:
            shared = (self.rig.robot, self.rig.contract, self.safety.certificate)
            self.twin = copy.deepcopy(self.safety, {id(part): part for part in shared})

    def feed(self, state: RobotState, *, newer: bool) -> None:
        """Let the filter answer a state; a latched one answers like its twin, which has no policy, bit for bit."""
        twin = self.twin
        safe = self.safety.step(state)
        self.check(safe)
        if newer and self.safety.mode is not Mode.OFF:
            assert safe is not None
        if twin is not None:
            other = twin.step(state)
            assert (safe is None) is (other is None)
            if safe is not None and other is not None:
                assert safe.torque.tobytes() == other.torque.tobytes()
        self.follow()

    def check(self, safe: SafeTorque | None) -> None:
        """A torque is finite and within effort; in the mode off there is none."""
        if safe is None:
            return
        assert self.safety.mode is not Mode.OFF
        assert np.isfinite(safe.torque).all()
        assert (np.abs(safe.torque) <= ROBOT.limits.effort).all()
        command = self.safety.impedance(safe).impedance
        parts = (command.targets.position, command.targets.velocity, command.targets.effort)
        assert all(np.isfinite(part).all() for part in (*parts, command.gains.stiffness, command.gains.damping))

    # --- the robot

    @rule(ticks=st.integers(1, 20))
    def go_on(self, ticks: int) -> None:
        for _ in range(ticks):
            rig = self.rig
            rig.k += 1
            if rig.target is not None and rig.k % 10 == 0:
                rig.send(rig.target)
                self.follow()
            self.feed(rig.state(), newer=True)

    @precondition(lambda self: self.seen in (Mode.FAULT, Mode.DAMPING))
    @rule(event=st.sampled_from([Event.RESET, Event.POSE]))
    def go_on_for_a_second(self, event: Event) -> None:
        self.calm_down()
        self.go_on(510)
        self.request(event)

    @rule(ticks=st.integers(1, 4), field=st.sampled_from(['joint_pos', 'joint_vel']), joint=JOINT, value=ODD)
    def odd_joint(self, ticks: int, field: str, joint: int, value: float) -> None:
        for _ in range(ticks):
            self.rig.k += 1
            state = self.rig.state()
            getattr(state, field)[joint] += value
            self.feed(state, newer=True)

    @rule(index=st.integers(0, 3), value=ODD, turn=st.none() | st.lists(ODD, min_size=3, max_size=3).map(np.array))
    def odd_imu(self, index: int, value: float, turn: np.ndarray | None) -> None:
        self.rig.k += 1
        state = self.rig.state(base_ang_vel=turn)
        state.base_quat_xyzw[index] = value
        self.feed(state, newer=True)

    @rule(age=st.sampled_from([0.0, 0.01, 0.03, np.nan, -1.0]))
    def age_of_imu(self, age: float) -> None:
        self.rig.imu_age = age

    @rule(angle=st.sampled_from([0.0, 0.2, 0.5, 1.2, 3.0]))
    def lean(self, angle: float) -> None:
        self.rig.quat = lean(angle)

    @rule(speed=st.floats(-3, 3), joint=JOINT)
    def turn_a_joint(self, speed: float, joint: int) -> None:
        self.rig.v[joint] = speed
        self.rig.q[joint] += speed * DT

    @rule()
    def calm_down(self) -> None:
        self.rig.q, self.rig.v = ROBOT.pose('stand').copy(), np.zeros(N)
        self.rig.quat, self.rig.imu_age = lean(0.0), 0.0
        self.rig.target = self.rig.contract.default_position.copy()

    @rule(periods=st.sampled_from([2, 5, 15, 300, 1500]))
    def lose_states(self, periods: int) -> None:
        self.rig.k += periods
        self.feed(self.rig.state(), newer=True)

    @rule(periods=st.sampled_from([0, 1, 50, 99, 101, 1000, 100000]))
    def set_clock_back(self, periods: int) -> None:
        state = self.rig.state(stamp=self.rig.stamp - periods * DT)
        self.feed(state, newer=False)
        if self.safety._stream._last == state.stamp:  # taken for the time from now on, not for a message that was overtaken
            self.rig.k -= periods

    @rule()
    def same_state_with_a_new_stamp(self) -> None:
        state = self.rig.state()
        for _ in range(27):
            self.rig.k += 1
            self.feed(replace(state, stamp=self.rig.stamp), newer=True)

    # --- the policy

    @rule(offset=st.floats(-3, 3), joint=JOINT)
    def wish(self, offset: float, joint: int) -> None:
        self.rig.target = self.rig.contract.default_position.copy()
        self.rig.target[joint] += offset

    @rule()
    def fall_silent(self) -> None:
        self.rig.target = None

    @rule(
        own=st.sampled_from(['rig', 'other', 'nobody']),
        n=st.sampled_from([N, N, N, N - 1, 0]),
        values=st.tuples(ODD, ODD, ODD) | st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2)),
        late=st.sampled_from([0.0, 0.01, 1.0, -0.05, -10.0, np.nan]),
    )
    def send(self, own: str, n: int, values: tuple[float, float, float], late: float) -> None:
        contract_id = {'rig': self.rig.contract.id, 'other': OTHER.id, 'nobody': '0123456789ab'}[own]
        targets = JointTargets(self.rig.stamp - late, *(np.full(n, value) for value in values))
        self.safety.set_targets(contract_id, targets)
        self.follow()

    @rule(own=st.sampled_from(['rig', 'other', 'wrong']))
    def announce(self, own: str) -> None:
        try:
            self.safety.accept({'rig': self.rig.contract, 'other': OTHER, 'wrong': WRONG}[own])
        except DocumentError:
            assert own == 'wrong' or self.safety.mode is Mode.ACTIVE
        else:
            assert own != 'wrong'
        self.follow()

    # --- operator and nodes

    @rule(event=st.sampled_from(Event))
    def request(self, event: Event) -> None:
        before = self.safety.mode
        refusal = self.safety.request(event)
        if refusal is None:
            assert self.safety.mode is TRANSITIONS[before, event]
        else:
            assert refusal
            assert self.safety.mode is before
        self.follow(reset=event is Event.RESET and refusal is None)

    @rule(latch=st.booleans())
    def report(self, latch: bool) -> None:
        (self.safety.trip if latch else self.safety.withdraw)(Fault(OUTSIDE, 'by a node'))
        self.follow()

    @rule(seconds=st.sampled_from([0.001, 0.0021, 1.0]))
    def take_time(self, seconds: float) -> None:
        self.safety.took(seconds)
        self.follow()

    @rule(there=st.booleans())
    def rival(self, there: bool) -> None:
        self.safety.obstacles = {'rival': 'another node commands'} if there else {}

    @rule()
    def rest(self) -> None:
        safe = self.safety.rest()
        if self.twin is not None:
            self.twin.rest()
        self.check(safe)
        assert (safe is None) is (self.safety.mode is Mode.OFF or self.safety._state is None)
        assert safe is None or not safe.torque.any()

    @invariant()
    def says_what_is_odd(self) -> None:
        assert all(isinstance(text, str) and text for text in self.safety.warnings.values())


TestFilterMachine = pytest.mark.filterwarnings('ignore::RuntimeWarning')(FilterMachine.TestCase)  # of numbers near 1e308
EXAMPLES = settings.default.max_examples if settings.default.max_examples > 1000 else 20
TestFilterMachine.settings = settings(max_examples=EXAMPLES, stateful_step_count=30)


def test_every_name_of_a_finding_is_in_the_tables_of_the_documentation():
    text = (Path(__file__).parents[2] / 'docs' / 'safety.md').read_text(encoding='utf-8')
    assert {name for name in NAMES - {OUTSIDE} if name not in text} == set()
