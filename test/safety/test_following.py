# SPDX-License-Identifier: Apache-2.0
"""Promises about a pose that nobody carries out: the robot is left in damping, and not thrown when the motors come on."""

import numpy as np
import pytest
from safety_rig import DT, go2, go2_certificate, rig_in

from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.following import LASTING_S
from sim2real_ros.safety.modes import Event

ROBOT = go2()


@pytest.mark.parametrize(('lag', 'ends'), [(0.49, False), (0.51, True)])
def test_a_joint_that_stays_behind_ends_the_pose_by_name(lag, ends):
    rig = rig_in(Mode.POSE)
    rig.move(rig.q + lag * (np.arange(12) == 4))
    rig.run(round(LASTING_S / DT) + 2)
    assert (rig.safety.mode is Mode.DAMPING) is ends
    if ends:
        assert f'pose_not_followed: {ROBOT.joints[4]} is 0.51 rad behind' in rig.safety.last_change


def test_a_joint_that_is_behind_for_a_moment_does_not():
    rig = rig_in(Mode.POSE)
    for _ in range(4):
        rig.move(rig.q + 0.6 * (np.arange(12) == 4), speed=10.0)
        rig.run(round(0.5 * LASTING_S / DT))
        rig.move(ROBOT.pose('stand'), speed=10.0)
        rig.run(50)
    assert rig.safety.mode is Mode.POSE


def test_a_robot_whose_controller_is_activated_during_the_pose_is_not_thrown():
    """Joints are rigid until then; without the watch the Go2 jumps, with joints at 10 rad/s."""
    pytest.importorskip('mujoco')
    from fake_controllers import Plant

    plant, safety = Plant(ROBOT, 'lying'), SafetyFilter(ROBOT, certificate=go2_certificate())
    heights, ups = [], []

    def run(seconds: float, *, rigid: bool) -> None:
        for _ in range(round(seconds / DT)):
            state = plant.state()
            safe = safety.step(state)
            plant.step(np.zeros(12) if safe is None else safe.torque, rigid=rigid)
            heights.append(plant.world.base_position()[2])
            ups.append(1 - 2 * (state.base_quat_xyzw[:2] ** 2).sum())

    run(0.1, rigid=True)
    assert safety.request(Event.DAMP) is None
    run(1.1, rigid=True)
    assert safety.request(Event.POSE) is None
    run(3.0, rigid=True)
    assert safety.mode is Mode.DAMPING
    assert 'pose_not_followed' in safety.last_change
    run(1.0, rigid=False)
    assert min(ups) > np.cos(0.2)
    assert max(heights) < 0.15
