# SPDX-License-Identifier: Apache-2.0
"""Domain randomisation: the differences between simulator and robot that a policy must survive.

Every range is of the training distribution and is written on the model card. `Ranges` is the whole list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real_ros.sim.model import FLOOR

if TYPE_CHECKING:
    from mujoco.batch import Batch

    from sim2real_ros.robot import Robot

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Uniform ranges. Factors multiply the nominal value; noise is uniform within plus or minus the figure, mean zero."""

    friction: Range = (0.4, 1.2)  # foot against floor
    base_mass: Range = (-1.0, 3.0)  # kg, added to the trunk
    centre_of_mass: float = 0.03  # m, of the trunk, each axis
    motor_strength: Range = (0.9, 1.1)  # factor on the torque
    stiffness: Range = (0.9, 1.1)  # factor
    damping: Range = (0.8, 1.2)  # factor
    joint_friction: Range = (0.0, 0.4)  # N m
    joint_damping: Range = (0.02, 0.2)  # N m s/rad
    action_delay_s: Range = (0.0, 0.02)  # command to torque
    joint_offset: float = 0.02  # rad, encoder calibration, constant over an episode
    noise_joint_pos: float = 0.01  # rad
    noise_joint_vel: float = 0.75  # rad/s
    noise_base_ang_vel: float = 0.2  # rad/s
    noise_projected_gravity: float = 0.05
    push_speed: float = 0.6  # m/s, added to the base velocity in x and y
    push_yaw_rate: float = 0.4  # rad/s
    push_interval_s: float = 6.0


class Randomizer:
    """Draws a new robot for simulations of a `Batch` whose actuators are position servos."""

    def __init__(self, batch: Batch, robot: Robot, ranges: Ranges, rng: np.random.Generator) -> None:
        self.batch, self.robot, self.ranges, self.rng = batch, robot, ranges, rng
        model = batch.model
        self._base = int(model.jnt_bodyid[0])
        self._dofs = np.array([model.joint(name).dofadr[0] for name in robot.joints])
        self._geoms = np.array([i for i in range(model.ngeom) if model.geom(i).name != FLOOR])
        self._nominal_mass = float(model.body_mass[self._base])
        self._nominal_com = model.body_ipos[self._base].copy()
        for field in ('geom_friction', 'body_mass', 'body_ipos', 'actuator_gainprm', 'actuator_biasprm',
                      'dof_frictionloss', 'dof_damping'):  # fmt: skip
            batch.expand(field)
        self.joint_offset = np.zeros((batch.nsim, len(robot.joints)))

    def draw(self, ids: np.ndarray, stiffness: np.ndarray, damping: np.ndarray) -> None:
        """Give the simulations `ids` new physical parameters.

        Args:
            ids: (k,) simulations.
            stiffness: (n,) nominal kp in N m/rad, robot joint order.
            damping: (n,) nominal kd in N m s/rad.
        """
        r, k, n = self.ranges, len(ids), len(self.robot.joints)
        if k == 0:
            return
        uniform = self.rng.uniform
        field = self.batch.expand
        field('geom_friction')[np.ix_(ids, self._geoms, [0])] = uniform(*r.friction, (k, 1, 1))
        field('body_mass')[ids, self._base] = self._nominal_mass + uniform(*r.base_mass, k)
        field('body_ipos')[ids, self._base] = self._nominal_com + uniform(-1, 1, (k, 3)) * r.centre_of_mass
        strength = uniform(*r.motor_strength, (k, n))
        kp = stiffness * uniform(*r.stiffness, (k, n)) * strength
        kd = damping * uniform(*r.damping, (k, n)) * strength
        field('actuator_gainprm')[ids, :, 0] = kp
        field('actuator_biasprm')[ids, :, 1] = -kp
        field('actuator_biasprm')[ids, :, 2] = -kd
        field('dof_frictionloss')[np.ix_(ids, self._dofs)] = uniform(*r.joint_friction, (k, n))
        field('dof_damping')[np.ix_(ids, self._dofs)] = uniform(*r.joint_damping, (k, n))
        self.joint_offset[ids] = uniform(-1, 1, (k, n)) * r.joint_offset
        self.batch.set_const(ids)
