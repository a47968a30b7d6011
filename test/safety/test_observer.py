# SPDX-License-Identifier: Apache-2.0
"""Promises of a read-only filter: it sees and computes what the real one does, and nothing ever leaves it."""

from __future__ import annotations

import numpy as np
import pytest
from safety_rig import DT, Rig, go2, go2_certificate, lean

from sim2real_ros.safety import Mode
from sim2real_ros.safety.calm import GREEN_S
from sim2real_ros.safety.modes import Event
from sim2real_ros.safety.observer import REFUSAL, Observer

ROBOT = go2()


@pytest.fixture
def rig():
    own = Rig(accept=False)
    own.safety = Observer(ROBOT, certificate=go2_certificate())
    own.safety.accept(own.contract)
    own.run(200)
    return own


@pytest.mark.parametrize('event', Event)
def test_whatever_it_is_asked_it_refuses_and_says_why(rig, event):
    assert rig.safety.request(event) == REFUSAL
    assert rig.safety.mode is Mode.OFF


def test_no_torque_leaves_it_whatever_happens(rig):
    for _ in range(50):
        assert rig.step() is None
    rig.quat = lean(1.2)
    rig.v[3] = 50.0
    for _ in range(100):
        assert rig.step() is None
    assert rig.safety.rest() is None
    assert rig.safety.mode is Mode.OFF


def test_its_preview_is_the_torque_that_a_filter_which_follows_sends(rig):
    real = Rig().bring_to(Mode.ACTIVE)
    for both in (rig, real):
        both.target = both.contract.default_position + np.linspace(-0.1, 0.1, 12)
        both.run(400)
    assert rig.safety.preview == pytest.approx(real.step().torque, abs=1e-3)


def test_there_is_no_preview_without_a_policy_or_of_numbers_that_are_not_finite(rig):
    rig.step(joint_vel=np.full(12, np.nan))
    assert rig.safety.preview is None
    rig.step()
    assert rig.safety.preview is not None
    rig.target = None
    rig.run(60)
    assert rig.safety.preview is None


def test_what_would_have_stopped_the_robot_is_told_while_it_lasts_and_a_second_more(rig):
    assert rig.safety.finding is None
    rig.quat = lean(1.2)
    rig.run(100)
    assert rig.safety.finding.name == 'tilt'
    rig.quat = lean(0.0)
    rig.run(round(GREEN_S / DT) - 5)
    assert rig.safety.finding.name == 'tilt'
    rig.run(10)
    assert rig.safety.finding is None
