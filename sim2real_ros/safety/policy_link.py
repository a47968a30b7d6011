# SPDX-License-Identifier: Apache-2.0
"""`PolicyLink`: the policy as the safety filter sees it, from outside: a contract, and targets that come or do not come."""

from __future__ import annotations

import math

from sim2real_ros.safety.adoption import Adopted
from sim2real_ros.safety.findings import Fault
from sim2real_ros.signals import Impedance, JointTargets
from sim2real_ros.timing import tick_due

TIMEOUT_PERIODS = 2.5  # newest targets older than this: damping, well within 3 policy periods
FUTURE_S = 0.1  # targets may answer a state that the filter has not seen yet, but not a later one


class PolicyLink:
    """The accepted policy and its newest targets; (n,) in robot order.

    Attributes:
        adopted: the policy, None before one was accepted.
        candidate: a policy that will be followed from its first targets on, None where none is announced.
        targets: those that count now, None before the first.
        answers: targets since the policy was accepted.
    """

    def __init__(self) -> None:
        self.adopted: Adopted | None = None
        self.candidate: Adopted | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all targets, as when the clock starts afresh and those of before it would look new for ever."""
        self.targets: JointTargets | None = None
        self._followed: Impedance | None = None
        self._next: JointTargets | None = None
        self._successor: Adopted | None = None  # whose first targets `_next` are
        self.answers = 0

    def accept(self, adopted: Adopted) -> None:
        """Take a policy; targets of the one before are dropped."""
        self.adopted, self.candidate = adopted, None
        self.forget()

    def offer(self, contract_id: str, targets: JointTargets, now: float | None) -> Fault | None:
        """Take new targets; they count from the next state on.

        Targets of another contract, not newer than the newest or from the future are ignored.

        Args:
            contract_id: contract that the targets belong to.
            targets: (k,) in the contract's joint order.
            now: s, stamp of the last state.

        Returns:
            What is wrong with them.
        """
        adopted, newest = self._sender(contract_id), self._next or self.targets
        if adopted is None or now is None or targets.stamp - now > FUTURE_S:
            return None
        if newest is not None and targets.stamp <= newest.stamp:
            return None
        spread = adopted.spread(targets)
        if spread is None:
            name = adopted.contract.file.name
            return Fault('bad_target', f'targets of policy {name} are not finite or of a wrong length')
        self._next = spread
        self._successor = adopted if adopted is self.candidate else None
        self.answers += 1
        return None

    def joints_of(self, contract_id: str) -> tuple[str, ...] | None:
        """Return the joint order of the policy that may send targets under an id; None where there is none."""
        sender = self._sender(contract_id)
        return sender.contract.joints if sender is not None else None

    def _sender(self, contract_id: str) -> Adopted | None:
        """Return the policy that may send targets under an id; the old one no more once the new one has begun."""
        known = (self.candidate,) if self._successor is not None else (self.adopted, self.candidate)
        return next((policy for policy in known if policy is not None and policy.contract.id == contract_id), None)

    def advance(self, stamp: float) -> bool:
        """Let the newest targets count from the state of this stamp on; returns whether they are new."""
        if self._next is None or self._next.stamp >= stamp:
            return False
        self.targets, self._next = self._next, None
        self._follow()
        return True

    def succeed(self) -> bool:
        """Let a candidate take over whose first targets count now; returns whether one did."""
        if self._successor is None or self._next is not None:
            return False
        self.adopted, self.candidate, self._successor = self._successor, None, None
        self._follow()
        return True

    def _follow(self) -> None:
        known = self.adopted is not None and self.targets is not None
        self._followed = Impedance(self.targets, self.adopted.gains) if known else None  # type: ignore[arg-type,union-attr]

    def followed(self) -> Impedance | None:
        """Return what the policy asks of the joints now."""
        return self._followed

    def age(self, stamp: float) -> float:
        """Return how old the targets are that count, s; infinite without."""
        return stamp - self.targets.stamp if self.targets is not None else math.inf

    def silent(self, stamp: float) -> bool:
        """Return whether the targets are too old to follow."""
        return self.adopted is None or not self.age(stamp) <= TIMEOUT_PERIODS * self.adopted.contract.period_s

    def behind(self, stamp: float, previous: float) -> bool:
        """Return whether a policy that has kept pace has still to answer a tick from before a stamp; lockstep waits then.

        Args:
            stamp: s, of the state that is to be answered now.
            previous: s, of the state before.
        """
        newest = self._next or self.targets
        if self.adopted is None or newest is None:
            return False
        period = self.adopted.contract.period_s
        missing = newest.stamp < previous and tick_due(previous, newest.stamp, period)
        return missing and stamp - newest.stamp < 2 * period
