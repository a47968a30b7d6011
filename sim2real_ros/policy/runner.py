# SPDX-License-Identifier: Apache-2.0
"""`PolicyRunner`: one policy, ready to run: observation -> network -> action -> joint targets."""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.action.decode import ActionDecoder
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import NetworkError
from sim2real_ros.observation import Moment, ObservationBuilder
from sim2real_ros.observation.clock import GaitClock
from sim2real_ros.observation.goals import Goals
from sim2real_ros.observation.motion import MotionTracker
from sim2real_ros.observation.terms import TERMS
from sim2real_ros.policy.golden import check_golden
from sim2real_ros.policy.network import Network
from sim2real_ros.signals import JointTargets, RobotState


class PolicyRunner:
    """Runs a policy for one robot or a batch; the caller keeps the policy's rate.

    Attributes:
        contract: the policy's contract.
        builder: its observation, for tables and needed sensors.
        network: its network.
        observation: input tensors of the last tick, (*batch, width) by name.
        action: network outputs of the last tick side by side, (*batch, m), raw.
    """

    def __init__(self, contract: Contract, batch: tuple[int, ...] = ()) -> None:
        """Load and check everything, golden vectors included; see `Network` and `ObservationBuilder` for the errors."""
        self.contract = contract
        self.builder = ObservationBuilder(contract, batch)
        widths = {name: self.builder.width(name) for name in contract.observations}
        self.network = Network(contract, widths, batch)
        check_golden(contract, widths)
        self._decoder = ActionDecoder(contract, batch)
        self._clock = GaitClock(contract, batch)
        motion = contract.file.motion
        self._motion = None if motion is None else MotionTracker(contract, motion, self.network.query, batch)
        own = {slot.name for slots in self.builder.slots.values() for slot in slots}
        timed = motion is not None or 'time' in own or not own <= TERMS.keys()  # who knows what the terms of others need
        self._ticks = np.zeros((*batch, 1)) if timed else None
        self._goals = Goals(contract, batch)
        self.observation: dict[str, np.ndarray] = {}
        self.action = np.zeros((*batch, contract.action_width))
        self._clipped = self._filtered = np.zeros_like(self.action)
        self._low, self._high, self._deadband = _command_range(contract)
        self._asked, self._command = b'', np.zeros((*batch, 3))

    def reset(self, mask: np.ndarray | None = None) -> None:
        """Start afresh, for `mask` (batch-shaped bool) or for all: histories, clocks, last actions, state, motion."""
        self.builder.reset(mask)
        self.network.reset(mask)
        self._clock.reset(mask)
        self._decoder.reset(mask)
        if self._motion is not None:
            self._motion.reset(mask)
        where = ... if mask is None else mask
        for memory in (self.action, self._clipped, self._filtered, self._ticks):
            if memory is not None:
                memory[where] = 0.0

    def step(self, state: RobotState, velocity_command: np.ndarray, goal: np.ndarray | None = None) -> JointTargets:
        """Compute one policy tick.

        Args:
            state: joints in policy order, (*batch, n).
            velocity_command: (*batch, 3) m/s, m/s, rad/s; clamped to the contract's range.
            goal: (*batch, 7) m and quaternion x, y, z, w, in the frame of the contract's `commands.pose`; None before the
                operator has given one.

        Returns:
            Targets in policy order, stamped with the state's stamp.

        Raises:
            NetworkError: the observation or the network's output is not finite. Nothing of this tick must be used.
            SignalError: the state lacks what a term needs.
        """
        moment = self._moment(state, self.clamp_command(velocity_command), goal)
        self.observation = self.builder.build(moment)
        for name, values in self.observation.items():
            if not _all_finite(values):
                where = ', '.join(self.builder.not_finite(name)) or 'its history'
                raise NetworkError(f'the observation {name} of {self.contract.file.name} is not finite: {where}')
        action = self._decoder.join(self.network.run(self.observation))
        if not _all_finite(action):
            raise NetworkError(
                f'the network of {self.contract.file.name} computed a non-finite action from a finite observation'
            )
        self.action = action
        self._clipped = self._decoder.clip(action)
        self._filtered = self._decoder.filter(self._clipped)
        reference = None
        if self._motion is not None:
            self._motion.hear(self.network.played)
            reference = moment.motion.joint_pos if moment.motion is not None else None
        return self._decoder.decode(self._filtered, state.stamp, state.joint_pos, reference)

    def restrict_command(self, share: float) -> None:
        """Take only a share of the contract's range of velocity commands from now on."""
        self._low, self._high = share * self._low, share * self._high

    def _moment(self, state: RobotState, command: np.ndarray, goal: np.ndarray | None) -> Moment:
        phase, time, reference = self._clock.tick(command), None, None
        if self._ticks is not None:
            time = self._ticks * self.contract.period_s
            self._ticks += 1
            reference = None if self._motion is None else self._motion.tick(state, time)
        return Moment(
            state, self.contract.default_position, command, self.action, self._clipped, phase, self._filtered,
            self._clock.columns, self._goals.of(goal), time, reference,
        )  # fmt: skip

    def clamp_command(self, velocity_command: np.ndarray) -> np.ndarray:
        """Return the command (*batch, 3) inside the contract's range, zero inside its dead band."""
        asked = velocity_command.tobytes()
        if asked != self._asked:  # most ticks ask for the same
            command = np.minimum(np.maximum(velocity_command, self._low), self._high)
            if self._deadband > 0:
                command *= (np.einsum('...i,...i->...', command, command) >= self._deadband**2)[..., None]
            self._asked, self._command = asked, command
        return self._command


def _all_finite(values: np.ndarray) -> bool:
    """Return whether every number is finite; their sum tells it in a third of the time, unless it overflows."""
    return math.isfinite(np.add.reduce(values, axis=None)) or bool(np.isfinite(values).all())


def _command_range(contract: Contract) -> tuple[np.ndarray, np.ndarray, float]:
    velocity = contract.file.commands.velocity
    if velocity is None:
        return np.zeros(3), np.zeros(3), 0.0
    ranges = np.array([velocity.x, velocity.y, velocity.yaw])
    return ranges[:, 0], ranges[:, 1], velocity.deadband
