# SPDX-License-Identifier: Apache-2.0
"""A whole session with the shipped policy, from lying with folded legs and back."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.policy import PolicyRunner  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.rotations import tilt  # noqa: E402
from sim2real_ros.safety import Mode, SafetyFilter  # noqa: E402
from sim2real_ros.safety.modes import Event  # noqa: E402
from sim2real_ros.sim.lockstep import Lockstep  # noqa: E402
from sim2real_ros.sim.world import World  # noqa: E402

STARTS = [seed if seed < 3 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(20)]


@pytest.mark.parametrize('seed', STARTS)
def test_lying_robot_rises_walks_and_lies_down_again(seed):
    """Damp, pose, activate, walk, stop, pose, damp: upright within 0.3 rad and never off the ground."""
    robot = load_robot('go2')
    world = World(robot)
    world.reset('lying', np.random.default_rng(seed).uniform(-0.1, 0.1, 12))
    loop = Lockstep(world, SafetyFilter(robot), PolicyRunner(load_contract('go2_velocity')))
    lean, lifted = [], []

    def run(seconds):
        for _ in range(round(seconds / 0.002)):
            state = loop.tick()
            lean.append(float(tilt(state.base_quat_xyzw)))
            lifted.append(float(world.foot_heights().min()))

    run(0.2)
    lean.clear()  # a robot that was put down askew may still roll
    lifted.clear()
    for event, seconds in ((Event.DAMP, 1.1), (Event.POSE, 3.0), (Event.ACTIVATE, 0.5)):
        assert loop.safety.request(event) is None
        run(seconds)
    assert loop.safety.mode is Mode.ACTIVE
    loop.command[:] = 0.5, 0.0, 0.0
    start = world.base_position()
    run(2.0)
    assert np.linalg.norm(world.base_position() - start) > 0.6
    loop.command[:] = 0.0
    run(1.5)
    for event, seconds in ((Event.POSE, 1.5), (Event.DAMP, 1.0)):
        assert loop.safety.request(event) is None
        run(seconds)
    assert loop.safety.mode is Mode.DAMPING
    assert loop.safety.fault is None
    assert max(lean) < 0.3
    assert max(lifted) < 0.03, 'some foot is always near the floor'
