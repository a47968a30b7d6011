# SPDX-License-Identifier: Apache-2.0
"""`Senses`: what the sensors of B robots say: late, noisy, out of true, and now and then nothing new."""

from __future__ import annotations

import numpy as np

from sim2real_ros.rotations import multiply_xyzw, world_to_base
from sim2real_ros.signals import RobotState
from sim2real_ros.validation.draws import Draws
from sim2real_ros.validation.noise import Noise
from sim2real_ros.validation.plant import Plant
from sim2real_ros.validation.schema import RangesSection


class Senses:
    """The sensors of a plant. `note` takes the truth of every physics step, `sample` what arrives of it.

    A sample that does not come is the last one once more, to everyone: the nodes would keep their torque and wait.

    Attributes:
        gap: (B,) samples since the last one that came, 1 when none is missing; what the next one is compared over.
    """

    def __init__(self, plant: Plant, draws: Draws, ranges: RangesSection, noise: Noise) -> None:
        values, n = draws.values, len(plant.robot.joints)
        self._plant, self._noise, self._n = plant, noise, n
        self._lanes = np.arange(len(draws.indices))
        self._joint_delay = np.rint(values['joint_delay_s'] / plant.timestep).astype(int)  # physics steps
        self._imu_delay = np.rint(values['imu_delay_s'] / plant.timestep).astype(int)
        self._past = np.zeros((int(max(self._joint_delay.max(), self._imu_delay.max())) + 1, len(self._lanes), 2 * n + 7))
        self._offset, self._bias, self._dropped = values['joint_offset_rad'], values['gyro_bias_rad_s'], values['dropped']
        self._mount = values['imu_mount_rad']
        self._drops, self._crooked = bool(self._dropped.any()), bool(self._mount.any() or ranges.noise_tilt_rad)
        self._held: np.ndarray | None = None
        self.gap, self._missed = np.ones(len(self._lanes), int), np.zeros(len(self._lanes), int)
        self._steps = 0
        self.note()
        self._past[:] = self._past[0]  # it has stood there before

    @staticmethod
    def deviations(joints: int, ranges: RangesSection) -> np.ndarray:
        """Return the standard deviation of each number of a sample, (2 n + 5,): q, qd, angular velocity, tilt about x and y."""
        return np.concatenate((
            np.full(joints, ranges.noise_joint_pos_rad),
            np.full(joints, ranges.noise_joint_vel_rad_s),
            np.full(3, ranges.noise_ang_vel_rad_s),
            np.full(2, ranges.noise_tilt_rad),
        ))  # fmt: skip

    def note(self) -> None:
        """Take the true state after a physics step."""
        plant, n, row = self._plant, self._n, self._past[self._steps % len(self._past)]
        row[:, :n], row[:, n : 2 * n] = plant.joint_pos, plant.joint_vel
        if plant.robot.floating:
            row[:, 2 * n : 2 * n + 4], row[:, 2 * n + 4 :] = plant.quat_xyzw, plant.ang_vel
        else:
            row[:, 2 * n + 3] = 1.0
        self._steps += 1

    def sample(self, stamp: float) -> RobotState:
        """Return the sample that arrives now, (B, ...), joints in robot order; a new array each time."""
        n, newest, rows = self._n, self._steps - 1, len(self._past)
        joints = self._past[(newest - self._joint_delay) % rows, self._lanes, : 2 * n]
        imu = self._past[(newest - self._imu_delay) % rows, self._lanes, 2 * n :]
        noise, luck = self._noise.sample()
        joints += noise[:, : 2 * n]
        joints[:, :n] += self._offset
        quat, ang_vel = imu[:, :4], imu[:, 4:]
        if self._crooked:
            quat, ang_vel = self._tilted(quat, ang_vel, noise[:, 2 * n + 3 :])
        ang_vel = ang_vel + self._bias + noise[:, 2 * n : 2 * n + 3]
        if self._drops:
            new = np.concatenate((joints, quat, ang_vel), axis=1)
            if self._held is not None:
                lost = luck < self._dropped
                np.copyto(new, self._held, where=lost[:, None])
                self.gap = self._missed + 1
                self._missed = np.where(lost, self.gap, 0)
            self._held = new
            joints, quat, ang_vel = new[:, : 2 * n], new[:, 2 * n : 2 * n + 4], new[:, 2 * n + 4 :]
        return RobotState(stamp, joints[:, :n].copy(), joints[:, n:].copy(), quat, ang_vel)

    def _tilted(self, quat: np.ndarray, ang_vel: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return orientation and rate as an IMU tells that is mounted askew, and whose orientation trembles."""
        half = 0.5 * (self._mount + noise)
        zero = np.zeros(len(half))
        askew = np.stack((half[:, 0], half[:, 1], zero, np.sqrt(1.0 - half[:, 0] ** 2 - half[:, 1] ** 2)), axis=-1)
        return multiply_xyzw(quat, askew), world_to_base(askew, ang_vel)
