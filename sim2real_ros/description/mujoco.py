# SPDX-License-Identifier: Apache-2.0
"""The plant of the embedded simulator as an MJCF document, for MuJoCo's own viewer and for other programs."""

from __future__ import annotations

from sim2real_ros.description.describe import Description, start_pose
from sim2real_ros.robot import Robot
from sim2real_ros.sim.model import build_spec
from sim2real_ros.sim.world import World


def for_mujoco(robot: Robot, *, start: str = '') -> Description:
    """Describe a robot for MuJoCo: floor, motors, limits, IMU, and the pose in which it begins as the keyframe `start`.

    Args:
        robot: the robot; its file must have a section `simulation`.
        start: name of that pose; that of the robot file when empty.

    Raises:
        DependencyError: MuJoCo is not installed.
        NotFoundError: it has no such pose, or its URDF is missing.
        DocumentError: MuJoCo refuses the URDF.
    """
    world, spec = _world(robot, start), build_spec(robot)
    if spec.meshes:
        spec.meshdir = str((robot.urdf.parent / spec.meshdir).resolve())
    spec.add_key(name='start', qpos=world.data.qpos.tolist())
    spec.compile()
    return Description(spec.to_xml())


def start_height(robot: Robot, start: str = '') -> float:
    """Return how high the base is when the lowest point of the robot touches the floor, m; arguments as for `for_mujoco`."""
    return float(_world(robot, start).base_position()[2])


def _world(robot: Robot, start: str) -> World:
    world = World(robot)
    world.reset(start or start_pose(robot))
    return world
