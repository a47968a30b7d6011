# SPDX-License-Identifier: Apache-2.0
"""`FleetChecks`: what the safety filter would have stopped each of many robots for, on all of them at once.

The faults of `checks.py` and `conduct.py` that a robot itself can cause, with the same thresholds and times, for lanes that
run in step: tilt, angular_rate, joint_position, joint_velocity, encoder_jump, velocity_mismatch, filter_activity and
target_jerk. A test holds every lane against the filter of one robot. What a bus or a clock can cause is not here.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.checks import BLOCK_S, JUMP, JUMP_SLACK, POSITION, SPEED
from sim2real_ros.safety.conduct import FEWEST, SHARE, SMOOTH_S, TRIP_S, WINDOW_S
from sim2real_ros.signals import Gains, JointTargets, RobotState

FAULTS = (
    '', 'tilt', 'angular_rate', 'velocity_mismatch', 'encoder_jump', 'joint_position', 'joint_velocity', 'filter_activity',
    'target_jerk',
)  # fmt: skip
TILT, TURN, MISMATCH, JUMPED, OUTSIDE, FAST, BUSY, JERK = range(1, 9)


class FleetChecks:
    """Checks of B robots of one kind.

    Attributes:
        fault: (B,) index into `FAULTS` of the first fault of each robot, 0 while there is none.
    """

    def __init__(self, robot: Robot, size: int) -> None:
        limits, monitors, n = robot.limits, robot.monitors, len(robot.joints)
        self._robot, self._monitors, self._dt = robot, monitors, 1.0 / robot.sensors.rate_hz
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        self._middle = 0.5 * np.where(bounded, limits.lower, 0.0) + 0.5 * np.where(bounded, limits.upper, 0.0)
        half = 0.5 * (limits.upper - limits.lower) + monitors.position_tolerance_rad
        jump = monitors.encoder_jump_factor * limits.velocity * self._dt + JUMP_SLACK
        self._most = np.stack((half, monitors.velocity_factor * limits.velocity, jump))[:, None]
        self._counts = np.zeros((3, size), int)
        self._mismatch = monitors.velocity_mismatch * limits.velocity
        self._travel, self._mismatch_s = np.zeros((size, n)), np.zeros(size)
        self._tilted_s, self._turning_s = np.zeros(size), np.zeros(size)
        self._cos_tilt = math.cos(robot.safety.tilt.limit_rad)
        self._previous: RobotState | None = None
        self._block: RobotState | None = None
        self._block_size = 0
        self._altered, self._busy_s = np.zeros(size), np.zeros(size)
        self._wanted: deque[np.ndarray] = deque(maxlen=2)
        self._jerks: deque[tuple[float, np.ndarray]] = deque()
        self.fault = np.zeros(size, np.uint8)

    def see_state(self, state: RobotState, gap: np.ndarray | int = 1) -> RobotState:
        """Look at the state (B, n) of a control tick; they come one period after another.

        Args:
            state: joints in robot order.
            gap: (B,) periods since the last sample that was a new one.

        Returns:
            The state to go on with: a joint that jumped is held until the jump has lasted.
        """
        if self._robot.floating:
            self._base(state)
        if self._previous is not None:
            self._velocity(state)
        self._previous = self._joints(state, gap)
        return self._previous

    def see_torque(self, altered: np.ndarray) -> None:
        """Take note of the share (B,) of joint torques that the limits altered in this control tick."""
        self._altered += (altered - self._altered) * min(1.0, self._dt / SMOOTH_S)
        busy = self._altered > self._monitors.activity_trip
        self._busy_s = np.where(busy, self._busy_s + self._dt, 0.0)
        self._blame(BUSY, self._busy_s > TRIP_S)

    def see_targets(self, targets: JointTargets, gains: Gains) -> None:
        """Look at new targets (B, n), joints in robot order; `gains` (n,) or (B, n)."""
        wanted = gains.stiffness * targets.position + gains.damping * targets.velocity + targets.effort
        jerking = np.zeros(len(wanted), bool)
        if len(self._wanted) == 2:
            older, old = self._wanted
            jerk = (np.abs(wanted - 2 * old + older) / self._robot.limits.effort).max(axis=-1)
            jerking = jerk > self._monitors.target_jerk
        self._wanted.append(wanted)
        self._jerks.append((targets.stamp, jerking))
        while self._jerks[0][0] < targets.stamp - WINDOW_S:
            self._jerks.popleft()
        count = np.sum([jerks for _, jerks in self._jerks], axis=0)
        self._blame(JERK, (count >= FEWEST) & (count > SHARE * len(self._jerks)))

    def _blame(self, fault: int, where: np.ndarray) -> None:
        if where.any():
            self.fault[where & (self.fault == 0)] = fault

    def _joints(self, state: RobotState, gap: np.ndarray | int) -> RobotState:
        previous = state if self._previous is None else self._previous
        moved = (state.joint_pos - previous.joint_pos) / np.reshape(gap, (-1, 1))
        values = np.stack((state.joint_pos - self._middle, state.joint_vel, moved))
        over = np.abs(values, out=values) > self._most
        if not over.any():
            self._counts[:] = 0
            return state
        any_joint = over.any(axis=-1)
        self._counts = np.where(any_joint, self._counts + 1, 0)
        lasting = self._counts >= self._monitors.persistence
        self._blame(JUMPED, lasting[JUMP])
        self._blame(OUTSIDE, lasting[POSITION])
        self._blame(FAST, lasting[SPEED])
        held = over[JUMP] & ~np.any(lasting, axis=0, keepdims=True).T
        return replace(state, joint_pos=np.where(held, previous.joint_pos, state.joint_pos)) if held.any() else state

    def _velocity(self, state: RobotState) -> None:
        """Compare the mean velocity of a block of states with the way that was covered in it."""
        block = self._block
        if block is None:
            self._block, self._block_size = state, 0
            self._travel[:] = 0.0
            return
        self._travel += state.joint_vel
        self._block_size += 1
        elapsed = state.stamp - block.stamp
        if elapsed < BLOCK_S:
            return
        self._block = None
        mean = (self._travel + 0.5 * (block.joint_vel - state.joint_vel)) / self._block_size
        over = (np.abs(mean - (state.joint_pos - block.joint_pos) / elapsed) > self._mismatch).any(axis=-1)
        self._mismatch_s = np.where(over, self._mismatch_s + elapsed, 0.0)
        self._blame(MISMATCH, over & (self._mismatch_s >= self._monitors.velocity_mismatch_s))

    def _base(self, state: RobotState) -> None:
        x, y = state.base_quat_xyzw[:, 0], state.base_quat_xyzw[:, 1]
        tilted = 1.0 - 2.0 * (x * x + y * y) < self._cos_tilt
        self._tilted_s = np.where(tilted, self._tilted_s + self._dt, 0.0)
        self._blame(TILT, self._tilted_s > self._robot.safety.tilt.duration_s)
        if state.base_ang_vel is not None:
            turning = np.square(state.base_ang_vel).sum(axis=-1) > self._monitors.angular_rate**2
            self._turning_s = np.where(turning, self._turning_s + self._dt, 0.0)
            self._blame(TURN, self._turning_s > self._monitors.angular_rate_s)
