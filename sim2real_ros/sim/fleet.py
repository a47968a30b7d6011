# SPDX-License-Identifier: Apache-2.0
"""`Fleet`: many randomised robots stepped together, with sensors as noisy as real ones (MuJoCo 4, Python 3.11 or newer)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sim2real_ros.errors import DependencyError
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import multiply_xyzw, world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import RobotState
from sim2real_ros.sim.ground import Field, Ground, Plane
from sim2real_ros.sim.model import build_model, soles
from sim2real_ros.sim.randomization import Randomizer, Ranges

FIELD_PLACES = 10.0  # m from the middle of a field that robots start at most
REACH = 0.35  # m around the base whose highest ground decides where it starts
UP = np.array([0.0, 0.0, 1.0])


class Fleet:
    """B robots with a floating base; arrays are (B, ...), joints in robot order.

    Positions and velocities are those of the ground's frame, in which a slope is level and gravity leans. What sensors say
    of the orientation is of the world's, whose z axis points against gravity.

    Attributes:
        batch: the simulations.
        randomizer: what makes each robot different.
    """

    def __init__(
        self,
        robot: Robot,
        size: int,
        *,
        ranges: Ranges,
        seed: int,
        timestep: float,
        actuators: Literal['motor', 'position'] = 'motor',
        threads: int = 0,
        ground: Ground | None = None,
    ) -> None:
        """Build the simulations; every one draws its robot at its first reset.

        Args:
            robot: with a floating base.
            size: B.
            ranges: of the randomisation.
            seed: of everything random here.
            timestep: physics step in s.
            actuators: see `build_model`.
            threads: 0 for one per core.
            ground: to walk on; a plane when None.

        Raises:
            DependencyError: MuJoCo is older than 4.
        """
        try:
            from mujoco.batch import Batch  # noqa: PLC0415 - MuJoCo 4
        except ImportError:
            raise DependencyError(
                'simulating many robots needs MuJoCo 4 (Python 3.11 or newer): pip install "mujoco>=4"'
            ) from None
        self.robot, self.ranges, self.rng = robot, ranges, np.random.default_rng(seed)
        self.ground = ground or Plane()
        self.batch = Batch(build_model(robot, timestep=timestep, actuators=actuators, ground=self.ground), size, threads)
        self.randomizer = Randomizer(self.batch, robot, ranges, self.rng)
        model = self.batch.model
        self.qpos, self.qvel, self.ctrl = self.batch.qpos, self.batch.qvel, self.batch.ctrl
        self._joints = slice(7, 7 + len(robot.joints))
        if [model.joint(name).qposadr[0] for name in robot.joints] != list(range(7, 7 + len(robot.joints))):
            raise DependencyError(f"the model of {robot.name} does not list its joints in the robot's order after a free base")
        self._xpos = self.batch.xpos
        self._feet, self._radius = soles(model, robot)

    @property
    def size(self) -> int:
        """B."""
        return self.batch.nsim

    def reset(self, ids: np.ndarray, joint_pos: np.ndarray, height: float, jitter: float = 0.0) -> None:
        """Draw new robots and stand them up.

        Args:
            ids: (k,) simulations.
            joint_pos: (n,) rad.
            height: m, of the base.
            jitter: scale of the random deviation: rad on the joints, m/s and rad/s (times 3) on the base.
        """
        k, n = len(ids), len(self.robot.joints)
        self.batch.reset(ids, stage=0)
        self.randomizer.draw(ids)
        yaw = self.rng.uniform(-np.pi, np.pi, k) if jitter else np.zeros(k)
        qpos, qvel = np.zeros((k, 7 + n)), np.zeros((k, 6 + n))
        if isinstance(self.ground, Field):
            qpos[:, :2] = self.rng.uniform(-FIELD_PLACES, FIELD_PLACES, (k, 2))
            around = REACH * np.array([(x, y) for x in (-1, -0.5, 0, 0.5, 1) for y in (-1, -0.5, 0, 0.5, 1)])
            height = height + self.ground.height(qpos[:, None, :2] + around, UP).max(axis=1)
        qpos[:, 2], qpos[:, 3], qpos[:, 6] = height, np.cos(yaw / 2), np.sin(yaw / 2)
        qpos[:, 7:] = joint_pos + jitter * self.rng.uniform(-1, 1, (k, n))
        qvel[:, :6] = 3 * jitter * self.rng.uniform(-1, 1, (k, 6)) * (1, 1, 0, 1, 1, 1)
        self.qpos[ids], self.qvel[ids] = qpos, qvel
        self.batch.forward(ids)

    def push(self, ids: np.ndarray) -> None:
        """Change the base velocity of the simulations `ids` in x and y."""
        self.qvel[ids, :2] += self.rng.uniform(-1, 1, (len(ids), 2)) * self.ranges.push_speed

    def sense(self, stamp: float) -> RobotState:
        """Return what the sensors say: encoder offset, and noise on everything."""
        r, n, noise = self.ranges, len(self.robot.joints), lambda width: self.rng.uniform(-1, 1, (self.size, width))
        own = self.randomizer
        wobble = np.concatenate(
            (0.5 * (own.imu_mount + r.noise_base_tilt * noise(2)), np.zeros((self.size, 1)), np.ones((self.size, 1))), axis=1
        )
        wobble /= np.linalg.norm(wobble, axis=1, keepdims=True)
        return RobotState(
            stamp,
            self.joint_pos + own.joint_offset + r.noise_joint_pos * noise(n),
            self.joint_vel + r.noise_joint_vel * noise(n),
            multiply_xyzw(self.world_quat_xyzw, wobble),
            self.ang_vel + own.gyro_bias + r.noise_base_ang_vel * noise(3),
        )

    def truth(self, stamp: float) -> RobotState:
        """Return the true state."""
        return RobotState(stamp, self.joint_pos, self.joint_vel, self.world_quat_xyzw, self.ang_vel, self.lin_vel)

    @property
    def joint_pos(self) -> np.ndarray:
        """True joint positions, (B, n) rad; a view."""
        return self.qpos[:, self._joints]

    @property
    def joint_vel(self) -> np.ndarray:
        """True joint velocities, (B, n) rad/s; a view."""
        return self.qvel[:, 6:]

    @property
    def quat_xyzw(self) -> np.ndarray:
        """True orientation of the base in the frame of the ground, (B, 4)."""
        return xyzw_from_wxyz(self.qpos[:, 3:7])

    @property
    def world_quat_xyzw(self) -> np.ndarray:
        """True orientation of the base in the world whose z axis points against gravity, (B, 4)."""
        return multiply_xyzw(self.randomizer.slope_xyzw, self.quat_xyzw) if any(self.ranges.slope) else self.quat_xyzw

    @property
    def height(self) -> np.ndarray:
        """Height of the base above the ground, (B,) m."""
        return self.qpos[:, 2] - self.ground.height(self.qpos[:, :2], UP)

    @property
    def foot_height(self) -> np.ndarray:
        """Height of the soles above the ground, (B, feet) m."""
        feet = self.foot_pos
        return feet[..., 2] - self.ground.height(feet[..., :2], UP)

    @property
    def ang_vel(self) -> np.ndarray:
        """True angular velocity, (B, 3) rad/s, base frame; a view."""
        return self.qvel[:, 3:6]

    @property
    def lin_vel(self) -> np.ndarray:
        """True linear velocity, (B, 3) m/s, base frame."""
        return world_to_base(self.quat_xyzw, self.qvel[:, :3])

    @property
    def foot_pos(self) -> np.ndarray:
        """Soles in the world, (B, feet, 3) m, as of the last physics step."""
        soles = self._xpos[:, self._feet].copy()
        soles[..., 2] -= self._radius
        return soles
