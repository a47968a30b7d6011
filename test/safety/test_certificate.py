# SPDX-License-Identifier: Apache-2.0
"""Promises of the certificate: it says what can be braked, names what cannot, and fails closed."""

import sys
from dataclasses import fields, replace

import numpy as np
import pytest

pytest.importorskip('mujoco')

from adversary import fixed_robot
from barriers import certificate
from safety_rig import go2

from sim2real_ros.safety.certificate import LEAST, Certificate, certify, gain_faults
from sim2real_ros.signals import Gains


def test_the_go2_is_certified_with_the_brake_of_its_file():
    own = certify(go2())
    assert not own.weak
    np.testing.assert_array_equal(own.brake, go2().safety.brake_acceleration)
    assert (own.load <= 0.8).all()


def test_joints_that_cannot_be_braked_are_named_with_what_braking_takes_and_keep_the_least_brake():
    own, robot = certificate('humanoid29'), fixed_robot('humanoid29')
    assert set(own.weak) == {'waist_roll_joint', 'waist_pitch_joint'}
    for joint, why in own.weak.items():
        i = robot.joints.index(joint)
        assert f'braking takes {own.load[i] * 1.25:.2f} of its motor' in why
        assert own.load[i] > 0.8
        np.testing.assert_allclose(own.brake[i], LEAST * robot.safety.brake_acceleration[i])


@pytest.mark.parametrize('name', ['arm7', 'go2', 'humanoid29'])
def test_a_brake_is_never_above_what_the_file_claims_and_fits_the_motor_unless_named(name):
    own, robot = certificate(name), fixed_robot(name)
    assert (own.brake <= robot.safety.brake_acceleration).all()
    assert (own.brake > 0).all()
    assert {joint for joint, load in zip(robot.joints, own.load, strict=True) if load > 0.8} == set(own.weak)
    assert (own.inertia_low <= own.inertia_high).all()


def check_failed_closed(own: Certificate, why: str) -> None:
    """Nothing is promised, each joint says why, and nothing unknown looks like a number."""
    robot = go2()
    assert set(own.weak) == set(robot.joints)
    assert all(why in reason for reason in own.weak.values())
    np.testing.assert_array_equal(own.brake, robot.safety.brake_acceleration)
    for unknown in (own.inertia_low, own.inertia_high, own.load, own.reaction):
        assert np.isnan(unknown).all()


def test_without_mujoco_every_joint_is_weak_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    own = certify(go2())
    check_failed_closed(own, 'pip install')
    assert gain_faults(go2(), Gains(np.full(12, 1e9), np.full(12, 1e9)), own, 'x') == []


def test_without_figures_for_a_model_every_joint_is_weak_and_says_why():
    check_failed_closed(certify(replace(go2(), simulation=None)), 'simulation')


def same(one: Certificate, other: Certificate) -> bool:
    """Return whether two certificates are equal bit for bit."""
    parts = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return all(a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b for a, b in parts)


def test_the_same_seed_gives_the_same_certificate_and_another_one_another():
    robot = fixed_robot('arm7')
    assert same(certify(robot, seed=3), certify(robot, seed=3))
    assert not same(certify(robot, seed=3), certify(robot, seed=4))


@pytest.mark.parametrize(('field', 'power', 'unit'), [('damping', 1, 'N m s/rad'), ('stiffness', 2, 'N m/rad')])
def test_gains_that_the_rate_cannot_hold_are_named_with_the_largest_that_it_can(field, power, unit):
    """The largest holds, a hundredth more does not."""
    robot, own = go2(), certificate('go2')
    most = own.inertia_low[2] * robot.sensors.rate_hz**power

    def faults(value: float) -> list[str]:
        soft = np.full(12, 0.1)
        gains = Gains(soft.copy(), soft.copy())
        getattr(gains, field)[2] = value
        return gain_faults(robot, gains, own, 'gains')

    assert faults(0.99 * most) == []
    (fault,) = faults(1.01 * most)
    assert fault.startswith(f'gains.{field}: FL_calf_joint at {1.01 * most:g} {unit} cannot be held at 500 Hz')
    assert f'below {most:.2g}' in fault


def test_a_joint_without_limits_does_not_break_the_certificate():
    limits = go2().limits
    lower, upper = limits.lower.copy(), limits.upper.copy()
    lower[0], upper[0] = -np.inf, np.inf
    assert np.isfinite(certify(replace(go2(), limits=replace(limits, lower=lower, upper=upper))).brake).all()
