# SPDX-License-Identifier: Apache-2.0
"""What was seen of a running stack for a few seconds: all that the checks look at. `ros/preflight.py` collects it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.robot import Robot


@dataclass(frozen=True, slots=True)
class Stream:
    """The messages of one topic."""

    topic: str  # resolved name
    publishers: tuple[str, ...] = ()  # nodes, with namespace
    stamps: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (k,) s, in the order of arrival
    arrivals: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (k,) s, machine's steady clock

    @property
    def standing(self) -> bool:
        """Whether it repeats one stamp."""
        return len(self.stamps) > 1 and bool((self.stamps == self.stamps[0]).all())

    @property
    def period(self) -> float:
        """Time from stamp to stamp, the median in s; NaN where fewer than two differ."""
        steps = np.diff(self.stamps)
        steps = steps[steps > 0]
        return float(np.median(steps)) if len(steps) else np.nan


@dataclass(frozen=True, slots=True)
class Papers:
    """What policy_node tells of the passport of its policy."""

    hardware: bool  # whether it drives motors, not a simulator
    required: bool  # whether it refuses policies without one that fits
    granted: bool  # whether this one fits
    text: str
    tolerances: Mapping[str, float]  # of the passport, where it fits

    @classmethod
    def of(cls, text: str) -> Papers | None:
        """Read the message of `policy/passport`; None for anything else."""
        try:
            told = json.loads(text)
            tolerances = {str(name): float(value) for name, value in told['tolerances'].items()}
            hardware = told['backend'] != 'simulated'
            return cls(hardware, bool(told['required']), bool(told['granted']), str(told['text']), tolerances)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at a stack."""

    robot: Robot
    seconds: float  # that were watched
    nodes: tuple[str, ...]  # names, with namespace
    mode: str  # of the safety node, '' where it said nothing
    sim_time: bool | None  # parameter of the safety node; None: it did not answer
    read_only: bool  # parameter of the safety node
    contract: Contract | None  # of the policy, None where none was announced
    contract_problem: str  # why the announced one cannot be read
    joint_states: Stream
    joint_names: tuple[str, ...]  # of the last message
    joint_pos: np.ndarray  # (k, len(joint_names)) rad, of messages with the names of the last one
    joint_vel: np.ndarray  # the same, rad/s
    imu: Stream
    imu_quat_xyzw: np.ndarray  # (k, 4), sensor to world
    imu_ang_vel: np.ndarray  # (k, 3) rad/s, sensor frame
    imu_lin_acc: np.ndarray  # (k, 3) m/s^2, sensor frame
    imu_oriented: bool  # whether it says that it has an orientation (REP-145)
    other_imus: tuple[str, ...]  # further topics of that type
    clock: Stream
    now: float  # s, system time at the end of the look
    commands: Stream  # stamps: of the states that were answered
    command_ages: np.ndarray  # (k,) s, from the arrival of a state to that of its command
    rivals: str  # sentence about others who command the joints, '' for none
    controllers_known: bool  # whether ros2_control told its controllers
    passport: Papers | None  # None: policy_node told nothing
    order: str | None  # sentence about the controller's joint order, '' for the right one, None: no controller told
