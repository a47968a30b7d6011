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
        self._rows = int(max(self._joint_delay.max(), self._imu_delay.max())) + 1
        size = len(self._lanes)
        self._joint_pos, self._joint_vel = np.zeros((self._rows, size, n)), np.zeros((self._rows, size, n))
        self._imu = np.zeros((self._rows, size, 7))  # orientation, angular velocity
        self._offset, self._bias, self._dropped = values['joint_offset_rad'], values['gyro_bias_rad_s'], values['dropped']
        self._mount = values['imu_mount_rad']
        self._drops, self._crooked = bool(self._dropped.any()), bool(self._mount.any() or ranges.noise_tilt_rad)
        self._held: tuple[np.ndarray, ...] | None = None
        self.gap, self._missed = np.ones(len(self._lanes), int), np.zeros(len(self._lanes), int)
        self._steps = 0
        self.note()
        for past in (self._joint_pos, self._joint_vel, self._imu):
            past[:] = past[0]  # it has stood there before

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
        plant, row = self._plant, self._steps % self._rows
        self._joint_pos[row], self._joint_vel[row] = plant.joint_pos, plant.joint_vel
        if plant.robot.floating:
            self._imu[row, :, :4], self._imu[row, :, 4:] = plant.quat_xyzw, plant.ang_vel
        else:
            self._imu[row, :, 3] = 1.0
        self._steps += 1

    def sample(self, stamp: float) -> RobotState:
        """Return the sample that arrives now, (B, ...), joints in robot order; a new array each time."""
        n, (noise, luck) = self._n, self._noise.sample()
        joint_pos, joint_vel = self._late(self._joint_pos, self._joint_delay), self._late(self._joint_vel, self._joint_delay)
        imu = self._late(self._imu, self._imu_delay)
        joint_pos += self._offset
        joint_pos += noise[:, :n]
        joint_vel += noise[:, n : 2 * n]
        quat, ang_vel = imu[:, :4], imu[:, 4:]
        if self._crooked:
            quat, ang_vel = self._tilted(quat, ang_vel, noise[:, 2 * n + 3 :])
        ang_vel = ang_vel + self._bias
        ang_vel += noise[:, 2 * n : 2 * n + 3]
        if self._drops:
            self._lose((joint_pos, joint_vel, quat, ang_vel), luck < self._dropped)
        return RobotState(stamp, joint_pos, joint_vel, quat, ang_vel)

    def _late(self, past: np.ndarray, delay: np.ndarray) -> np.ndarray:
        """Return what each robot's sensor saw its delay ago, (B, w), a new array."""
        rows = (self._steps - 1 - delay) % self._rows
        return past.reshape(-1, past.shape[-1]).take(rows * len(self._lanes) + self._lanes, axis=0)

    def _lose(self, values: tuple[np.ndarray, ...], lost: np.ndarray) -> None:
        """Put the last sample in the place of those that are lost, (B,)."""
        if self._held is not None:
            for value, held in zip(values, self._held, strict=True):
                np.copyto(value, held, where=lost[:, None])
            self.gap = self._missed + 1
            self._missed = np.where(lost, self.gap, 0)
        self._held = values

    def _tilted(self, quat: np.ndarray, ang_vel: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return orientation and rate as an IMU tells that is mounted askew, and whose orientation trembles."""
        half = 0.5 * (self._mount + noise)
        zero = np.zeros(len(half))
        askew = np.stack((half[:, 0], half[:, 1], zero, np.sqrt(1.0 - half[:, 0] ** 2 - half[:, 1] ** 2)), axis=-1)
        return multiply_xyzw(quat, askew), world_to_base(askew, ang_vel)
