# SPDX-License-Identifier: Apache-2.0
"""Domain randomisation: the differences between simulator and robot that a policy must survive. `Ranges` is the whole list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real_ros.signals import LEVEL_XYZW
from sim2real_ros.sim.model import FLOOR

if TYPE_CHECKING:
    from mujoco.batch import Batch

    from sim2real_ros.robot import Robot

Range = tuple[float, float]
JointRange = tuple[float | np.ndarray, float | np.ndarray]  # an array gives each joint its own, (n,) in robot order
FIELDS = ('geom_friction', 'body_mass', 'body_ipos', 'dof_frictionloss', 'dof_damping')


@dataclass(frozen=True, slots=True)
class Ranges:
    """Uniform ranges. Factors multiply the nominal value; noise lies within plus or minus the figure, its mean is zero."""

    friction: Range = (0.4, 1.2)  # foot against floor
    base_mass: Range = (-1.0, 3.0)  # kg, added to the trunk
    centre_of_mass: float = 0.03  # m, of the trunk, each axis
    motor_strength: Range = (0.9, 1.1)  # factor on the torque
    stiffness: Range = (0.9, 1.1)  # factor on kp
    damping: Range = (0.8, 1.2)  # factor on kd
    joint_friction: JointRange = (0.0, 0.4)  # N m
    joint_damping: JointRange = (0.02, 0.2)  # N m s/rad
    action_delay_s: Range = (0.0, 0.02)  # from the observation to the torque
    joint_offset: float = 0.02  # rad, encoder calibration, constant over an episode
    noise_joint_pos: float = 0.01  # rad
    noise_joint_vel: float = 0.75  # rad/s
    noise_base_ang_vel: float = 0.2  # rad/s
    noise_base_tilt: float = 0.05  # rad
    push_speed: float = 0.5  # m/s, added to the base velocity in x and in y
    push_interval_s: float = 6.0
    slope: Range = (0.0, 0.0)  # rad, of the ground, in any direction
    imu_mount: float = 0.0  # rad, mounting error about x and about y, constant over an episode
    gyro_bias: float = 0.0  # rad/s, constant over an episode
    armature: Range = (1.0, 1.0)  # factor


def nominal(robot: Robot) -> Ranges:
    """Return ranges that change nothing: the robot file's figures, no noise, no delay, no push."""
    figures = robot.simulated()
    return Ranges(
        friction=(figures.foot_friction, figures.foot_friction),
        base_mass=(0, 0), centre_of_mass=0, motor_strength=(1, 1), stiffness=(1, 1), damping=(1, 1),
        joint_friction=(figures.joint_friction, figures.joint_friction),
        joint_damping=(figures.joint_damping, figures.joint_damping),
        action_delay_s=(0, 0), joint_offset=0, noise_joint_pos=0, noise_joint_vel=0, noise_base_ang_vel=0, noise_base_tilt=0,
        push_speed=0,
    )  # fmt: skip


class Randomizer:
    """Draws new robots for simulations of a `Batch`.

    Attributes:
        strength: (B, n) factor on the torque.
        stiffness: (B, n) factor on kp.
        damping: (B, n) factor on kd.
        delay_s: (B,) action delay.
        joint_offset: (B, n) rad.
        imu_mount: (B, 2) rad about x and y.
        gyro_bias: (B, 3) rad/s.
        slope_xyzw: (B, 4) rotation from the frame of the ground to the world, whose z axis points against gravity.
    """

    def __init__(self, batch: Batch, robot: Robot, ranges: Ranges, rng: np.random.Generator) -> None:
        self._batch, self._ranges, self._rng = batch, ranges, rng
        model, shape = batch.model, (batch.nsim, len(robot.joints))
        self._base = 1
        self._dofs = np.array([model.joint(name).dofadr[0] for name in robot.joints])
        self._geoms = np.array([i for i in range(model.ngeom) if model.geom(i).name != FLOOR])
        self._mass, self._com = float(model.body_mass[self._base]), model.body_ipos[self._base].copy()
        for field in FIELDS:
            batch.expand(field)
        self.strength, self.stiffness, self.damping = np.ones(shape), np.ones(shape), np.ones(shape)
        self.joint_offset, self.delay_s = np.zeros(shape), np.zeros(batch.nsim)
        self.imu_mount, self.gyro_bias = np.zeros((batch.nsim, 2)), np.zeros((batch.nsim, 3))
        self._armature = model.dof_armature[self._dofs].copy()
        self.slope_xyzw = np.tile(LEVEL_XYZW, (batch.nsim, 1))

    def draw(self, ids: np.ndarray) -> None:
        """Give the simulations `ids` (k,) new parameters."""
        r, uniform, field = self._ranges, self._rng.uniform, self._batch.expand
        k, n = len(ids), self.strength.shape[1]
        field('geom_friction')[np.ix_(ids, self._geoms, np.array([0]))] = uniform(*r.friction, (k, 1, 1))
        field('body_mass')[ids, self._base] = self._mass + uniform(*r.base_mass, k)
        field('body_ipos')[ids, self._base] = self._com + uniform(-1, 1, (k, 3)) * r.centre_of_mass
        field('dof_frictionloss')[np.ix_(ids, self._dofs)] = uniform(*r.joint_friction, (k, n))
        field('dof_damping')[np.ix_(ids, self._dofs)] = uniform(*r.joint_damping, (k, n))
        self.strength[ids] = uniform(*r.motor_strength, (k, n))
        self.stiffness[ids] = uniform(*r.stiffness, (k, n))
        self.damping[ids] = uniform(*r.damping, (k, n))
        self.delay_s[ids] = uniform(*r.action_delay_s, k)
        self.joint_offset[ids] = uniform(-1, 1, (k, n)) * r.joint_offset
        # what is drawn since later versions: nothing is taken from the generator where it is left alone
        if r.imu_mount or r.gyro_bias:
            self.imu_mount[ids] = uniform(-1, 1, (k, 2)) * r.imu_mount
            self.gyro_bias[ids] = uniform(-1, 1, (k, 3)) * r.gyro_bias
        if r.armature != (1.0, 1.0):
            field('dof_armature')[np.ix_(ids, self._dofs)] = self._armature * uniform(*r.armature, (k, 1))
        if any(r.slope):
            self._tilt(ids, uniform(*r.slope, k), uniform(-np.pi, np.pi, k))
        self._batch.set_const(ids)

    def _tilt(self, ids: np.ndarray, slope: np.ndarray, direction: np.ndarray) -> None:
        """Give the simulations `ids` (k,) a slope (k,) rad uphill in a direction (k,) rad: gravity leans, not the ground."""
        down = np.stack((-np.sin(slope) * np.cos(direction), -np.sin(slope) * np.sin(direction), -np.cos(slope)), axis=-1)
        self._batch.expand('opt.gravity')[ids] = np.linalg.norm(self._batch.model.opt.gravity) * down
        half, zero = 0.5 * slope, np.zeros(len(ids))
        up_to_z = (np.sin(half) * np.sin(direction), -np.sin(half) * np.cos(direction), zero, np.cos(half))
        self.slope_xyzw[ids] = np.stack(up_to_z, axis=-1)

    @property
    def friction(self) -> np.ndarray:
        """Foot friction of every simulation, (B,)."""
        return self._batch.expand('geom_friction')[:, self._geoms[-1], 0]

    @property
    def added_mass(self) -> np.ndarray:
        """Mass added to the trunk, (B,) kg."""
        return self._batch.expand('body_mass')[:, self._base] - self._mass
