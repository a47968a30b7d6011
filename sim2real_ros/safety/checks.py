# SPDX-License-Identifier: Apache-2.0
"""What is looked at in a state before a torque is computed. A finding is a named fault, never a clip.

| fault | found when | within |
|---|---|---|
| non_finite_sensor | a joint or IMU value is NaN or infinite | the same tick |
| stale_joint_state | two joint states are further apart than the time-out | the same tick |
| stale_imu | the IMU sample is older than the joint state by more than the time-out | the same tick |
| frozen_joint_state, frozen_imu | `frozen_samples` samples with new stamps are identical in every bit | that many samples |
| tilt | the base leans beyond the limit, for the stated time; from `warn_rad` on a warning | the stated time |
| angular_rate | the base turns faster than `angular_rate`, for `angular_rate_s` | that time |
| joint_position | a joint is `position_tolerance_rad` outside its hard limit | `persistence` samples |
| joint_velocity | a joint is faster than `velocity_factor` times its limit | `persistence` samples |
| encoder_jump | a position moved by over `encoder_jump_factor` v_max dt + 0.01 rad; held till then | `persistence` samples |
| velocity_mismatch | velocity and change of position disagree by `velocity_mismatch` v_max | `velocity_mismatch_s` |

Position, speed, jump and mismatch of all joints are scaled to 1 at their limits and compared at once; what is wrong is
only looked up when something is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.safety.findings import Fault
from sim2real_ros.signals import RobotState

JUMP_SLACK = 0.01  # rad
BLOCK_S = 0.02  # over which velocity and change of position are compared
POSITION, SPEED, JUMP = range(3)  # rows of the scaled values


class StateChecks:
    """Checks of the sensors of one robot, joints in robot order.

    Attributes:
        green: whether the last state showed nothing at all, not even what has yet to last for some time.
        warnings: by name; of the last state.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot, limits, monitors = robot, robot.limits, robot.monitors
        n, self._dt = len(robot.joints), 1.0 / robot.sensors.rate_hz
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)  # a wheel has no limits
        self._middle = 0.5 * np.where(bounded, limits.lower, 0.0) + 0.5 * np.where(bounded, limits.upper, 0.0)
        jump = monitors.encoder_jump_factor * limits.velocity * self._dt + JUMP_SLACK
        half = 0.5 * (limits.upper - limits.lower) + monitors.position_tolerance_rad
        self._scale = 1.0 / np.stack((half, monitors.velocity_factor * limits.velocity, jump))
        self._raw, self._rows = np.zeros((3, n)), np.zeros((3, n))
        self._longest_dt = 1.1 * self._dt
        self._mismatch, self._travel = monitors.velocity_mismatch * limits.velocity, np.zeros(n)
        self._cos_tilt = math.cos(robot.safety.tilt.limit_rad)
        self._cos_warn = math.cos(robot.safety.tilt.warn_rad)
        self._square_rate = monitors.angular_rate**2
        self.reset()

    def reset(self) -> None:
        """Forget what persisted."""
        self.green = False
        self.warnings: dict[str, str] = {}
        self._previous: RobotState | None = None
        self._counts = [0, 0, 0]
        self._mismatch_s = self._tilted_s = self._turning_s = 0.0
        self._block: RobotState | None = None  # state at which the block began
        self._block_size = 0  # states in it
        self._same_joints = self._same_imu = 0
        self._raw[:] = 0.0

    def check(self, state: RobotState, dt: float) -> tuple[RobotState, Fault | None]:
        """Look at a state.

        Args:
            state: joints in robot order.
            dt: s since the state before, 0 for the first.

        Returns:
            The state to go on with, and what is wrong with it.
        """
        self.green = True
        previous, self._previous = self._previous, state
        worst = self._compare(state, previous, dt)
        if not worst <= 1.0 and not self.finite(state):
            self.green, self._previous = False, previous
            return state, self.not_finite(state)
        fault = self._timing(state, dt) or (self._base(state, dt) if self._robot.floating else None)
        if previous is not None:
            fault = fault or self._frozen(state, previous) or self._disagreement(state, previous, dt)
        if worst > 1.0:
            self.green = False
            state, found = self._joints(state, previous)
            fault = fault or found
        elif self._counts != [0, 0, 0]:
            self._counts = [0, 0, 0]
        if fault is not None:
            self.green = False
        return state, fault

    def finite(self, state: RobotState) -> bool:
        """Return whether every number of the state is finite."""
        return self.joints_finite(state) and self._imu_finite(state)

    @staticmethod
    def joints_finite(state: RobotState) -> bool:
        """Return whether every joint value is finite."""
        return bool(np.isfinite(state.joint_pos).all() and np.isfinite(state.joint_vel).all())

    def _compare(self, state: RobotState, previous: RobotState | None, dt: float) -> float:
        """Return the largest value in shares of its limit; NaN when any number, of the IMU too, is not finite."""
        place, speed, step = self._raw  # views, made anew: in a copy of the checks kept ones would be those of the original
        np.subtract(state.joint_pos, self._middle, out=place)
        speed[...] = state.joint_vel
        if previous is not None:
            np.subtract(state.joint_pos, previous.joint_pos, out=step)
            if dt > self._longest_dt:
                step *= self._dt / dt
        np.multiply(self._raw, self._scale, out=self._rows)
        np.abs(self._rows, out=self._rows)
        worst = float(np.maximum.reduce(self._rows, axis=None))
        return worst if self._imu_finite(state) else math.nan

    @staticmethod
    def _imu_finite(state: RobotState) -> bool:
        imu = sum(state.base_quat_xyzw.tolist())
        if state.base_ang_vel is not None:
            imu += sum(state.base_ang_vel.tolist())
        return math.isfinite(imu)

    def _timing(self, state: RobotState, dt: float) -> Fault | None:
        sensors = self._robot.sensors
        if dt > sensors.joint_timeout_s:
            return Fault(
                'stale_joint_state',
                f'no joint state for {1e3 * dt:.0f} ms, allowed {1e3 * sensors.joint_timeout_s:.0f} ms',
            )
        if self._robot.floating and not abs(state.imu_age) <= sensors.imu_timeout_s:
            allowed = 1e3 * sensors.imu_timeout_s
            return Fault('stale_imu', f'the IMU sample is {1e3 * state.imu_age:.0f} ms old, allowed {allowed:.0f} ms')
        return None

    def _base(self, state: RobotState, dt: float) -> Fault | None:
        cos, tilt = _cos_tilt(state), self._robot.safety.tilt
        if cos < self._cos_warn:
            self.warnings['tilt'] = f'the base leans by {_angle(cos):.2f} rad'
        elif self.warnings:
            self.warnings.pop('tilt', None)
        if cos < self._cos_tilt:
            self.green = False
            self._tilted_s += dt
            if self._tilted_s > tilt.duration_s:
                return Fault('tilt', f'the base leans by {_angle(cos):.2f} rad, allowed {tilt.limit_rad:g} rad')
        else:
            self._tilted_s = 0.0
        return self._turning(state, dt)

    def _turning(self, state: RobotState, dt: float) -> Fault | None:
        if state.base_ang_vel is None:
            return None
        x, y, z = state.base_ang_vel.tolist()
        square = x * x + y * y + z * z
        if square <= self._square_rate:
            self._turning_s = 0.0
            return None
        self.green = False
        self._turning_s += dt
        if self._turning_s <= self._robot.monitors.angular_rate_s:
            return None
        limit = self._robot.monitors.angular_rate
        return Fault('angular_rate', f'the base turns at {math.sqrt(square):.1f} rad/s, allowed {limit:g} rad/s')

    def _frozen(self, state: RobotState, previous: RobotState) -> Fault | None:
        most = self._robot.monitors.frozen_samples
        if most is None:
            return None
        same = state.joint_pos.tobytes() == previous.joint_pos.tobytes()
        same = same and state.joint_vel.tobytes() == previous.joint_vel.tobytes()
        self._same_joints = self._same_joints + 1 if same else 0
        if self._same_joints >= most and self._robot.monitors.frozen_joints:
            return Fault('frozen_joint_state', f'{most} joint states with new stamps are identical in every bit')
        if state.base_ang_vel is None or previous.base_ang_vel is None:
            return None
        if state.base_ang_vel.tobytes() != previous.base_ang_vel.tobytes():
            self._same_imu = 0
        elif state.stamp - state.imu_age > previous.stamp - previous.imu_age:  # a new sample, not the old one again
            self._same_imu += state.base_quat_xyzw.tobytes() == previous.base_quat_xyzw.tobytes()
            if self._same_imu >= most:
                return Fault('frozen_imu', f'{most} IMU samples with new stamps are identical in every bit')
        return None

    def _disagreement(self, state: RobotState, previous: RobotState, dt: float) -> Fault | None:
        """Compare the mean velocity of a block of states with the way that was covered in it."""
        block, travel = self._block, self._travel
        if block is None or not 0 < dt <= BLOCK_S:  # a gap, or a clock set back: begin again
            self._block, self._block_size = state, 0
            travel[:] = 0.0
            return None
        travel += state.joint_vel
        self._block_size += 1
        if state.stamp - block.stamp < BLOCK_S:
            return None
        elapsed, self._block = state.stamp - block.stamp, None
        travel += 0.5 * (block.joint_vel - state.joint_vel)  # trapezoids
        apart = np.abs(travel / self._block_size - (state.joint_pos - block.joint_pos) / elapsed)
        over = apart > self._mismatch
        if not over.any():
            self._mismatch_s = 0.0
            return None
        self.green = False
        self._mismatch_s += elapsed
        if self._mismatch_s < self._robot.monitors.velocity_mismatch_s:
            return None
        return self._fault('velocity_mismatch', over, state.joint_vel, 'rad/s', 'not what its position does')

    def _joints(self, state: RobotState, previous: RobotState | None) -> tuple[RobotState, Fault | None]:
        """Look up which joints exceed what, and for how long that has lasted."""
        over, monitors = self._rows > 1.0, self._robot.monitors
        for kind in (POSITION, SPEED, JUMP):
            self._counts[kind] = self._counts[kind] + 1 if over[kind].any() else 0
        lasting = [count >= monitors.persistence for count in self._counts]
        fault = None
        if lasting[JUMP]:
            fault = self._fault('encoder_jump', over[JUMP], state.joint_pos, 'rad', 'where it cannot have come in one sample')
        elif lasting[POSITION]:
            fault = self._fault('joint_position', over[POSITION], state.joint_pos, 'rad', 'outside its range')
        elif lasting[SPEED]:
            fault = self._fault('joint_velocity', over[SPEED], state.joint_vel, 'rad/s', 'faster than it may be')
        if over[JUMP].any() and fault is None and previous is not None:
            state = replace(state, joint_pos=np.where(over[JUMP], previous.joint_pos, state.joint_pos))
            self._previous = state
        return state, fault

    def _fault(self, name: str, where: np.ndarray, values: np.ndarray, unit: str, what: str) -> Fault:
        joints = ', '.join(f'{self._robot.joints[i]} at {values[i]:.2f} {unit}' for i in np.flatnonzero(where))
        return Fault(name, f'{joints} is {what}')

    def not_finite(self, state: RobotState) -> Fault:
        """Name what is not finite."""
        names = [f'{self._robot.joints[i]} position' for i in np.flatnonzero(~np.isfinite(state.joint_pos))]
        names += [f'{self._robot.joints[i]} velocity' for i in np.flatnonzero(~np.isfinite(state.joint_vel))]
        if not np.isfinite(state.base_quat_xyzw).all():
            names.append('IMU orientation')
        if state.base_ang_vel is not None and not np.isfinite(state.base_ang_vel).all():
            names.append('IMU angular velocity')
        return Fault('non_finite_sensor', f'not finite: {", ".join(names)}')


def _cos_tilt(state: RobotState) -> float:
    """Return the cosine of the angle between the base's down axis and gravity, without numpy's price for one number."""
    x, y = float(state.base_quat_xyzw[0]), float(state.base_quat_xyzw[1])
    return 1.0 - 2.0 * (x * x + y * y)


def _angle(cos: float) -> float:
    return math.acos(max(-1.0, min(1.0, cos)))
