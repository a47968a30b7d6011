# SPDX-License-Identifier: Apache-2.0
"""`Answers`: what the simulator waits for in lockstep: the command that answers a state, and at a policy tick the targets.

Only streams that flow are waited for: a stack that has not begun yet, or a process that died, holds nothing up for
longer than one time-out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sensor_msgs.msg import JointState
from std_msgs.msg import String

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import nanoseconds
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.safety.modes import Mode
from sim2real_ros.timing import tick_due


class Answers:
    """Follows the command and target streams by the stamps that they answer.

    Attributes:
        command_ns: newest stamp that the safety node answered; None before the first.
        targets_ns: newest stamp that the policy answered; None before the first.
    """

    def __init__(self, loop: ControlLoop, timestep_s: float, timeout_s: float, warn: Callable[[str], object]) -> None:
        """Subscribe contract and targets.

        Args:
            loop: takes the messages; the commands are its owner's business.
            timestep_s: between two states, s.
            timeout_s: longest wait for one answer, s.
            warn: told when an answer does not come.
        """
        self._loop, self._timeout_s, self._warn = loop, timeout_s, warn
        self._step_ns = round(timestep_s * 1e9)
        self._period_s: float | None = None
        self._commanding = False  # the safety node says that it commands
        self.command_ns: int | None = None
        self.targets_ns: int | None = None
        loop.add(String, 'safety/mode', self._on_mode, qos.LATCHED)
        loop.add(String, 'policy/contract', self._on_contract, qos.LATCHED)
        loop.add(JointState, 'policy/targets', self._on_targets, qos.COMMAND)

    def wait(self, stamp_ns: int, previous_s: float, stopped: Callable[[], bool]) -> None:
        """Wait until a state is answered, the time is over, or the node ends.

        Args:
            stamp_ns: of the state.
            previous_s: stamp of the state before, s.
            stopped: whether the node ends.
        """
        deadline = time.monotonic() + self._timeout_s
        command, targets = self._command_flows(stamp_ns), self._targets_flow(stamp_ns, previous_s)
        while not stopped():
            missing = []
            if command and (self.command_ns or 0) < stamp_ns:
                missing.append('command')
            if targets and (self.targets_ns or 0) < stamp_ns:
                missing.append('targets')
            left = deadline - time.monotonic()
            if not missing:
                return
            if left <= 0:
                self._commanding = False  # until it says so again or a command comes
                self._warn(f'lockstep: no {" and no ".join(missing)} within {self._timeout_s:g} s; going on without')
                return
            self._loop.wait(int(min(left, 0.1) * 1e9))

    def _command_flows(self, stamp_ns: int) -> bool:
        answered = self.command_ns is not None and self.command_ns >= stamp_ns - self._step_ns
        return answered or self._commanding

    def _targets_flow(self, stamp_ns: int, previous_s: float) -> bool:
        """Return whether a policy tick is due now and the tick before was answered."""
        if self._period_s is None or self.targets_ns is None or not tick_due(stamp_ns * 1e-9, previous_s, self._period_s):
            return False
        return stamp_ns - self.targets_ns < 1.5e9 * self._period_s

    def _on_mode(self, message: String) -> None:
        self._commanding = message.data != Mode.OFF.value

    def _on_contract(self, message: String) -> None:
        try:
            self._period_s = Contract.from_json(message.data, 'policy/contract').period_s
        except Sim2RealError as error:
            self._warn(str(error))

    def _on_targets(self, message: JointState) -> None:
        self.targets_ns = nanoseconds(message.header.stamp)
