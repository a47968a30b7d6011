# SPDX-License-Identifier: Apache-2.0
"""The policy's conduct: how much of what it wants must be altered, and whether its targets jump about.

| finding | found when | within | what it does |
|---|---|---|---|
| filter_activity | `activity_trip` of the joint torques altered, 1 s (`activity_warn`, 0.5 s) | 1.3 s | damping (warning) |
| target_jerk | `target_jerk` exceeded in a fifth of the ticks of 1 s, at least three | 1 s | damping (once: warning) |

A trained policy that walks has under 1 % of its torques altered; one that works against its limits all the time sees
something it was not trained for.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.findings import Fault
from sim2real_ros.signals import Gains, JointTargets

SMOOTH_S = 0.1  # the share of altered torques is averaged over this time
WARN_S, TRIP_S = 0.5, 1.0
WINDOW_S = 1.0
SHARE, FEWEST = 0.2, 3  # of the ticks in the window that may jerk


class ConductMonitor:
    """Watches one policy while it is followed.

    Attributes:
        warnings: by name; current.
        altered: smoothed share of altered joint torques.
    """

    def __init__(self, robot: Robot) -> None:
        self._limits, self._effort, self._n = robot.monitors, robot.limits.effort, len(robot.joints)
        self.reset()

    def reset(self) -> None:
        """Begin anew, on activation."""
        self.warnings: dict[str, str] = {}
        self.altered = 0.0
        self._busy_s = self._very_busy_s = 0.0
        self.forget_targets()
        self._jerks: deque[tuple[float, bool]] = deque()

    def forget_targets(self) -> None:
        """Begin the comparison of targets anew, as when another policy takes over."""
        self._last: deque[np.ndarray] = deque(maxlen=2)

    def see_torque(self, altered: int, dt: float) -> Fault | None:
        """Take note of a tick.

        Args:
            altered: joints whose torque was altered.
            dt: s since the tick before.
        """
        if altered == 0 and self.altered < 1e-3:
            self.altered = 0.0
            return None
        self.altered += (altered / self._n - self.altered) * min(1.0, dt / SMOOTH_S)
        self._busy_s = self._busy_s + dt if self.altered > self._limits.activity_warn else 0.0
        self._very_busy_s = self._very_busy_s + dt if self.altered > self._limits.activity_trip else 0.0
        said = f'{self.altered:.0%} of the joint torques that the policy wants must be altered'
        if self._busy_s > WARN_S:
            self.warnings['filter_activity'] = said
        elif self.altered < 0.5 * self._limits.activity_warn:  # hysteresis
            self.warnings.pop('filter_activity', None)
        return Fault('filter_activity', said) if self._very_busy_s > TRIP_S else None

    def see_targets(self, targets: JointTargets, gains: Gains) -> Fault | None:
        """Take note of new targets, joints in robot order."""
        wanted = gains.stiffness * targets.position + gains.damping * targets.velocity + targets.effort
        jerk = 0.0
        if len(self._last) == 2:
            older, old = self._last
            jerk = float((np.abs(wanted - 2 * old + older) / self._effort).max())
        self._last.append(wanted)
        jerks, limit = self._jerks, self._limits.target_jerk
        jerks.append((targets.stamp, jerk > limit))
        while jerks[0][0] < targets.stamp - WINDOW_S:
            jerks.popleft()
        count = sum(jerking for _, jerking in jerks)
        said = f'{count} of the last {len(jerks)} targets jumped by more than {limit:g} times the effort limit and back'
        if count:
            self.warnings['target_jerk'] = said
        else:
            self.warnings.pop('target_jerk', None)
        return Fault('target_jerk', said) if count >= FEWEST and count > SHARE * len(jerks) else None
