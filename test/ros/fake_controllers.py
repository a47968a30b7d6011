# SPDX-License-Identifier: Apache-2.0
"""What ros2_control and Gazebo do to a robot, as documented and seen, without ROS: the controller and the plant behind it.

The effort controller holds its last command for ever, drops a message with a number that is not finite, and is deactivated by
one of the wrong size. Before its first activation the joints are held rigid, after a deactivation they are limp.
"""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np

from sim2real_ros.joints import JointMap
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import world_to_base
from sim2real_ros.signals import ImuSample, RobotState
from sim2real_ros.sim.world import World

DEACTIVATED = 'Deactivating following controllers as their update resulted in an error: effort_controller'


class EffortController:
    """forward_command_controller/ForwardCommandController with the interface `effort`.

    Attributes:
        active: whether its commands reach the joints.
        ever: whether it was active once.
        received: commands that arrived, whatever became of them.
    """

    def __init__(self, robot: Robot, joints: tuple[str, ...]) -> None:
        self._to_robot = JointMap(joints, robot.joints, source='effort_controller', target='robot', exact=True)
        self._joints = joints
        self.active = self.ever = False
        self.received = 0
        self._held = np.zeros(len(joints))  # on the command interfaces
        self._new: np.ndarray | None = None

    def take(self, numbers: np.ndarray) -> str:
        """Take a message; returns what is logged about it."""
        self.received += 1
        if not np.isfinite(numbers).all():
            return 'Command message contains NaN or Inf: dropped'
        self._new = numbers
        return ''

    def activate(self) -> None:
        """A command from before the activation does not count."""
        self.active = self.ever = True
        self._new = None

    def deactivate(self) -> None:
        """No torque is left behind."""
        self.active = False
        self._held = np.zeros(len(self._joints))

    def update(self) -> str:
        """Run a cycle of the controller manager; returns what is logged."""
        new, self._new = self._new, None
        if not self.active or new is None:
            return ''
        if len(new) != len(self._joints):
            self.deactivate()
            return DEACTIVATED
        self._held = new
        return ''

    @property
    def torque(self) -> np.ndarray:
        """What is written to the joints, (n,) N m in robot order."""
        return self._to_robot(self._held)


class Plant:
    """The robot behind the command interfaces.

    Attributes:
        world: the simulated robot.
    """

    def __init__(
        self, robot: Robot, pose: str, *, hangs: bool = False, swapped: tuple[str, ...] = (), flipped: str = ''
    ) -> None:
        """Build it.

        Args:
            robot: to simulate.
            pose: of the robot file, to begin in.
            hangs: the base is held in the air.
            swapped: two joints whose motors are connected the other way round.
            flipped: a joint whose motor turns the wrong way.
        """
        self.world = World(robot)
        self.world.reset(pose)
        self._hangs = hangs
        if hangs:
            self.world.data.qpos[2] += 0.5
            mujoco.mj_step1(self.world.model, self.world.data)
        self._base = self.world.data.qpos[:7].copy()
        self._from = np.arange(len(robot.joints))
        if swapped:
            one, other = (robot.joints.index(joint) for joint in swapped)
            self._from[[one, other]] = other, one
        self._noise = np.random.default_rng(0)
        self._sign = np.where(np.array(robot.joints) == flipped, -1.0, 1.0)

    def state(self) -> RobotState:
        """Return what the sensors say, with the noise of encoders and gyro: a robot at rest is no frozen stream."""
        true, noise, n = self.world.state(), self._noise, len(self._sign)
        assert true.base_ang_vel is not None
        return replace(
            true,
            joint_pos=true.joint_pos + noise.normal(0, 1e-4, n),
            joint_vel=true.joint_vel + noise.normal(0, 1e-2, n),
            base_ang_vel=true.base_ang_vel + noise.normal(0, 1e-3, 3),
        )

    def imu(self, state: RobotState) -> ImuSample:
        """Return what the IMU says together with a state."""
        sample = replace(self.world.imu(), ang_vel=state.base_ang_vel)
        if not self._hangs:
            return sample
        return replace(sample, lin_acc=world_to_base(sample.quat_xyzw, np.array([0.0, 0.0, 9.81])))  # what holds it up, too

    def step(self, torque: np.ndarray, *, rigid: bool) -> None:
        """Advance by a time step under torque (n,) N m, robot order; rigid joints take none and do not move."""
        data, before = self.world.data, self.world.data.qpos[7:].copy()
        self.world.step(np.zeros_like(torque) if rigid else self._sign * torque[self._from])
        if rigid:
            data.qpos[7:], data.qvel[6:] = before, 0.0
        if self._hangs:
            data.qpos[:7], data.qvel[:6] = self._base, 0.0
        if rigid or self._hangs:
            mujoco.mj_step1(self.world.model, data)
