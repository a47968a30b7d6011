# SPDX-License-Identifier: Apache-2.0
"""Many randomised robots at once."""

from dataclasses import replace

import numpy as np
import pytest

mujoco = pytest.importorskip('mujoco')
pytest.importorskip('mujoco.batch', reason='a fleet needs MuJoCo 4')

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.errors import DocumentError  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.rotations import gravity_in_base, tilt  # noqa: E402
from sim2real_ros.sim.fleet import Fleet  # noqa: E402
from sim2real_ros.sim.fleet_stack import FleetStack  # noqa: E402
from sim2real_ros.sim.ground import Field  # noqa: E402
from sim2real_ros.sim.randomization import Ranges, nominal  # noqa: E402
from sim2real_ros.sim.verdict import START_HEIGHT  # noqa: E402
from sim2real_ros.tools import evaluate  # noqa: E402

ROBOT = load_robot('go2')


def make_fleet(size=64, ranges=None, seed=0):
    fleet = Fleet(ROBOT, size, ranges=ranges or Ranges(), seed=seed, timestep=0.002)
    fleet.reset(np.arange(size), ROBOT.pose('stand'), START_HEIGHT)
    return fleet


def test_every_robot_differs_within_the_ranges():
    """Friction, mass, strength, gains, delay and offset are drawn from what `Ranges` says."""
    ranges, own = Ranges(), make_fleet(256).randomizer
    for values, (low, high) in (
        (own.friction, ranges.friction),
        (own.added_mass, ranges.base_mass),
        (own.strength, ranges.motor_strength),
        (own.stiffness, ranges.stiffness),
        (own.damping, ranges.damping),
        (own.delay_s, ranges.action_delay_s),
        (own.joint_offset, (-ranges.joint_offset, ranges.joint_offset)),
    ):
        assert low <= values.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < values.max() <= high


def test_the_drawn_friction_is_the_friction_of_the_contact():
    """MuJoCo takes the larger of two geoms' friction, so the floor's must be the smaller one."""
    fleet = make_fleet(8)
    for _ in range(100):
        fleet.ctrl[:] = 40 * (ROBOT.pose('stand') - fleet.joint_pos) - 1.5 * fleet.joint_vel
        fleet.batch.step()
    for i in range(fleet.size):
        model, data = fleet.batch.get_model(i), fleet.batch.get_data(i)
        mujoco.mj_forward(model, data)
        assert data.ncon >= 3
        np.testing.assert_allclose(data.contact.friction[:, 0], fleet.randomizer.friction[i])


def test_noise_has_mean_zero_and_its_stated_size():
    """Averaged over many samples the sensors tell the truth, but for the encoder offset."""
    fleet, ranges = make_fleet(512), Ranges()
    samples = [fleet.sense(0.0) for _ in range(50)]
    joint_vel = np.array([s.joint_vel for s in samples]) - fleet.joint_vel
    joint_pos = np.array([s.joint_pos for s in samples]) - fleet.joint_pos - fleet.randomizer.joint_offset
    ang_vel = np.array([s.base_ang_vel for s in samples]) - fleet.ang_vel
    for noise, size in (
        (joint_vel, ranges.noise_joint_vel),
        (joint_pos, ranges.noise_joint_pos),
        (ang_vel, ranges.noise_base_ang_vel),
    ):
        assert abs(noise.mean()) < 0.02 * size
        assert 0.95 * size < np.abs(noise).max() <= size * (1 + 1e-9)


def test_on_a_slope_sensors_tell_the_direction_of_gravity_and_the_ground_stays_level():
    fleet = Fleet(ROBOT, 6, ranges=replace(nominal(ROBOT), slope=(0.1, 0.2)), seed=0, timestep=0.002)
    fleet.reset(np.arange(6), ROBOT.pose('stand'), 0.34)
    down = fleet.batch.expand('opt.gravity') / 9.81
    assert tilt(fleet.quat_xyzw) == pytest.approx(np.zeros(6), abs=1e-9)
    lean = tilt(fleet.sense(0.0).base_quat_xyzw)
    assert (lean > 0.1 - 1e-9).all()
    assert (lean < 0.2 + 1e-9).all()
    np.testing.assert_allclose(gravity_in_base(fleet.sense(0.0).base_quat_xyzw), down, atol=1e-4)


def test_on_a_field_robots_stand_on_it_and_heights_are_above_it():
    field = Field.mixed(0.03, 0.06)
    fleet = Fleet(ROBOT, 40, ranges=nominal(ROBOT), seed=0, timestep=0.002, ground=field)
    fleet.reset(np.arange(40), ROBOT.pose('stand'), 0.34)
    assert (fleet.height > 0.33).all()
    assert (fleet.foot_height > -0.005).all()
    assert len(np.unique(fleet.qpos[:, :2].round(3), axis=0)) == 40


def test_nominal_ranges_change_nothing():
    """All robots are the robot file's, and sensors are perfect."""
    fleet = make_fleet(4, nominal(ROBOT))
    state = fleet.sense(0.0)
    np.testing.assert_array_equal(state.joint_pos, fleet.joint_pos)
    np.testing.assert_allclose(state.base_quat_xyzw, fleet.quat_xyzw, atol=1e-12)
    assert fleet.randomizer.friction == pytest.approx(ROBOT.simulation.foot_friction)
    assert not fleet.randomizer.delay_s.any()


def test_nominal_ranges_give_each_joint_its_own_friction_and_damping():
    figures = ROBOT.simulated()
    own = np.linspace(0.1, 0.4, 12)
    robot = replace(ROBOT, simulation=replace(figures, joint_friction=own, joint_damping=2 * own))
    fleet = Fleet(robot, 3, ranges=nominal(robot), seed=0, timestep=0.002)
    fleet.reset(np.arange(3), robot.pose('stand'), START_HEIGHT)
    np.testing.assert_allclose(fleet.batch.expand('dof_frictionloss')[:, 6:], np.tile(own, (3, 1)))
    np.testing.assert_allclose(fleet.batch.expand('dof_damping')[:, 6:], np.tile(2 * own, (3, 1)))


def stack_at(rate, **ranges):
    """Return two nominal robots under the shipped policy at another rate."""
    contract = load_contract('go2_velocity')
    contract = replace(contract, file=contract.file.model_copy(update={'rate_hz': float(rate)}))
    return FleetStack(ROBOT, contract, 2, replace(nominal(ROBOT), **ranges), 0)


@pytest.mark.parametrize('rate', [30, 50, 60, 70, 200, 300, 500])
def test_a_policy_ticks_as_often_as_it_says_also_where_its_period_is_no_multiple_of_the_step(rate):
    stack = stack_at(rate)
    for _ in range(rate):
        stack.policy_tick()
    assert stack._step * 0.002 == pytest.approx(1.0)


def test_a_policy_faster_than_the_joint_states_is_refused():
    with pytest.raises(DocumentError, match='rate_hz: 1000 is more than the 500 Hz of the simulated joint states'):
        stack_at(1000)


@pytest.mark.parametrize('rate', [50, 100, 70])
def test_targets_count_after_the_whole_delay_even_if_it_is_longer_than_a_policy_period(rate, monkeypatch):
    stack = stack_at(rate, action_delay_s=(0.019, 0.02))
    seen, begins = [], []
    monkeypatch.setattr(stack, '_physics', lambda run=stack._physics: (seen.append(stack._active.position.copy()), run()))
    stack.command[:] = 1.0, 0.0, 0.0
    for _ in range(10):
        begins.append(stack._step)
        stack.policy_tick()
    changed = [k for k in range(1, len(seen)) if (seen[k] != seen[k - 1]).any()]
    assert changed == [begin + 10 for begin in begins if begin + 10 < len(seen)]


def test_the_same_seed_gives_the_same_fleet():
    """An evaluation can be repeated."""
    stacks = [FleetStack(ROBOT, load_contract('go2_velocity'), 3, Ranges(), 7) for _ in range(2)]
    for stack in stacks:
        stack.command[:, 0] = 0.5
        for _ in range(20):
            stack.policy_tick()
    np.testing.assert_array_equal(stacks[0].fleet.qpos, stacks[1].fleet.qpos)


def test_the_shipped_policy_follows_commands():
    """Every command of the table within 15 %, no drift and all feet down at zero command, no fall."""
    for followed in evaluate.follow(ROBOT, load_contract('go2_velocity')):
        assert followed.good, followed


@pytest.mark.parametrize('episodes', [40, pytest.param(200, marks=pytest.mark.slow)])
def test_randomised_robots_stay_on_their_feet(episodes):
    """At least 95 % of 20 s episodes without a fall, under the training ranges and pushes of 0.5 m/s."""
    fallen, _ = evaluate.survive(ROBOT, load_contract('go2_velocity'), episodes, seed=20000)
    assert np.mean(~fallen) >= 0.95, f'{int(fallen.sum())} of {episodes} fell'


def test_imu_errors_and_armature_are_constant_over_an_episode_and_within_their_ranges():
    ranges = replace(nominal(ROBOT), imu_mount=0.03, gyro_bias=0.02, armature=(0.5, 2.0))
    fleet = make_fleet(40, ranges)
    first, second = fleet.sense(0.0), fleet.sense(0.002)
    assert first.base_quat_xyzw.tobytes() == second.base_quat_xyzw.tobytes()
    lean = tilt(first.base_quat_xyzw)
    assert 0.02 < lean.max() < 0.03 * 2**0.5 + 1e-4
    assert 0.015 < np.abs(first.base_ang_vel).max() <= 0.02
    factor = fleet.batch.expand('dof_armature')[:, 6:] / ROBOT.simulation.armature
    assert 0.5 <= factor.min() < 0.6
    assert 1.8 < factor.max() <= 2.0
