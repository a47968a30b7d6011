# SPDX-License-Identifier: Apache-2.0
"""`World`: one robot in MuJoCo. Takes torque, gives what its sensors would say."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim2real_ros.robot import Robot
from sim2real_ros.rotations import world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import LEVEL_XYZW, ImuSample, RobotState
from sim2real_ros.sim.model import build_model, import_mujoco, soles


class World:
    """A simulated robot on a flat floor; joints in robot order.

    Attributes:
        model, data: MuJoCo's own.
        time: s since the last reset, plus the time before it: the clock never goes back.
    """

    def __init__(self, robot: Robot, *, timestep: float = 0.002, model_file: Path | None = None) -> None:
        """Build the world; see `build_model` for the errors."""
        self._mujoco = import_mujoco()
        self.robot = robot
        self.model = build_model(robot, timestep=timestep, model_file=model_file)
        self.data = self._mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in robot.joints]
        self._qpos = np.array([joint.qposadr[0] for joint in joints])
        self._qvel = np.array([joint.dofadr[0] for joint in joints])
        self._feet, self._radius = soles(self.model, robot)
        self._push_steps = 0  # that a push still acts
        self._base = 1
        self.steps = 0
        self.reset()

    @property
    def time(self) -> float:
        """Simulated time in s, counted in steps so that it carries no rounding."""
        return self.steps * self.model.opt.timestep

    def reset(self, pose: str | None = None, joint_offset: np.ndarray | None = None) -> None:
        """Put the robot on the floor, at rest, in a named pose (the robot file's start pose by default).

        Args:
            pose: name of a pose.
            joint_offset: (n,) rad added to it, kept inside the joint ranges.

        Raises:
            NotFoundError: the robot has no such pose.
        """
        joints = self.robot.pose(pose or self.robot.simulated().start_pose)
        if joint_offset is not None:
            joints = np.clip(joints + joint_offset, self.robot.limits.lower, self.robot.limits.upper)
        self._mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self._qpos] = joints
        self._push_steps = 0
        if self.robot.floating:
            self.data.qpos[2] = 1.0
            self._mujoco.mj_forward(self.model, self.data)
            self.data.qpos[2] -= self.clearance()
        self._mujoco.mj_step1(self.model, self.data)

    def step(self, torque: np.ndarray) -> None:
        """Advance by one time step under a torque (n,) N m."""
        self.data.ctrl[:] = torque
        # step2 then step1: position and velocity sensors belong to the new state, as on a robot
        self._mujoco.mj_step2(self.model, self.data)
        if self._push_steps > 0:
            self._push_steps -= 1
            if self._push_steps == 0:
                self.data.xfrc_applied[:] = 0
        self._mujoco.mj_step1(self.model, self.data)
        self.steps += 1

    def push(self, velocity: np.ndarray, duration_s: float = 0.1) -> None:
        """Push the base with the force that gives the whole robot a change of velocity (3,) m/s within a time."""
        self._push_steps = max(1, round(duration_s / self.model.opt.timestep))
        impulse = float(self.model.body_mass.sum()) * np.asarray(velocity)
        self.data.xfrc_applied[self._base, :3] = impulse / (self._push_steps * self.model.opt.timestep)

    @property
    def joint_pos(self) -> np.ndarray:
        """(n,) rad."""
        return self.data.qpos[self._qpos]

    @property
    def joint_vel(self) -> np.ndarray:
        """(n,) rad/s."""
        return self.data.qvel[self._qvel]

    def imu(self) -> ImuSample:
        """Return what the IMU says."""
        sensor = self.data.sensor
        return ImuSample(
            xyzw_from_wxyz(sensor('imu_quat_wxyz').data),
            sensor('imu_gyro').data.copy(),
            sensor('imu_accelerometer').data.copy(),
        )

    def base_quat_xyzw(self) -> np.ndarray:
        """Return the base's orientation in the world, (4,)."""
        return xyzw_from_wxyz(self.data.xquat[self._base])

    def base_position(self) -> np.ndarray:
        """Return the base's position in the world, (3,) m."""
        return self.data.xpos[self._base].copy()

    def base_lin_vel(self) -> np.ndarray:
        """Return the base's velocity in the base frame, (3,) m/s."""
        return world_to_base(self.base_quat_xyzw(), self.data.qvel[:3]) if self.robot.floating else np.zeros(3)

    def base_ang_vel(self) -> np.ndarray:
        """Return the base's angular velocity in the base frame, (3,) rad/s."""
        return self.data.qvel[3:6].copy() if self.robot.floating else np.zeros(3)

    def foot_heights(self) -> np.ndarray:
        """Return how high each foot's sole is, (feet,) m; the height of its frame where the link has no shape."""
        return self.data.xpos[self._feet, 2] - self._radius

    def state(self) -> RobotState:
        """Return a perfect sample of the sensors, as the driver and the estimator would publish it."""
        ang_vel, mounting = self.imu().ang_vel, self.robot.imu_mounting_xyzw
        if not np.array_equal(mounting, LEVEL_XYZW):
            ang_vel = world_to_base(mounting * (-1, -1, -1, 1), ang_vel)
        return RobotState(self.time, self.joint_pos, self.joint_vel, self.base_quat_xyzw(), ang_vel, self.base_lin_vel())

    def clearance(self) -> float:
        """Return the distance in m of the robot's lowest point from the floor, by MuJoCo's own distance function."""
        floor = self.model.geom('floor').id
        from_to = np.zeros(6)
        distances = [
            self._mujoco.mj_geomDistance(self.model, self.data, floor, geom, 10.0, from_to)
            for geom in range(self.model.ngeom)
            if geom != floor and self.model.geom_contype[geom] | self.model.geom_conaffinity[geom]
        ]
        return min(distances)
