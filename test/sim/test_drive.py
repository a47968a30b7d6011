# SPDX-License-Identifier: Apache-2.0
"""Promises of drives with a PD law of their own: they follow, keep to the effort limit, and damp when commands end."""

import numpy as np
from safety_rig import go2

from sim2real_ros.signals import Gains, Impedance, JointTargets
from sim2real_ros.sim.drive import Drive

ROBOT = go2()
N = len(ROBOT.joints)
REST, SPEED = np.zeros(N), np.full(N, 2.0)


def command(position: float, stiffness: float = 20.0) -> Impedance:
    """Return the same for every joint."""
    return Impedance(JointTargets(0.0, np.full(N, position), REST, REST), Gains(np.full(N, stiffness), np.full(N, 0.5)))


def test_no_torque_before_the_first_command():
    assert not Drive(ROBOT).torque(REST, SPEED, 0.0).any()


def test_a_command_is_followed_until_it_expires_and_damping_comes_after():
    drive = Drive(ROBOT)
    drive.take(command(0.1), 0.01, now=1.0)
    np.testing.assert_allclose(drive.torque(REST, SPEED, 1.0), 20 * 0.1 - 0.5 * 2.0)
    np.testing.assert_allclose(drive.torque(REST, SPEED, 1.01), 20 * 0.1 - 0.5 * 2.0)
    np.testing.assert_allclose(drive.torque(REST, SPEED, 1.0101), -ROBOT.damping * 2.0)


def test_the_effort_limit_holds_whatever_the_command():
    drive = Drive(ROBOT)
    drive.take(command(9.0, stiffness=1e6), 0.01, now=0.0)
    np.testing.assert_array_equal(drive.torque(REST, REST, 0.0), ROBOT.limits.effort)
