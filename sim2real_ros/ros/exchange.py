# SPDX-License-Identifier: Apache-2.0
"""`Exchange`: another policy takes over while the robot walks.

    executor thread   vet in another process -> load -> announce the candidate -> wait for the safety node's word
    loop thread       the candidate runs beside the old policy until its history is filled -> takes over at one of its ticks,
                      or is dropped when it fails

The old policy goes on untouched until the very tick of the exchange. Targets carry the id of their contract, so the safety
node changes over with the first targets of the new one, and blends gains and targets.
"""

from __future__ import annotations

import json
import threading

from rclpy.node import Node
from std_msgs.msg import String

from sim2real_ros.errors import SignalError, Sim2RealError
from sim2real_ros.policy.pilot import Pilot
from sim2real_ros.policy.vet import vet
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos

ANSWER_S, TAKE_OVER_S = 3.0, 15.0  # longest wait for the safety node, and for the candidate's history to fill


class Exchange:
    """The way of a candidate to the controls.

    Attributes:
        candidate: runs beside the old policy now, None without one.
        previous: what `rollback` returns to.
    """

    def __init__(self, node: Node, robot: Robot, robot_name: str) -> None:
        """Prepare; `robot_name` is what the user calls the robot."""
        self._robot, self._robot_name = robot, robot_name
        self._out = node.create_publisher(String, 'policy/candidate', qos.COMMAND)
        self._answer: dict[str, str] = {}
        self._answered, self._done = threading.Event(), threading.Event()
        self._lock = threading.Lock()  # of the candidate
        self._ticks = 0  # that it has run
        self._problem = self._failure = ''
        self.candidate: Pilot | None = None
        self.previous: tuple[str, Pilot] | None = None

    # --- executor thread

    def load(self, policy: str) -> Pilot:
        """Vet and load a policy; raises Sim2RealError with the whole reason."""
        reason = vet(policy, self._robot_name)
        if reason:
            raise Sim2RealError(reason)
        return Pilot.of(self._robot, policy)

    def bring_in(self, pilot: Pilot) -> None:
        """Have a loaded policy take over; returns when it has.

        Raises:
            Sim2RealError: the safety node refuses it or is silent, it fails on what the sensors say, or no joint states arrive;
                the old policy goes on.
        """
        self._propose(pilot)
        pilot.reset()
        self._ticks, self._problem = 0, 'do joint states arrive?'
        self._done.clear()
        self.candidate = pilot
        if not self._done.wait(TAKE_OVER_S):
            self._drop(pilot, f'did not come to the controls within {TAKE_OVER_S:g} s: {self._problem}')
        if self._failure:
            raise Sim2RealError(f'{pilot.name} {self._failure}')

    def _propose(self, pilot: Pilot) -> None:
        self._answered.clear()
        self._answer = {'candidate': pilot.contract.id}
        self._out.publish(String(data=pilot.contract.to_json()))
        if not self._answered.wait(ANSWER_S):
            raise Sim2RealError(f'the safety node gave no answer to {pilot.name} within {ANSWER_S:g} s')
        if self._answer.get('reason'):
            raise Sim2RealError(f'the safety node refuses {pilot.name}: {self._answer["reason"]}')

    # --- loop thread

    def on_answer(self, message: String) -> None:
        """Take the safety node's word about a candidate, JSON {candidate: id, reason: why not, or ''}."""
        try:
            answer = json.loads(message.data)
        except ValueError:
            return
        if isinstance(answer, dict) and answer.get('candidate') == self._answer.get('candidate'):
            self._answer = answer
            self._answered.set()

    def ran(self, pilot: Pilot, problem: Sim2RealError | None) -> None:
        """Take note of a tick of the candidate and what was wrong in it; a signal that is not there yet may still come."""
        if problem is None:
            self._ticks += 1
        elif isinstance(problem, SignalError):
            self._problem = str(problem)
        else:
            self._drop(pilot, f'fails on what the sensors say now: {problem}')

    def take_over(self, pilot: Pilot, old_name: str, old: Pilot, *, followed: bool) -> bool:
        """Hand the controls to the candidate, if its history is full or nobody follows; the old one is kept for a rollback."""
        if self._ticks < (pilot.settling_ticks if followed else 1):
            return False
        with self._lock:
            if self.candidate is not pilot:
                return False  # it has just been dropped
            self.candidate, self.previous, self._failure = None, (old_name, old), ''
        self._done.set()
        return True

    # --- both

    def _drop(self, pilot: Pilot, why: str) -> None:
        """Give a candidate up, unless it has just taken over."""
        with self._lock:
            if self.candidate is not pilot:
                return
            self.candidate, self._failure = None, why
        self._done.set()
