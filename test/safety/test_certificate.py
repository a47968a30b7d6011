# SPDX-License-Identifier: Apache-2.0
"""Promises of the certificate: it says what can be braked, names what cannot, and fails closed."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('mujoco')

from adversary import fixed_robot
from barriers import certificate
from safety_rig import go2

from sim2real_ros.errors import DependencyError, DocumentError
from sim2real_ros.safety import certificate as module
from sim2real_ros.safety.certificate import certify, gain_faults
from sim2real_ros.safety.dynamics import FixedBaseDynamics, coupling
from sim2real_ros.signals import Gains


def test_the_go2_is_certified_with_the_brake_of_its_file():
    own = certify(go2())
    assert not own.weak
    np.testing.assert_array_equal(own.brake, go2().safety.brake_acceleration)
    assert (own.load <= 0.8).all()


def test_joints_that_cannot_be_braked_are_named():
    assert set(certificate('humanoid29').weak) == {'waist_roll_joint', 'waist_pitch_joint'}


def test_a_brake_is_never_above_what_the_file_claims():
    for name in ('arm7', 'humanoid29'):
        assert (certificate(name).brake <= fixed_robot(name).safety.brake_acceleration).all()


def test_without_mujoco_every_joint_is_weak_and_says_why(monkeypatch):
    def missing(robot):
        raise DependencyError('MuJoCo is not there')

    monkeypatch.setattr(module, 'FixedBaseDynamics', missing)
    own = certify(go2())
    assert set(own.weak) == set(go2().joints)
    assert all('MuJoCo is not there' in why for why in own.weak.values())
    assert gain_faults(go2(), Gains(np.full(12, 1e9), np.full(12, 1e9)), own, 'x') == []


def test_the_same_seed_gives_the_same_certificate():
    first, second = certify(fixed_robot('arm7'), seed=3), certify(fixed_robot('arm7'), seed=3)
    assert first.inertia_low.tobytes() == second.inertia_low.tobytes()


def test_gains_that_the_rate_cannot_hold_are_named_with_the_largest_that_it_can():
    robot, own = go2(), certify(go2())
    gains = Gains(np.full(12, 10.0), np.where(np.arange(12) == 2, 50.0, 0.5))
    (fault,) = gain_faults(robot, gains, own, 'gains')
    assert 'FL_calf_joint at 50 N m s/rad cannot be held at 500 Hz' in fault
    assert f'below {own.inertia_low[2] * 500:.2g}' in fault


def test_a_joint_without_limits_does_not_break_the_certificate():
    limits = go2().limits
    lower, upper = limits.lower.copy(), limits.upper.copy()
    lower[0], upper[0] = -np.inf, np.inf
    assert np.isfinite(certify(replace(go2(), limits=replace(limits, lower=lower, upper=upper))).brake).all()


@pytest.mark.parametrize('name', ['arm7', 'humanoid29'])
def test_mass_matrix_and_bias_are_mujocos(name):
    """M a + h is the torque of inverse dynamics."""
    import mujoco

    robot, rng = fixed_robot(name), np.random.default_rng(0)
    dynamics = FixedBaseDynamics(robot)
    model = dynamics._model
    model.dof_damping[:] = model.dof_frictionloss[:] = 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    data, n = mujoco.MjData(model), len(robot.joints)
    for _ in range(10):
        q, v, a = rng.uniform(-1, 1, n), rng.normal(0, 2, n), rng.normal(0, 10, n)
        mass, bias = dynamics(q, v)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(mass @ a + bias, data.qfrc_inverse, rtol=1e-6, atol=1e-6)


def test_the_barrier_is_coupled_where_base_and_file_allow_it():
    arm = fixed_robot('arm7')
    assert coupling(arm) is not None
    assert coupling(replace(arm, safety=replace(arm.safety, barrier='per_joint'))) is None
    assert coupling(go2()) is None
    with pytest.raises(DocumentError, match='coupled needs a fixed base'):
        coupling(replace(go2(), safety=replace(go2().safety, barrier='coupled')))
