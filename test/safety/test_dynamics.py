# SPDX-License-Identifier: Apache-2.0
"""Promises of the dynamics: they are MuJoCo's, and which barrier they serve is the robot file's choice."""

import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('mujoco')

import mujoco
from adversary import fixed_robot
from safety_rig import go2

from sim2real_ros.errors import DependencyError, DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.safety.dynamics import FixedBaseDynamics, available, coupling
from sim2real_ros.sim.model import build_model

EACH_ROBOT = pytest.mark.parametrize('name', ['arm7', 'humanoid29'])


def bare(robot: Robot) -> mujoco.MjModel:
    """Return the simulator's own model of a robot, without what the dynamics leave out: friction, damping, contacts, stops."""
    model = build_model(robot)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    return model


def states(robot: Robot, count: int = 10) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return positions, velocities and accelerations in robot order."""
    rng, n = np.random.default_rng(0), len(robot.joints)
    return [(rng.uniform(-1, 1, n), rng.normal(0, 2, n), rng.normal(0, 10, n)) for _ in range(count)]


@EACH_ROBOT
def test_mass_times_acceleration_plus_bias_is_the_torque_of_inverse_dynamics(name):
    robot = fixed_robot(name)
    dynamics, model = FixedBaseDynamics(robot), bare(robot)
    data = mujoco.MjData(model)
    for q, v, a in states(robot):
        mass, bias = dynamics(q, v)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(mass @ a + bias, data.qfrc_inverse, rtol=1e-6, atol=1e-6)


@EACH_ROBOT
def test_a_torque_gives_the_acceleration_of_forward_dynamics(name):
    robot = fixed_robot(name)
    dynamics, model = FixedBaseDynamics(robot), bare(robot)
    data = mujoco.MjData(model)
    for q, v, a in states(robot):
        torque = 0.1 * a
        mass, bias = dynamics(q, v)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, torque
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(np.linalg.solve(mass, torque - bias), data.qacc, rtol=1e-6, atol=1e-6)


@EACH_ROBOT
def test_a_mass_matrix_is_symmetric_positive_and_depends_on_the_state_alone(name):
    robot = fixed_robot(name)
    dynamics, first = FixedBaseDynamics(robot), []
    for q, v, _ in states(robot):
        mass, bias = dynamics(q, v)
        np.testing.assert_array_equal(mass, mass.T)
        assert np.linalg.eigvalsh(mass).min() > 0
        first.append((mass.tobytes(), bias.tobytes()))
    again = [dynamics(q, v) for q, v, _ in states(robot)]
    assert [(mass.tobytes(), bias.tobytes()) for mass, bias in again] == first


def wanting(robot: Robot, barrier: str) -> Robot:
    """Return the robot with another choice in its file."""
    return replace(robot, safety=replace(robot.safety, barrier=barrier))


def test_auto_couples_a_fixed_base_and_never_a_floating_one():
    assert isinstance(coupling(wanting(fixed_robot('arm7'), 'auto')), FixedBaseDynamics)
    assert coupling(wanting(go2(), 'auto')) is None


def test_per_joint_is_never_coupled_and_coupled_always():
    assert coupling(wanting(fixed_robot('arm7'), 'per_joint')) is None
    assert isinstance(coupling(wanting(fixed_robot('arm7'), 'coupled')), FixedBaseDynamics)


def test_coupled_refuses_a_floating_base():
    with pytest.raises(DocumentError, match='coupled needs a fixed base; use per_joint or auto'):
        coupling(wanting(go2(), 'coupled'))


def test_without_mujoco_auto_falls_back_and_coupled_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    assert not available()
    assert coupling(wanting(fixed_robot('arm7'), 'auto')) is None
    with pytest.raises(DependencyError, match='pip install'):
        coupling(wanting(fixed_robot('arm7'), 'coupled'))


def test_without_figures_for_a_model_auto_falls_back_and_coupled_refuses():
    robot = replace(fixed_robot('arm7'), simulation=None)
    assert coupling(wanting(robot, 'auto')) is None
    with pytest.raises(DocumentError, match='simulation'):
        coupling(wanting(robot, 'coupled'))
