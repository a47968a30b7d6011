# SPDX-License-Identifier: Apache-2.0
"""How near a monitor of the safety filter comes to its threshold: worked out beside the filter, from what it is given.

Every value is in units of the monitored quantity. "Lasting" is the largest value that was held or exceeded for as long as
the monitor wants before it trips: what a threshold has to stay above.
"""

from __future__ import annotations

import math

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.rotations import tilt
from sim2real_ros.safety.checks import BLOCK_S, JUMP_SLACK
from sim2real_ros.safety.conduct import FEWEST, SHARE, SMOOTH_S, TRIP_S, WINDOW_S
from sim2real_ros.signals import JointTargets, RobotState


class Level:
    """The largest value of each of B robots so far, and the largest that lasted.

    Attributes:
        unit: of the values.
        threshold: that trips.
        highest: (B,).
        lasting: (B,).
    """

    def __init__(self, size: int, unit: str, threshold: float, window: int = 1) -> None:
        """Watch values of which `window` in a row count."""
        self.unit, self.threshold = unit, threshold
        self.highest, self.lasting = np.zeros(size), np.zeros(size)
        self._recent, self._next = np.zeros((window, size)), 0

    def see(self, values: np.ndarray, where: np.ndarray) -> None:
        """Take note of the values (B,) of the robots `where` (B,)."""
        values = np.where(where, values, 0.0)
        self._recent[self._next] = values
        self._next = (self._next + 1) % len(self._recent)
        np.maximum(self.highest, values, out=self.highest)
        np.maximum(self.lasting, self._recent.min(axis=0), out=self.lasting)


class Jerk(Level):
    """The change of the change of the PD torque between policy ticks; lasting is what a fifth of the ticks of 1 s exceed."""

    def __init__(self, size: int, threshold: float, ticks: int) -> None:
        super().__init__(size, 'effort limits', threshold, ticks)
        self._older: np.ndarray | None = None
        self._old: np.ndarray | None = None
        self._seen = np.zeros(size, dtype=int)  # ticks while followed

    def see_wanted(self, wanted: np.ndarray, where: np.ndarray) -> None:
        """Take note of the torque (B, n), in effort limits, that targets come to at q = 0 and rest."""
        self._seen = np.where(where, self._seen + 1, 0)
        if self._older is not None and self._old is not None:
            jerk = np.abs(wanted - 2 * self._old + self._older).max(axis=1)
            self._take(np.where(self._seen > 2, jerk, 0.0))
        self._older, self._old = self._old, wanted

    def _take(self, jerk: np.ndarray) -> None:
        self._recent[self._next] = jerk
        self._next = (self._next + 1) % len(self._recent)
        count = np.minimum(self._seen, len(self._recent))
        place = np.clip(np.maximum(FEWEST, np.floor(SHARE * count).astype(int) + 1), 1, len(self._recent)) - 1
        exceeded = np.take_along_axis(-np.sort(-self._recent, axis=0), place[None], axis=0)[0]
        np.maximum(self.highest, jerk, out=self.highest)
        np.maximum(self.lasting, np.where(self._seen > 0, exceeded, 0.0), out=self.lasting)


class Margins:
    """All monitors with a threshold on a size, of B robots stepped together."""

    def __init__(self, robot: Robot, size: int, period_s: float) -> None:
        """Watch robots whose policy has a period of `period_s`."""
        limits, monitors, self._dt = robot.limits, robot.monitors, 1.0 / robot.sensors.rate_hz
        self._robot, self._size = robot, size
        self._speed, self._effort = limits.velocity, limits.effort
        self._block = round(BLOCK_S / self._dt)
        mismatch_blocks = math.ceil(monitors.velocity_mismatch_s / BLOCK_S - 1e-9)
        rounds, blocks = self._ticks, monitors.persistence
        self.levels: dict[str, Level] = {
            'joint_position': Level(size, 'rad past the limit', monitors.position_tolerance_rad, blocks),
            'joint_velocity': Level(size, 'v_max', monitors.velocity_factor, blocks),
            'encoder_jump': Level(size, 'v_max dt, past 0.01 rad', monitors.encoder_jump_factor, blocks),
            'velocity_mismatch': Level(size, 'v_max', monitors.velocity_mismatch, mismatch_blocks),
            'tilt': Level(size, 'rad', robot.safety.tilt.limit_rad, rounds(robot.safety.tilt.duration_s)),
            'angular_rate': Level(size, 'rad/s', monitors.angular_rate, rounds(monitors.angular_rate_s)),
            'filter_activity': Level(size, 'of the torques', monitors.activity_trip, rounds(TRIP_S)),
        }
        self.jerk = Jerk(size, monitors.target_jerk, round(WINDOW_S / period_s))
        self.levels['target_jerk'] = self.jerk
        self._previous: RobotState | None = None
        self._began: RobotState | None = None
        self._travel, self._steps, self._altered = np.zeros((size, len(robot.joints))), 0, np.zeros(size)

    def _ticks(self, seconds: float) -> int:
        return max(1, round(seconds / self._dt))

    def see_state(self, state: RobotState, where: np.ndarray) -> None:
        """Take note of the states (B, ...) of the robots `where` (B,)."""
        limits, levels, previous = self._robot.limits, self.levels, self._previous
        past = np.maximum(state.joint_pos - limits.upper, limits.lower - state.joint_pos).max(axis=1)
        levels['joint_position'].see(np.maximum(past, 0.0), where)
        levels['joint_velocity'].see((np.abs(state.joint_vel) / self._speed).max(axis=1), where)
        levels['tilt'].see(tilt(state.base_quat_xyzw), where)
        assert state.base_ang_vel is not None
        levels['angular_rate'].see(np.linalg.norm(state.base_ang_vel, axis=1), where)
        if previous is not None:
            jump = np.abs(state.joint_pos - previous.joint_pos) - JUMP_SLACK
            levels['encoder_jump'].see((jump / (self._speed * self._dt)).max(axis=1), where)
            self._see_block(state, previous, where)
        self._previous = state

    def _see_block(self, state: RobotState, previous: RobotState, where: np.ndarray) -> None:
        if self._began is None:
            self._began, self._steps, self._travel = previous, 0, np.zeros_like(self._travel)
        self._travel += 0.5 * self._dt * (state.joint_vel + previous.joint_vel)
        self._steps += 1
        if self._steps == self._block:
            apart = np.abs(self._travel - (state.joint_pos - self._began.joint_pos)) / (self._block * self._dt)
            self.levels['velocity_mismatch'].see((apart / self._speed).max(axis=1), where)
            self._began = None

    def see_altered(self, altered: np.ndarray, where: np.ndarray) -> None:
        """Take note of how many joint torques (B,) were altered for the robots that follow their policy, `where` (B,)."""
        share = altered / len(self._effort)
        self._altered = np.where(where, self._altered + (share - self._altered) * min(1.0, self._dt / SMOOTH_S), 0.0)
        self.levels['filter_activity'].see(self._altered, where)

    def see_targets(self, targets: JointTargets, stiffness: np.ndarray, damping: np.ndarray, where: np.ndarray) -> None:
        """Take note of new targets (B, n), joints in robot order, and of the gains (B, n) that they are followed with."""
        wanted = stiffness * targets.position + damping * targets.velocity + targets.effort
        self.jerk.see_wanted(wanted / self._effort, where)
