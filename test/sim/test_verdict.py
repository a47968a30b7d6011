# SPDX-License-Identifier: Apache-2.0
"""Promises of the verdicts: the bar is where the documentation says."""

import numpy as np
import pytest

from sim2real_ros.sim.verdict import FALL_HEIGHT, FALL_TILT, fallen, follows


def lean(angle, axis):
    """Return the quaternion (x, y, z, w) of a rotation about an axis."""
    return np.append(np.sin(angle / 2) * np.array(axis), np.cos(angle / 2))


@pytest.mark.parametrize('axis', [(1, 0, 0), (0, -1, 0), (0.6, 0.8, 0)])
def test_a_robot_has_fallen_from_the_given_tilt_on(axis):
    assert not fallen(lean(FALL_TILT - 1e-6, axis), np.array(0.3))
    assert fallen(lean(FALL_TILT + 1e-6, axis), np.array(0.3))
    assert not fallen(lean(FALL_TILT + 1e-6, axis), np.array(0.3), fall_tilt=1.1)


def test_turning_on_the_spot_is_no_fall():
    assert not fallen(lean(3.0, (0, 0, 1)), np.array(0.3))


def test_a_batch_is_judged_robot_by_robot():
    quat = np.tile([0.0, 0, 0, 1], (3, 1))
    height = np.array([FALL_HEIGHT + 1e-6, FALL_HEIGHT - 1e-6, np.nan])
    assert fallen(quat, height).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ('command', 'measured', 'good'),
    [
        ((1.0, 0, 0), (1.149, 0, 0), True),
        ((1.0, 0, 0), (1.151, 0, 0), False),
        ((-1.0, 0, 0), (-0.851, 0.099, -0.099), True),
        ((0.3, 0, 0), (0.399, 0, 0), True),
        ((0.0, 0, 0), (0, 0, 0.101), False),
        ((0.0, 0, 0), (0, np.nan, 0), False),
    ],
)
def test_a_command_is_followed_within_15_percent_or_a_tenth(command, measured, good):
    assert follows(np.array(measured), np.array(command)) is good
