# SPDX-License-Identifier: Apache-2.0
"""The fake does what the real ros2_control and Gazebo were seen to do, hazards included; without ROS."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from fake_controllers import DEACTIVATED, EffortController, Plant  # noqa: E402

from sim2real_ros.robot import load_robot  # noqa: E402

ROBOT = load_robot('go2')
N = len(ROBOT.joints)
LIFTING = np.tile([0.0, 0.0, 5.0], 4)


def run(plant, controller, seconds):
    """Let the controller manager and the physics go on; returns the height of the base."""
    for _ in range(round(seconds / 0.002)):
        controller.update()
        plant.step(controller.torque, rigid=not controller.ever)
    return plant.world.base_position()[2]


@pytest.fixture
def standing():
    plant, controller = Plant(ROBOT, 'stand'), EffortController(ROBOT, ROBOT.joints)
    return plant, controller, run(plant, controller, 0.5)


def test_before_the_first_activation_the_joints_are_rigid(standing):
    plant, controller, height = standing
    assert height > 0.25
    assert np.allclose(plant.world.joint_pos, ROBOT.pose('stand'))


def test_an_active_controller_without_a_command_lets_the_robot_collapse(standing):
    """Within a second it lies folded, which is why our commands must flow before the activation."""
    plant, controller, height = standing
    controller.take(LIFTING)  # of before the activation: does not count
    controller.activate()
    assert run(plant, controller, 1.0) < 0.5 * height


def test_a_torque_is_held_for_ever_and_tumbles_the_robot(standing):
    plant, controller, _ = standing
    controller.activate()
    controller.take(np.linspace(-8, 8, N))
    run(plant, controller, 2.0)
    assert np.allclose(controller.torque, np.linspace(-8, 8, N))
    assert abs(1 - 2 * (plant.state().base_quat_xyzw[:2] ** 2).sum()) < 0.9


def test_after_a_deactivation_the_joints_are_limp(standing):
    plant, controller, height = standing
    controller.activate()
    controller.take(LIFTING)
    run(plant, controller, 0.01)
    controller.deactivate()
    assert not controller.torque.any()
    assert run(plant, controller, 1.0) < 0.5 * height


def test_a_command_of_the_wrong_size_deactivates_the_controller_and_one_with_a_nan_is_dropped():
    controller = EffortController(ROBOT, ROBOT.joints)
    controller.activate()
    controller.take(LIFTING)
    controller.update()
    assert 'dropped' in controller.take(np.full(N, np.nan))
    assert controller.update() == ''
    assert controller.torque.any()
    controller.take(np.zeros(N + 1))
    assert controller.update() == DEACTIVATED
    assert not controller.active
    assert not controller.torque.any()


def test_torques_are_taken_in_the_order_of_the_parameter_joints():
    controller = EffortController(ROBOT, tuple(reversed(ROBOT.joints)))
    controller.activate()
    controller.take(np.arange(N, dtype=float))
    controller.update()
    assert controller.torque.tolist() == list(range(N))[::-1]
