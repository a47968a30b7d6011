# SPDX-License-Identifier: Apache-2.0
"""Promises of `World`: what its sensors say, where the robot starts, how time goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sim2real_ros.errors import NotFoundError
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.rotations import gravity_in_base

pytest.importorskip('mujoco')

from sim2real_ros.sim.world import World  # noqa: E402 - needs MuJoCo

REST = np.zeros(12)


@pytest.fixture(scope='module')
def robot() -> Robot:
    return load_robot('go2')


@pytest.fixture
def world(robot) -> World:
    return World(robot)


def hang(world: World, quat_wxyz: tuple[float, ...] = (1, 0, 0, 0)) -> None:
    """Put the robot into the air, at rest, and let the sensors see it."""
    world.data.qpos[2] = 50.0
    world.data.qpos[3:7] = quat_wxyz
    world.data.qvel[:] = 0
    world._mujoco.mj_step1(world.model, world.data)


@pytest.mark.parametrize('pose', ['lying', 'stand'])
def test_a_reset_robot_touches_the_floor_with_its_lowest_point(world, pose):
    world.reset(pose)
    assert world.clearance() == pytest.approx(0, abs=1e-6)
    assert np.allclose(world.joint_pos, world.robot.pose(pose))
    assert (world.joint_vel == 0).all()


def test_feet_stand_on_the_floor_in_the_standing_pose(world):
    world.reset('stand')
    assert np.allclose(world.foot_heights(), 0, atol=2e-3)
    assert 0.25 < world.base_position()[2] < 0.4


def test_the_start_pose_is_the_robot_files(world):
    assert np.allclose(world.joint_pos, world.robot.pose(world.robot.simulation.start_pose))


def test_an_unknown_pose_is_refused_with_the_names_of_all(world):
    with pytest.raises(NotFoundError, match='stand, lying'):
        world.reset('sitting')


def test_joint_offsets_are_kept_inside_the_ranges(world):
    limits = world.robot.limits
    world.reset('lying', np.full(12, -0.05))
    assert np.allclose(world.joint_pos[[1, 4]], world.robot.pose('lying')[[1, 4]] - 0.05)
    for offset in (-10.0, 10.0):
        world.reset('lying', np.full(12, offset))
        assert np.allclose(world.joint_pos, limits.lower if offset < 0 else limits.upper)


def test_time_is_counted_in_steps_and_does_not_go_back_at_a_reset(world):
    for _ in range(500):
        world.step(REST)
    assert world.time == 500 * 0.002
    world.reset()
    assert world.time == 500 * 0.002
    world.step(REST)
    assert world.state().stamp == 501 * 0.002


def test_a_reset_forgets_a_push_and_the_motion(world):
    world.push(np.array([3.0, 0, 0]))
    for _ in range(10):
        world.step(REST)
    world.reset()
    assert (world.data.qvel == 0).all()
    assert (world.data.xfrc_applied == 0).all()


def test_the_same_torques_give_the_same_motion_bit_for_bit(robot):
    rng = np.random.default_rng(0)
    torques = rng.uniform(-10, 10, (300, 12))
    ends = []
    for _ in range(2):
        world = World(robot)
        for torque in torques:
            world.step(torque)
        ends.append(world.data.qpos.tobytes() + world.data.qvel.tobytes())
    assert ends[0] == ends[1]


def test_torque_i_accelerates_joint_i(world):
    for i in range(12):
        world.reset('stand')
        hang(world)
        torque = np.zeros(12)
        torque[i] = 5.0
        world.step(torque)
        assert world.joint_vel.argmax() == i
        assert world.joint_vel[i] > 0.1


def test_a_state_is_a_copy_that_later_steps_leave_alone(world):
    state = world.state()
    kept = [np.copy(a) for a in (state.joint_pos, state.joint_vel, state.base_quat_xyzw, state.base_ang_vel)]
    for _ in range(50):
        world.step(np.full(12, 5.0))
    for before, after in zip(kept, (state.joint_pos, state.joint_vel, state.base_quat_xyzw, state.base_ang_vel), strict=True):
        assert (before == after).all()
    assert np.abs(world.joint_pos - state.joint_pos).max() > 0.01


def test_every_sensor_of_a_state_belongs_to_the_same_instant(world):
    """After a step IMU and joints show the new position and velocity, not the ones of before."""
    hang(world)
    world.data.qvel[3:6] = (1.0, -2.0, 3.0)
    world._mujoco.mj_step1(world.model, world.data)
    for _ in range(20):
        world.step(np.full(12, 2.0))
        state, imu = world.state(), world.imu()
        assert np.allclose(state.joint_pos, world.data.qpos[7:], atol=0)
        assert np.allclose(state.base_quat_xyzw, world.data.qpos[[4, 5, 6, 3]], atol=1e-12)
        assert np.allclose(imu.quat_xyzw, state.base_quat_xyzw, atol=1e-12)
        assert np.allclose(imu.ang_vel, world.data.qvel[3:6], atol=1e-9)
        assert (state.base_ang_vel == imu.ang_vel).all()


def test_at_rest_the_imu_feels_gravity_upwards(world):
    for _ in range(1500):
        world.step(-3.0 * world.joint_vel)
    imu = world.imu()
    assert np.allclose(imu.lin_acc, -9.81 * gravity_in_base(imu.quat_xyzw), atol=0.3)
    assert np.linalg.norm(imu.lin_acc) == pytest.approx(9.81, abs=0.3)


def test_a_falling_imu_feels_nothing(world):
    hang(world)
    for _ in range(5):
        world.step(REST)
    assert np.linalg.norm(world.imu().lin_acc) < 0.5


@pytest.mark.parametrize('yaw', [0.0, np.pi / 2, -2.0])
def test_base_velocity_is_in_the_base_frame(world, yaw):
    hang(world, (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)))
    world.data.qvel[:2] = 0.7 * np.array([np.cos(yaw), np.sin(yaw)])
    assert np.allclose(world.base_lin_vel(), (0.7, 0, 0), atol=1e-9)


def test_base_angular_velocity_is_what_a_level_imu_measures(world):
    hang(world, (0.8, 0.6, 0, 0))  # on its side, where base and world axes differ
    world.data.qvel[3:6] = (1.0, -2.0, 3.0)
    world._mujoco.mj_step1(world.model, world.data)
    assert np.allclose(world.base_ang_vel(), (1.0, -2.0, 3.0))
    assert np.allclose(world.base_ang_vel(), world.imu().ang_vel)


def test_a_push_changes_the_velocity_by_what_was_asked(world):
    hang(world)
    world.push(np.array([0.5, -0.25, 0.0]), 0.1)
    momentum = []
    for _ in range(100):
        world.step(-3.0 * world.joint_vel)
        world._mujoco.mj_subtreeVel(world.model, world.data)
        momentum.append(world.data.subtree_linvel[1, :2].copy())
    assert np.allclose(momentum[-1], (0.5, -0.25), atol=0.02)
    assert np.allclose(momentum[55], momentum[-1], atol=0.01)
    assert np.linalg.norm(momentum[20]) < 0.8 * np.linalg.norm(momentum[-1])


@pytest.mark.parametrize('duration', [0.002, 0.1, 0.3])
def test_a_push_acts_in_every_step_of_its_duration_and_in_no_other(world, duration):
    """The robot touches nothing, so its momentum is the impulse, whole."""
    hang(world)
    world.push(np.array([0.5, -0.25, 0.0]), duration)
    steps = round(duration / 0.002)
    for _ in range(steps):
        assert world.data.xfrc_applied.any()
        world.step(REST)
    assert not world.data.xfrc_applied.any()
    world._mujoco.mj_subtreeVel(world.model, world.data)
    assert np.allclose(world.data.subtree_linvel[1, :2], (0.5, -0.25), atol=1e-3)


def test_a_fixed_base_is_level_and_at_rest(robot):
    world = World(replace(robot, floating=False))
    for _ in range(20):
        world.step(np.full(12, 1.0))
    state = world.state()
    assert np.allclose(np.abs(state.base_quat_xyzw), (0, 0, 0, 1))
    assert (state.base_lin_vel == 0).all()
    assert (world.base_ang_vel() == 0).all()
