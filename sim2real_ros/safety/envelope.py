# SPDX-License-Identifier: Apache-2.0
"""What motors and battery can give: torque-speed line, power and heat.

Torque-speed and power only ever take from torque that speeds a joint up, never from a brake. Heat limits both ways, but
the barrier comes after it and may use the peak torque for the short time of a stop.
"""

from __future__ import annotations

import numpy as np

from sim2real_ros.robot import Robot

TAPER = 0.2  # of the heat budget: where the cap begins to sink from peak to continuous torque


class TorqueSpeed:
    """The DC-motor line: `tau <= stall (1 - v / v0)` for torque with the motion (IsaacLab's DCMotor, see docs/safety.md)."""

    def __init__(self, robot: Robot) -> None:
        self._stall, self._negative = robot.safety.stall_torque, -robot.safety.stall_torque
        self._droop = robot.safety.stall_torque / robot.safety.no_load_speed

    def apply(self, torque: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
        """Return the torque under the line, (*batch, n) N m."""
        droop = self._droop * joint_vel
        high = np.subtract(self._stall, droop)
        np.maximum(high, 0.0, out=high)
        low = np.subtract(self._negative, droop, out=droop)
        np.minimum(low, 0.0, out=low)
        np.minimum(torque, high, out=high)
        return np.maximum(high, low, out=high)


class Power:
    """The sum of `max(0, tau v)` stays under a limit in W; what exceeds it is taken from the driving joints alike."""

    def __init__(self, limit_w: float) -> None:
        self._limit = limit_w

    def apply(self, torque: np.ndarray, joint_vel: np.ndarray) -> np.ndarray:
        """Return the torque within the power, (*batch, n) N m."""
        driving = np.maximum(torque * joint_vel, 0.0)
        total = np.ascontiguousarray(driving).sum(axis=-1, keepdims=True)  # whose last bit depends on the order in memory
        if total.max() <= self._limit:
            return torque
        return np.where(driving > 0, torque * np.minimum(1.0, self._limit / np.maximum(total, 1e-9)), torque)


class Heat:
    """I2t: `E <- max(0, E + (tau^2 - tau_cont^2) dt)` never exceeds `(tau_peak^2 - tau_cont^2) t_peak`.

    In the last fifth of that budget the cap on |tau| sinks from peak to continuous torque, so the mean square over any
    time W stays under `tau_cont^2 + E_max / W`.
    """

    def __init__(self, peak: np.ndarray, continuous: np.ndarray, peak_s: float, batch: tuple[int, ...] = ()) -> None:
        """Start cold; torques (n,) in N m, `peak_s` is how long the peak may last from cold."""
        self._peak, self._continuous = peak, continuous
        self._square = continuous**2
        self._budget = (peak**2 - self._square) * peak_s
        self._slope = (peak - continuous) / (TAPER * self._budget)
        self._warm = (1 - TAPER) * self._budget
        self.energy = np.zeros((*batch, len(peak)))

    def apply(self, torque: np.ndarray) -> np.ndarray:
        """Return the torque under the cap, (*batch, n) N m."""
        warm = self.energy > self._warm
        if not warm.any():
            return torque
        cap = self._continuous + np.clip(self._slope * (self._budget - self.energy), 0.0, self._peak - self._continuous)
        cap[~warm] = np.inf
        return np.clip(torque, -cap, cap)

    def note(self, torque: np.ndarray, dt: float) -> None:
        """Account for a torque that was sent for dt s."""
        heating = torque * torque
        heating -= self._square
        heating *= dt
        np.add(self.energy, heating, out=self.energy)
        np.maximum(self.energy, 0.0, out=self.energy)
