# SPDX-License-Identifier: Apache-2.0
"""`Plant`: B robots of one scenario, each with its own draws, in one `mujoco.batch.Batch`. Takes torque, gives true states.

Joints in robot order. A fixed base has no IMU, is not pushed and cannot fall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim2real_ros.errors import DependencyError
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import gravity_in_base, multiply_xyzw, world_to_base, wxyz_from_xyzw, xyzw_from_wxyz
from sim2real_ros.signals import LEVEL_XYZW
from sim2real_ros.sim.ground import PLACES, Field, Ground, Plane
from sim2real_ros.sim.model import FLOOR, build_model, import_mujoco
from sim2real_ros.sim.world import World
from sim2real_ros.validation.draws import Draws
from sim2real_ros.validation.schema import ScenarioSection

if TYPE_CHECKING:
    import mujoco

LONGEST_STEP_S = 0.002  # of the physics
FORCE_S = 1.0  # that the constant force acts
CLEARANCE = 0.4  # m around the base whose highest ground decides where it starts
BASE = 1  # body


def ground_of(scenario: ScenarioSection) -> Ground:
    """Return the ground of a scenario."""
    if scenario.ground == 'rough':
        return Field.rough(scenario.height_m)
    return Field.steps(scenario.height_m) if scenario.ground == 'steps' else Plane()


def physics_steps(robot: Robot) -> int:
    """Return the physics steps between two joint states."""
    return int(np.ceil(1.0 / robot.sensors.rate_hz / LONGEST_STEP_S - 1e-9))


def standing_height(robot: Robot, pose: np.ndarray) -> float:
    """Return the height in m of the base of a robot that stands in a pose, (n,) rad."""
    world = World(robot)
    for name, position in zip(robot.joints, pose, strict=True):
        world.data.joint(name).qpos = position
    import_mujoco().mj_forward(world.model, world.data)
    return float(world.data.qpos[2]) - world.clearance()


class Plant:
    """The simulations.

    Attributes:
        timestep: s, of the physics.
        batch: the simulations.
        strength: (B, n) factor of each motor.
    """

    def __init__(
        self, robot: Robot, ground: Ground, draws: Draws, pose: np.ndarray, height: float, *, threads: int = 1
    ) -> None:
        """Build the simulations and stand the robots up.

        Args:
            robot: what is simulated.
            ground: of all of them.
            draws: of the episodes.
            pose: (n,) rad.
            height: m, of the base above the ground in this pose; ignored for a fixed base.
            threads: of the physics.

        Raises:
            DependencyError: MuJoCo is older than 4.
        """
        try:
            from mujoco.batch import Batch  # noqa: PLC0415 - MuJoCo 4
        except ImportError:
            raise DependencyError('validation needs MuJoCo 4 (Python 3.11 or newer): pip install "mujoco>=4"') from None
        self.robot, self._ground, self._draws = robot, ground, draws
        self.timestep = 1.0 / robot.sensors.rate_hz / physics_steps(robot)
        model = build_model(robot, timestep=self.timestep, ground=ground)
        self.batch = Batch(model, len(draws.indices), threads)
        self._q = _columns([model.joint(name).qposadr[0] for name in robot.joints])
        self._v = _columns([model.joint(name).dofadr[0] for name in robot.joints])
        self.strength = draws.values['motor_strength_factor']
        self._qpos, self._qvel, self._ctrl = self.batch.qpos, self.batch.qvel, self.batch.ctrl
        self._force, self._forced = self.batch.xfrc_applied, False
        self._vary(model)
        self._stand(pose + draws.values['start_joint_rad'], height)

    # --- what the robots do

    @property
    def joint_pos(self) -> np.ndarray:
        """True joint positions, (B, n) rad."""
        return self._qpos[:, self._q]

    @property
    def joint_vel(self) -> np.ndarray:
        """True joint velocities, (B, n) rad/s."""
        return self._qvel[:, self._v]

    @property
    def quat_xyzw(self) -> np.ndarray:
        """True orientation of the base in the world, (B, 4)."""
        if not self.robot.floating:
            return np.tile(LEVEL_XYZW, (len(self._qpos), 1))
        return xyzw_from_wxyz(self._qpos[:, 3:7])

    @property
    def ang_vel(self) -> np.ndarray:
        """True angular velocity, (B, 3) rad/s, base frame."""
        return self._qvel[:, 3:6] if self.robot.floating else np.zeros((len(self._qpos), 3))

    @property
    def lin_vel(self) -> np.ndarray:
        """True linear velocity, (B, 3) m/s, base frame."""
        if not self.robot.floating:
            return np.zeros((len(self._qpos), 3))
        return world_to_base(self.quat_xyzw, self._qvel[:, :3])

    @property
    def base_pos(self) -> np.ndarray:
        """True position of the base in the world, (B, 3) m."""
        return self._qpos[:, :3] if self.robot.floating else np.zeros((len(self._qpos), 3))

    @property
    def clearance(self) -> np.ndarray:
        """Height of the base above the ground, (B,) m."""
        return self._qpos[:, 2] - self._ground.height(self._qpos[:, :2], self._normal)

    @property
    def qpos(self) -> np.ndarray:
        """Every position coordinate of MuJoCo, (B, nq)."""
        return self._qpos

    def step(self, torque: np.ndarray, alive: np.ndarray | None = None) -> None:
        """Let torques (B, n) N m act for one physics step on the simulations `alive` (k,), or on all."""
        np.multiply(torque, self.strength, out=self._ctrl)
        self.batch.step(alive)

    def diverged(self) -> np.ndarray:
        """Return which simulations came to numbers that are none, (B,); MuJoCo has then reset them."""
        return self.batch.warning[:, self._bad, 1].any(axis=1) | ~np.isfinite(self._qpos[:, 0])

    def disturb(self, begin: float, end: float) -> None:
        """Let the pushes of the time (begin, end] in s happen, and the force that follows the first one."""
        if not self.robot.floating:
            return
        draws, values = self._draws, self._draws.values
        for lane, push in np.argwhere((draws.push_s > begin) & (draws.push_s <= end)):
            angle, speed = draws.push_rad[lane, push], values['push_speed_m_s'][lane]
            self._qvel[lane, :2] += speed * np.cos(angle), speed * np.sin(angle)
            up = -gravity_in_base(xyzw_from_wxyz(self._qpos[lane, 3:7]))
            self._qvel[lane, 3:6] += values['push_turn_rad_s'][lane] * up
        first, force = draws.push_s[:, 0], values['force_n']
        pushed = (first <= end) & (end < first + FORCE_S)
        if pushed.any() or self._forced:
            self._forced = bool(pushed.any())
            self._force[:, BASE, 0] = pushed * force * np.cos(values['force_direction_rad'])
            self._force[:, BASE, 1] = pushed * force * np.sin(values['force_direction_rad'])

    def digest(self, lane: int) -> bytes:
        """Return every bit of a simulation's state."""
        return self._qpos[lane].tobytes() + self._qvel[lane].tobytes()

    # --- how they differ

    def _vary(self, model: mujoco.MjModel) -> None:
        """Write the draws into the models of the simulations."""
        values, field, lanes = self._draws.values, self.batch.expand, np.arange(len(self._draws.indices))
        dofs = np.array([model.joint(name).dofadr[0] for name in self.robot.joints])
        geoms = np.array([i for i in range(model.ngeom) if model.geom(i).name != FLOOR], dtype=int)
        figures, links = self.robot.simulated(), values['link_mass_factor']
        field('geom_friction')[np.ix_(lanes, geoms, np.array([0]))] = values['friction'][:, None, None]
        field('body_mass')[:, BASE:] *= links
        field('body_inertia')[:, BASE:] *= links[..., None]
        carrier = BASE if self.robot.floating else model.nbody - 1
        field('body_mass')[:, carrier] += values['payload_kg']
        field('body_ipos')[:, carrier] += values['centre_of_mass_m']
        field('dof_frictionloss')[:, dofs] = figures.joint_friction * values['joint_friction_factor']
        field('dof_damping')[:, dofs] = figures.joint_damping * values['joint_damping_factor']
        field('dof_armature')[:, dofs] = figures.armature * values['armature_factor'][:, None]
        slope, direction = values['slope_rad'], values['slope_direction_rad']
        self._normal = np.stack((np.sin(slope) * np.cos(direction), np.sin(slope) * np.sin(direction), np.cos(slope)), axis=-1)
        if isinstance(self._ground, Plane) and slope.any():
            field('geom_quat')[:, model.geom(FLOOR).id] = wxyz_from_xyzw(self.ground_quat_xyzw)
        self.batch.set_const()
        mujoco = import_mujoco()
        self._bad = [
            int(w)
            for w in (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
        ]

    @property
    def ground_quat_xyzw(self) -> np.ndarray:
        """Rotation from level to the slope, (B, 4) xyzw: about the horizontal axis across its direction."""
        values = self._draws.values
        half, direction = 0.5 * values['slope_rad'], values['slope_direction_rad']
        zero = np.zeros_like(half)
        return np.stack((-np.sin(half) * np.sin(direction), np.sin(half) * np.cos(direction), zero, np.cos(half)), axis=-1)

    def _stand(self, joint_pos: np.ndarray, height: float) -> None:
        self._qpos[:, self._q] = joint_pos
        if self.robot.floating:
            values = self._draws.values
            half, zero = 0.5 * values['yaw_rad'], np.zeros(len(joint_pos))
            heading = np.stack((zero, zero, np.sin(half), np.cos(half)), axis=-1)
            self._qpos[:, 3:7] = wxyz_from_xyzw(multiply_xyzw(self.ground_quat_xyzw, heading))
            if isinstance(self._ground, Field):
                self._qpos[:, :2] = PLACES * (values['place'] - 0.5)
                around = CLEARANCE * np.stack(np.meshgrid(*(np.linspace(-1, 1, 9),) * 2), axis=-1).reshape(-1, 1, 2)
                highest = self._ground.height(self._qpos[:, :2] + around, self._normal).max(axis=0)
                self._qpos[:, 2] = height + highest
            else:
                self._qpos[:, :3] = height * self._normal
        self.batch.forward()


def _columns(addresses: list[int]) -> slice | np.ndarray:
    """Return addresses as a slice where they follow each other, which makes views of copies."""
    first = addresses[0]
    if addresses == list(range(first, first + len(addresses))):
        return slice(first, first + len(addresses))
    return np.array(addresses)
