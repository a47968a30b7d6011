# SPDX-License-Identifier: Apache-2.0
"""What is looked at before a torque is computed. A finding is a named fault, never a clip.

| fault | found when | within |
|---|---|---|
| non_finite_sensor | a joint or IMU value is NaN or infinite | the same tick |
| stale_joint_state | two joint states are further apart than the time-out | the same tick |
| stale_imu | the IMU sample is older than the joint state by more than the time-out | the same tick |
| clock_jump | the stamp went back | the same tick |
| tilt | the base leans beyond the limit, for the stated time | the stated time |
| joint_position | a joint is more than 0.05 rad outside its hard limit | 3 ticks |
| joint_velocity | a joint is faster than 1.2 times its limit | 3 ticks |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.signals import RobotState

POSITION_TOLERANCE = 0.05  # rad
VELOCITY_FACTOR = 1.2
PERSISTENCE = 3  # ticks


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the robot was stopped."""

    name: str
    message: str


class StateChecks:
    """Checks of the sensors of one robot, joints in robot order."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._ones = np.ones(len(robot.joints))
        self._low = robot.limits.lower - POSITION_TOLERANCE
        self._high = robot.limits.upper + POSITION_TOLERANCE
        self._fast = VELOCITY_FACTOR * robot.limits.velocity
        self._cos_tilt = math.cos(robot.safety.tilt.limit_rad)
        self.reset()

    def reset(self) -> None:
        """Forget what persisted."""
        self._outside = self._speeding = 0
        self._tilted_s = 0.0

    def joints_finite(self, state: RobotState) -> bool:
        """Return whether every joint value is finite; a sum of finite numbers is finite, any other is not."""
        return math.isfinite(self._ones @ state.joint_pos + self._ones @ state.joint_vel)

    def finite(self, state: RobotState) -> bool:
        """Return whether every number of the state is finite."""
        imu = sum(state.base_quat_xyzw.tolist())
        if state.base_ang_vel is not None:
            imu += sum(state.base_ang_vel.tolist())
        return math.isfinite(imu) and self.joints_finite(state)

    def check(self, state: RobotState, dt: float) -> Fault | None:
        """Return what is wrong with a state, or None.

        Args:
            state: joints in robot order.
            dt: s since the state before.
        """
        sensors = self._robot.sensors
        if not self.finite(state):
            return Fault('non_finite_sensor', f'not finite: {", ".join(self._not_finite(state))}')
        if dt < 0:
            return Fault('clock_jump', f'the stamp of joint_states went back by {-dt:.3f} s')
        if dt > sensors.joint_timeout_s:
            return Fault(
                'stale_joint_state',
                f'no joint state for {1e3 * dt:.0f} ms, allowed {1e3 * sensors.joint_timeout_s:.0f} ms',
            )
        if self._robot.floating:
            if not abs(state.imu_age) <= sensors.imu_timeout_s:
                return self._stale_imu(state)
            self._tilted_s = self._tilted_s + dt if self._leans(state) else 0.0
            if self._tilted_s > self._robot.safety.tilt.duration_s:
                return self._tilt(state)
        return self._joints(state)

    def cause(self, state: RobotState) -> Fault | None:
        """Return what would trip at once or after its time, seen in one state: what must be gone before a reset."""
        if not self.finite(state):
            return Fault('non_finite_sensor', f'not finite: {", ".join(self._not_finite(state))}')
        if self._robot.floating and not abs(state.imu_age) <= self._robot.sensors.imu_timeout_s:
            return self._stale_imu(state)
        if self._robot.floating and self._leans(state):
            return self._tilt(state)
        outside, fast = self._outside_range(state), self._too_fast(state)
        if outside.any():
            return Fault('joint_position', self._name(outside, state.joint_pos, 'rad', 'outside its range'))
        if fast.any():
            return Fault('joint_velocity', self._name(fast, state.joint_vel, 'rad/s', 'faster than it may be'))
        return None

    def _joints(self, state: RobotState) -> Fault | None:
        outside, fast = self._outside_range(state), self._too_fast(state)
        if not (outside | fast).any():
            self._outside = self._speeding = 0
            return None
        self._outside = self._outside + 1 if outside.any() else 0
        self._speeding = self._speeding + 1 if fast.any() else 0
        if self._outside >= PERSISTENCE:
            return Fault('joint_position', self._name(outside, state.joint_pos, 'rad', 'outside its range'))
        if self._speeding >= PERSISTENCE:
            return Fault('joint_velocity', self._name(fast, state.joint_vel, 'rad/s', 'faster than it may be'))
        return None

    def _outside_range(self, state: RobotState) -> np.ndarray:
        return (state.joint_pos < self._low) | (state.joint_pos > self._high)

    def _too_fast(self, state: RobotState) -> np.ndarray:
        return np.abs(state.joint_vel) > self._fast

    def _leans(self, state: RobotState) -> bool:
        return _cos_tilt(state) < self._cos_tilt

    def _stale_imu(self, state: RobotState) -> Fault:
        allowed = 1e3 * self._robot.sensors.imu_timeout_s
        return Fault('stale_imu', f'the IMU sample is {1e3 * state.imu_age:.0f} ms old, allowed {allowed:.0f} ms')

    def _tilt(self, state: RobotState) -> Fault:
        lean = math.acos(max(-1.0, min(1.0, _cos_tilt(state))))
        return Fault('tilt', f'the base leans by {lean:.2f} rad, allowed {self._robot.safety.tilt.limit_rad:g} rad')

    def _name(self, where: np.ndarray, values: np.ndarray, unit: str, what: str) -> str:
        joints = ', '.join(f'{self._robot.joints[i]} at {values[i]:.2f} {unit}' for i in np.flatnonzero(where))
        return f'{joints} is {what}'

    def _not_finite(self, state: RobotState) -> list[str]:
        names = [f'{self._robot.joints[i]} position' for i in np.flatnonzero(~np.isfinite(state.joint_pos))]
        names += [f'{self._robot.joints[i]} velocity' for i in np.flatnonzero(~np.isfinite(state.joint_vel))]
        if not np.isfinite(state.base_quat_xyzw).all():
            names.append('IMU orientation')
        if state.base_ang_vel is not None and not np.isfinite(state.base_ang_vel).all():
            names.append('IMU angular velocity')
        return names


def _cos_tilt(state: RobotState) -> float:
    """Return the cosine of the angle between the base's down axis and gravity, without numpy's price for one number."""
    x, y = float(state.base_quat_xyzw[0]), float(state.base_quat_xyzw[1])
    return 1.0 - 2.0 * (x * x + y * y)
