# SPDX-License-Identifier: Apache-2.0
"""`Observer`: the filter of a read-only node. It looks and computes like the real one, and its mode stays `off`."""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.safety.calm import GREEN_S
from sim2real_ros.safety.filter import LONGEST_DT_S, SafetyFilter
from sim2real_ros.safety.findings import Fault
from sim2real_ros.safety.modes import Event
from sim2real_ros.signals import RobotState, SafeTorque

REFUSAL = 'this node is read-only, it observes and commands nothing; start it with read_only:=false to arm the robot'


class Observer(SafetyFilter):
    """A filter that commands nothing, whatever it is asked.

    Attributes:
        finding: what would have stopped the robot in the last second, None when nothing would have.
        preview: (n,) N m in robot order, what it would command: the limited torque for the policy's newest targets at the last
            state; None while there are none, or the state is not finite.
    """

    finding: Fault | None = None
    preview: np.ndarray | None = None
    _found = -math.inf  # stamp of the finding

    def request(self, event: Event) -> str | None:
        """Refuse."""
        return REFUSAL

    def trip(self, fault: Fault, event: Event = Event.FAULT) -> None:
        """Take note of what would have stopped the robot."""
        self.finding, self._found = fault, self._state.stamp if self._state is not None else math.inf

    def step(self, state: RobotState, arrival: float | None = None) -> SafeTorque | None:
        """Look at a state, compute the preview, and return None; see `SafetyFilter.step`."""
        before = self._state
        super().step(state, arrival)
        self.preview = None
        if self._state is before:
            return None  # not newer
        dt = 0.0 if before is None else min(max(state.stamp - before.stamp, 0.0), LONGEST_DT_S)
        if state.stamp - self._found > GREEN_S:
            self.finding = None
        state, found = self._checks.check(state, dt)
        if found is not None:
            self.trip(found)
        usable = not self._link.silent(state.stamp) and self._checks.finite(state)
        self.preview = self._response.preview(state, dt, self._link.followed() if usable else None)
        return None
