# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the safety tests."""

from __future__ import annotations

import pytest
from safety_rig import Rig, go2, rig_in

from sim2real_ros.robot import Robot
from sim2real_ros.safety import Mode


@pytest.fixture(scope='session')
def robot() -> Robot:
    """The shipped Go2."""
    return go2()


@pytest.fixture
def active() -> Rig:
    """A rig that follows its policy, the blend over."""
    return rig_in(Mode.ACTIVE)


@pytest.fixture
def pose() -> Rig:
    """A rig that stands in its default pose, ready to be activated."""
    return rig_in(Mode.POSE)


@pytest.fixture
def damping() -> Rig:
    """A rig that damps."""
    return rig_in(Mode.DAMPING)
