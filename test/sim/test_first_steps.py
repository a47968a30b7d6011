# SPDX-License-Identifier: Apache-2.0
"""Promises of the profile `first_steps` of the Go2: it stands up and walks, with less torque, slower, and more gently."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.policy.pilot import Pilot  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.rotations import tilt  # noqa: E402
from sim2real_ros.safety import Mode, SafetyFilter  # noqa: E402
from sim2real_ros.safety.modes import Event  # noqa: E402
from sim2real_ros.sim.lockstep import Lockstep  # noqa: E402
from sim2real_ros.sim.world import World  # noqa: E402

FULL = load_robot('go2')


def test_a_robot_on_its_first_steps_stands_up_walks_slowly_and_keeps_its_whole_certificate():
    mild = load_robot('go2', 'first_steps')
    loop = Lockstep(World(FULL), SafetyFilter(mild), Pilot(mild, load_contract('go2_velocity')).runner)
    assert not loop.safety.certificate.weak
    torque, lean = [], []

    def run(seconds):
        for _ in range(round(seconds / 0.002)):
            state = loop.tick()
            lean.append(float(tilt(state.base_quat_xyzw)))
            torque.append(np.zeros(12) if loop.sent is None else loop.sent.torque)

    run(0.2)
    for event, seconds in ((Event.DAMP, 1.1), (Event.POSE, mild.pose_move.duration_s), (Event.ACTIVATE, mild.safety.blend_s)):
        assert loop.safety.request(event) is None
        run(seconds)
    loop.command[:] = 1.5, 0.0, 0.0  # m/s; a share of the range is taken
    begin = loop.world.base_position()[0]
    run(4.0)
    speed = (loop.world.base_position()[0] - begin) / 4.0
    most = mild.command_share * load_contract('go2_velocity').file.commands.velocity.x[1]
    assert loop.safety.mode is Mode.ACTIVE
    assert 0.6 * most < speed < 1.15 * most
    assert (np.abs(torque) <= mild.limits.effort + 1e-9).all()
    assert max(lean[100:]) < 0.3
