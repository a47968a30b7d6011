# SPDX-License-Identifier: Apache-2.0
"""Promises of noise and sensors: mean zero, as late as was drawn, and each episode by itself."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import trial  # noqa: E402

from sim2real_ros.rotations import tilt  # noqa: E402
from sim2real_ros.sim.ground import Plane  # noqa: E402
from sim2real_ros.validation.noise import BLOCK, Noise  # noqa: E402
from sim2real_ros.validation.plant import Plant  # noqa: E402
from sim2real_ros.validation.senses import Senses  # noqa: E402

N = 12
STILL = {}  # no range at all


def test_noise_has_the_mean_zero_and_the_deviation_that_was_asked_for():
    deviation = np.array([0.005, 0.3, 2.0])
    noise = Noise(3, 'flat', range(40), deviation)
    samples = np.array([noise.sample()[0].copy() for _ in range(5 * BLOCK)])
    count = samples.shape[0] * samples.shape[1]
    assert (np.abs(samples.mean(axis=(0, 1))) < 4.5 * deviation / np.sqrt(count)).all()
    np.testing.assert_allclose(samples.std(axis=(0, 1)), deviation, rtol=0.02)


def test_noise_of_an_episode_does_not_depend_on_its_neighbours():
    alone, among = Noise(3, 'flat', [7], np.ones(2)), Noise(3, 'flat', [1, 7, 9], np.ones(2))
    for _ in range(BLOCK + 5):
        (one, luck), (many, lucks) = alone.sample(), among.sample()
        assert one[0].tobytes() == many[1].tobytes()
        assert luck[0] == lucks[1]


def sensed(size, values=None, ranges=None, steps=60):
    """Return (truths, samples) of robots that sink under no torque, at every physics step."""
    own = trial(ranges=STILL if ranges is None else ranges)
    draws = own.draw('flat', range(size))
    draws = replace(draws, values={**draws.values, **{k: np.asarray(v, float) for k, v in (values or {}).items()}})
    plant = Plant(own.robot, Plane(), draws, own.pose, own.height)
    deviations = Senses.deviations(N, own.level.ranges)
    senses = Senses(plant, draws, own.level.ranges, Noise(1, 'flat', range(size), deviations))
    truths, samples = [], []
    for step in range(steps):
        truths.append((plant.joint_pos.copy(), plant.joint_vel.copy(), plant.quat_xyzw.copy(), plant.ang_vel.copy()))
        samples.append(senses.sample(step * plant.timestep))
        plant.step(np.zeros((size, N)))
        senses.note()
    return truths, samples


def test_samples_are_as_old_as_was_drawn_joints_and_imu_each():
    truths, samples = sensed(3, {'joint_delay_s': [0, 0.004, 0.01], 'imu_delay_s': [0.006, 0, 0.002]})
    for lane, (joints, imu) in enumerate(((0, 3), (2, 0), (5, 1))):
        for step in range(10, 60):
            assert (samples[step].joint_pos[lane] == truths[step - joints][0][lane]).all()
            assert (samples[step].joint_vel[lane] == truths[step - joints][1][lane]).all()
            assert (samples[step].base_quat_xyzw[lane] == truths[step - imu][2][lane]).all()
            assert (samples[step].base_ang_vel[lane] == truths[step - imu][3][lane]).all()


def test_without_ranges_sensors_tell_the_truth():
    truths, samples = sensed(1, steps=20)
    for truth, sample in zip(truths, samples, strict=True):
        for value, true in zip(
            (sample.joint_pos, sample.joint_vel, sample.base_quat_xyzw, sample.base_ang_vel), truth, strict=True
        ):
            assert value.tobytes() == true.tobytes()


def test_a_sample_that_is_lost_is_the_last_one_again_and_the_next_one_knows_the_gap():
    own = trial(ranges=STILL)
    draws = own.draw('flat', range(50))
    draws = replace(draws, values={**draws.values, 'dropped': np.full(50, 0.3)})
    plant = Plant(own.robot, Plane(), draws, own.pose, own.height)
    senses = Senses(plant, draws, own.level.ranges, Noise(1, 'flat', range(50), Senses.deviations(N, own.level.ranges)))
    lost, total, last, since = 0, 0, None, np.ones(50, int)
    for step in range(80):
        sample = senses.sample(step * plant.timestep)
        if last is not None:
            same = (sample.joint_vel == last).all(axis=1)
            assert (senses.gap[~same] == since[~same]).all()
            since = np.where(same, since + 1, 1)
            lost, total = lost + int(same.sum()), total + 50
        last = sample.joint_vel
        plant.step(np.zeros((50, N)))
        senses.note()
    assert lost / total == pytest.approx(0.3, abs=0.03)


def test_offset_bias_and_mounting_are_constant_and_as_drawn():
    offset, bias = np.linspace(-0.02, 0.02, N)[None], np.array([[0.01, -0.02, 0.015]])
    truths, samples = sensed(
        1, {'joint_offset_rad': offset, 'gyro_bias_rad_s': bias, 'imu_mount_rad': [[0.03, -0.04]]}, steps=5
    )
    for truth, sample in zip(truths, samples, strict=True):
        np.testing.assert_allclose(sample.joint_pos - truth[0], offset, atol=1e-12)
        np.testing.assert_allclose(sample.base_ang_vel - bias, truth[3], atol=0.05 * np.abs(truth[3]).max() + 1e-9)
    assert tilt(samples[0].base_quat_xyzw)[0] == pytest.approx(0.05, rel=1e-3)


def test_every_noise_has_the_mean_zero_at_the_sensor():
    silent = ('imu_mount_rad', 'gyro_bias_rad_s', 'joint_offset_rad', 'joint_delay_s', 'imu_delay_s', 'dropped')
    truths, samples = sensed(60, ranges=dict.fromkeys(silent, [0.0, 0.0]))  # the noise of the standard level
    for field, i, deviation in (('joint_pos', 0, 0.005), ('joint_vel', 1, 0.3), ('base_ang_vel', 3, 0.05)):
        error = np.array([getattr(sample, field) - truth[i] for sample, truth in zip(samples, truths, strict=True)])
        assert abs(error.mean()) < 4.5 * deviation / np.sqrt(error.size)
        assert error.std() == pytest.approx(deviation, rel=0.03)
    lean = np.array([sample.base_quat_xyzw[:, :2] - truth[2][:, :2] for sample, truth in zip(samples, truths, strict=True)])
    assert abs(lean.mean()) < 4.5 * 0.01 / np.sqrt(lean.size)
