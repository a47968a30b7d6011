# SPDX-License-Identifier: Apache-2.0
"""`Scores`: what counts in an episode, gathered while B of them run: falls, faults, tracking, work of the safety filter."""

from __future__ import annotations

import numpy as np

from sim2real_ros.rotations import tilt
from sim2real_ros.safety.fleet_checks import FAULTS
from sim2real_ros.sim.verdict import SETTLE_S
from sim2real_ros.validation.controls import Controls
from sim2real_ros.validation.episode import DIVERGED, FELL, FILTER, TRACKING
from sim2real_ros.validation.plant import Plant
from sim2real_ros.validation.schema import ValidationFile

AXES = 3  # forward, sideways, turn


class Scores:
    """Figures of B episodes.

    Attributes:
        reason: why each episode ended before its time, '' while it goes on.
        end_s: (B,) s, when it ended.
        alive: (B,) whether it goes on.
    """

    def __init__(self, level: ValidationFile, plant: Plant, controls: Controls, height: float) -> None:
        """Begin.

        Args:
            level: what a success is.
            plant: of the episodes.
            controls: of the episodes.
            height: m, of the base when standing.
        """
        size = len(plant.strength)
        self._level, self._plant, self._controls, self._height = level, plant, controls, height
        self._floating, self._start = plant.robot.floating, plant.base_pos[:, :2].copy()
        self.reason, self.end_s = np.full(size, '', object), np.full(size, level.episode_s)
        self.alive = np.ones(size, bool)
        self._tilt, self._low = np.zeros(size), np.ones(size)
        self._torque, self._altered, self._ticks = np.zeros(size), np.zeros(size), np.zeros(size, int)
        self._sum, self._count = np.zeros((size, AXES)), 0
        self._errors: list[np.ndarray] = []  # of each command, in shares of what is allowed

    def see_control(self) -> None:
        """Take note of a control tick."""
        share = np.abs(self._controls.torque) / self._plant.robot.limits.effort
        np.maximum(self._torque, np.where(self.alive, share.max(axis=-1), 0.0), out=self._torque)
        self._altered += self._controls.altered * self.alive
        self._ticks += self.alive

    def see_policy(self, now: float, command: np.ndarray, since: float) -> None:
        """Take note of a policy tick; `command` (B, 3) stands for `since` s."""
        success = self._level.success
        fault = self._controls.checks.fault
        self._end(now, self._plant.diverged(), DIVERGED)
        if self._floating:
            lean, share = tilt(self._plant.quat_xyzw), self._plant.clearance / self._height
            np.maximum(self._tilt, lean, out=self._tilt, where=self.alive)
            np.minimum(self._low, share, out=self._low, where=self.alive)
            self._end(now, (lean > success.fall_tilt_rad) | (share < success.fall_height), FELL)
            if since > SETTLE_S:
                self._sum += np.column_stack((self._plant.lin_vel[:, :2], self._plant.ang_vel[:, 2]))
                self._count += 1
        if fault.any():
            for kind in np.unique(fault[self.alive & (fault > 0)]):
                self._end(now, fault == kind, f'fault {FAULTS[kind]}')

    def next_command(self, command: np.ndarray) -> None:
        """Judge how the command (B, 3) that ends was followed."""
        if self._count:
            error = self._sum / self._count - command
            self._errors.append(np.where(self.alive[:, None], np.abs(error) / self._allowed(command), 0.0).max(axis=-1))
        self._sum, self._count = np.zeros_like(self._sum), 0

    def figures(self, lane: int) -> dict[str, float]:
        """Return the figures of an episode."""
        errors = [float(errors[lane]) for errors in self._errors]
        return {
            'tilt_rad': float(self._tilt[lane]),
            'height_share': float(self._low[lane]),
            'tracking_error': max(errors, default=0.0),
            'torque_share': float(self._torque[lane]),
            'altered_share': float(self._altered[lane] / max(1, self._ticks[lane])),
            'distance_m': float(np.hypot(*(self._plant.base_pos[lane, :2] - self._start[lane]))),
        }

    def close(self, lane: int) -> tuple[str, float, dict[str, float]]:
        """Return reason, margin and figures of an episode that has come to its end."""
        success, figures = self._level.success, self.figures(lane)
        if self.reason[lane]:
            return self.reason[lane], float(self.end_s[lane] / self._level.episode_s) - 1.0 - 1e-3, figures
        margins = {
            FELL: min(
                1.0 - figures['tilt_rad'] / success.fall_tilt_rad,
                (figures['height_share'] - success.fall_height) / (1.0 - success.fall_height)
                if success.fall_height < 1
                else 0.0,
            ),
            TRACKING: 1.0 - figures['tracking_error'] if self._judged else 1.0,
            FILTER: 1.0 - figures['altered_share'] / max(success.altered_share, 1e-9),
        }
        worst = min(margins, key=lambda name: margins[name])
        return worst if margins[worst] < 0 else '', max(-1.0, margins[worst]), figures

    @property
    def _judged(self) -> bool:
        return self._level.success.tracking_m_s is not None or self._level.success.tracking_rad_s is not None

    def _allowed(self, command: np.ndarray) -> np.ndarray:
        """Return the error that each axis of a command may have, (B, 3)."""
        success = self._level.success
        least = [success.tracking_m_s or np.inf] * 2 + [success.tracking_rad_s or np.inf]
        return np.maximum(np.array(least), success.tracking_share * np.abs(command))

    def _end(self, now: float, where: np.ndarray, reason: str) -> None:
        ending = where & self.alive
        if ending.any():
            self.reason[ending], self.end_s[ending] = reason, now
            self.alive[ending] = False
