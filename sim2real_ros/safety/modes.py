# SPDX-License-Identifier: Apache-2.0
"""The modes of the safety node and the legal ways between them, as data.

         damp            pose             activate
 off ----------> damping ------> pose ----------------> active
                   ^ ^            |  <----------------    |
                   | |  damp,     |         pose          |
                   | |  withdraw  |                       |
                   | +------------+                       |
                   | +------------------------------------+
                   |      damp, withdraw
     reset         |
fault -------------+        any but off -- fault --> fault        any -- estop --> fault

off, damping -- wiggle --> wiggle -- damp --> damping

`withdraw` is the filter's own: the policy or its operator has fallen silent, or the policy works against its limits. The
robot goes into damping with the reason; nothing is latched, since the robot itself is in order.
"""

from __future__ import annotations

from enum import Enum


class Mode(str, Enum):
    """What the safety node does with the motors."""

    OFF = 'off'  # nothing is commanded
    DAMPING = 'damping'  # torque = -kd qd: the robot sinks
    POSE = 'pose'  # moves to the default pose and holds it
    ACTIVE = 'active'  # follows the policy
    WIGGLE = 'wiggle'  # every joint is slack but one, which gets a small torque: is the wiring right?
    FAULT = 'fault'  # damping (slack where it was wiggle before), latched until reset


class Event(str, Enum):
    """What changes the mode: a service call, or a finding of the filter."""

    DAMP = 'damp'
    POSE = 'pose'
    ACTIVATE = 'activate'
    WIGGLE = 'wiggle'
    ESTOP = 'estop'
    RESET = 'reset'
    WITHDRAW = 'withdraw'
    FAULT = 'fault'


TRANSITIONS: dict[tuple[Mode, Event], Mode] = {
    (Mode.OFF, Event.DAMP): Mode.DAMPING,
    (Mode.OFF, Event.WIGGLE): Mode.WIGGLE,
    (Mode.OFF, Event.ESTOP): Mode.FAULT,
    (Mode.DAMPING, Event.DAMP): Mode.DAMPING,
    (Mode.DAMPING, Event.POSE): Mode.POSE,
    (Mode.DAMPING, Event.WIGGLE): Mode.WIGGLE,
    (Mode.DAMPING, Event.ESTOP): Mode.FAULT,
    (Mode.DAMPING, Event.FAULT): Mode.FAULT,
    (Mode.POSE, Event.ACTIVATE): Mode.ACTIVE,
    (Mode.POSE, Event.DAMP): Mode.DAMPING,
    (Mode.POSE, Event.WITHDRAW): Mode.DAMPING,
    (Mode.POSE, Event.ESTOP): Mode.FAULT,
    (Mode.POSE, Event.FAULT): Mode.FAULT,
    (Mode.ACTIVE, Event.POSE): Mode.POSE,
    (Mode.ACTIVE, Event.DAMP): Mode.DAMPING,
    (Mode.ACTIVE, Event.WITHDRAW): Mode.DAMPING,
    (Mode.ACTIVE, Event.ESTOP): Mode.FAULT,
    (Mode.ACTIVE, Event.FAULT): Mode.FAULT,
    (Mode.WIGGLE, Event.WIGGLE): Mode.WIGGLE,
    (Mode.WIGGLE, Event.DAMP): Mode.DAMPING,
    (Mode.WIGGLE, Event.ESTOP): Mode.FAULT,
    (Mode.WIGGLE, Event.FAULT): Mode.FAULT,
    (Mode.FAULT, Event.ESTOP): Mode.FAULT,
    (Mode.FAULT, Event.RESET): Mode.DAMPING,
}


OPERATOR = (Event.DAMP, Event.POSE, Event.ACTIVATE, Event.WIGGLE, Event.ESTOP, Event.RESET)  # the others are the filter's own


def possible(mode: Mode) -> list[str]:
    """Return the names of the operator's events that are legal in a mode."""
    return [event.value for (source, event) in TRANSITIONS if source is mode and event in OPERATOR]
