# SPDX-License-Identifier: Apache-2.0
"""Promises of the plant: what was drawn is what acts, down to the contact."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import trial  # noqa: E402

from sim2real_ros.rotations import tilt  # noqa: E402
from sim2real_ros.sim.ground import Field, Plane  # noqa: E402
from sim2real_ros.validation.plant import Plant, ground_of  # noqa: E402

N = 12


def planted(scenario='flat', size=4, values=None, ranges=None):
    own = trial(ranges=ranges)
    draws = own.draw(scenario, range(size))
    draws = replace(draws, values={**draws.values, **(values or {})})
    return own, draws, Plant(own.robot, ground_of(own.level.scenarios[scenario]), draws, own.pose, own.height)


def contacts(plant, lane):
    """Return the contacts of a simulation, computed afresh by MuJoCo from its own model and state."""
    model, data = plant.batch.get_model(lane), plant.batch.get_data(lane)
    mujoco.mj_forward(model, data)
    return [data.contact[i] for i in range(data.ncon)]


@pytest.mark.parametrize('scenario', ['flat', 'slope', 'rough', 'steps'])
def test_the_friction_of_every_contact_is_the_one_that_was_drawn(scenario):
    _, draws, plant = planted(scenario)
    for _ in range(250):
        plant.step(np.zeros((4, N)))  # it sinks down
    for lane in range(4):
        found = contacts(plant, lane)
        assert found
        for contact in found:
            assert contact.friction[0] == pytest.approx(draws.values['friction'][lane], abs=1e-12)


@pytest.mark.parametrize('scenario', ['flat', 'slope', 'rough', 'steps'])
def test_robots_start_on_the_ground_not_in_it(scenario):
    own, _, plant = planted(scenario, size=16, ranges={'start_joint_rad': [0.0, 0.0]})
    for lane in range(16):
        assert all(contact.dist > -0.004 for contact in contacts(plant, lane))
    assert (plant.clearance > 0.9 * own.height).all()
    assert (plant.clearance < own.height + 0.11).all()


def test_on_a_slope_robots_stand_upright_on_it_and_the_slope_is_the_one_that_was_drawn():
    own, draws, plant = planted('slope')
    slope = draws.values['slope_rad']
    np.testing.assert_allclose(tilt(plant.quat_xyzw), slope, atol=1e-6)
    uphill = np.stack((np.cos(draws.values['slope_direction_rad']), np.sin(draws.values['slope_direction_rad'])), axis=-1)
    np.testing.assert_allclose(plant._ground.height(uphill, plant._normal), -np.tan(slope), rtol=1e-9)
    np.testing.assert_allclose(plant.clearance, own.height / np.cos(slope), rtol=1e-6)


def test_masses_and_joint_figures_are_the_nominal_ones_times_what_was_drawn():
    own, draws, plant = planted()
    nominal, values, figures = plant.batch.model, draws.values, own.robot.simulation
    for lane in range(4):
        model = plant.batch.get_model(lane)
        mass = nominal.body_mass[1:] * values['link_mass_factor'][lane]
        mass[0] += values['payload_kg'][lane]
        np.testing.assert_allclose(model.body_mass[1:], mass)
        np.testing.assert_allclose(model.body_inertia[1:], nominal.body_inertia[1:] * values['link_mass_factor'][lane][:, None])
        np.testing.assert_allclose(model.body_ipos[1], nominal.body_ipos[1] + values['centre_of_mass_m'][lane])
        dofs = slice(6, 18)
        np.testing.assert_allclose(model.dof_frictionloss[dofs], figures.joint_friction * values['joint_friction_factor'][lane])
        np.testing.assert_allclose(model.dof_damping[dofs], figures.joint_damping * values['joint_damping_factor'][lane])
        np.testing.assert_allclose(model.dof_armature[dofs], figures.armature * values['armature_factor'][lane])
        assert model.body_subtreemass[1] == pytest.approx(mass.sum())


def test_a_weak_motor_gives_its_share_of_the_torque():
    strength = np.ones((2, N))
    strength[1, 3] = 0.5
    _, _, plant = planted(size=2, values={'motor_strength_factor': strength})
    plant.step(np.full((2, N), 2.0))
    force = plant.batch.bind('qfrc_actuator')
    plant.step(np.full((2, N), 2.0))
    assert force[0, 6 + 3] == pytest.approx(2.0)
    assert force[1, 6 + 3] == pytest.approx(1.0)


def test_a_push_changes_the_velocity_by_what_was_drawn_once():
    own, draws, plant = planted()
    before = plant.batch.qvel.copy()
    first = draws.push_s[:, 0]
    plant.disturb(0.0, first.min() - 1e-6)
    assert (plant.batch.qvel == before).all()
    lane = int(first.argmin())
    plant.disturb(first[lane] - 1e-6, first[lane] + 1e-6)
    change = plant.batch.qvel - before
    assert np.linalg.norm(change[lane, :2]) == pytest.approx(draws.values['push_speed_m_s'][lane])
    assert abs(change[lane, 5]) == pytest.approx(abs(draws.values['push_turn_rad_s'][lane]), rel=1e-6)
    assert not np.delete(change, lane, axis=0).any()
    assert np.linalg.norm(plant.batch.xfrc_applied[lane, 1, :2]) == pytest.approx(draws.values['force_n'][lane])
    plant.disturb(first.max() + 2.0, first.max() + 2.0)
    assert not plant.batch.xfrc_applied.any()


@pytest.mark.parametrize('ground', [Field.rough(0.03), Field.steps(0.05)])
def test_the_height_of_a_field_is_the_one_that_mujoco_collides_with(ground):
    own = trial()
    draws = own.draw('flat', [0])
    plant = Plant(own.robot, ground, draws, own.pose, own.height)
    model, data = plant.batch.get_model(0), plant.batch.get_data(0)
    mujoco.mj_forward(model, data)
    rng, hit = np.random.default_rng(0), np.zeros(1, np.int32)
    for x, y in rng.uniform(-3, 3, (60, 2)):
        group = np.array([1, 1, 1, 1, 1, 1], np.uint8)
        from_above = mujoco.mj_ray(model, data, np.array([x, y, 5.0]), np.array([0.0, 0, -1]), group, 1, 1, hit)
        if hit[0] == model.geom('floor').id:
            # two triangles per cell against one bilinear patch
            assert ground.height(np.array([x, y]), np.array([0.0, 0, 1])) == pytest.approx(5.0 - from_above, abs=0.013)


def test_numbers_that_are_none_are_noticed():
    _, _, plant = planted(size=2)
    plant.batch.qvel[1, 7] = np.nan
    plant.step(np.zeros((2, N)))
    assert plant.diverged().tolist() == [False, True]


def test_a_level_plane_is_level():
    assert Plane().height(np.array([3.0, -2.0]), np.array([0.0, 0.0, 1.0])) == 0.0
