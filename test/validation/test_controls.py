# SPDX-License-Identifier: Apache-2.0
"""Promises of the controls: what they ask of the motors is what the nodes' own stages ask, torque by torque."""

import numpy as np
import pytest

pytest.importorskip('scipy', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import trial  # noqa: E402

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.policy import PolicyRunner  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.safety import Mode, SafetyFilter  # noqa: E402
from sim2real_ros.safety.modes import Event  # noqa: E402
from sim2real_ros.signals import RobotState  # noqa: E402
from sim2real_ros.sim.lockstep import Lockstep  # noqa: E402
from sim2real_ros.sim.world import World  # noqa: E402
from sim2real_ros.validation.controls import Controls  # noqa: E402

COMMAND = np.array([0.6, 0.0, 0.2])
BLEND_S = 0.5  # by then the hand-over from the pose to the policy is done


@pytest.fixture(scope='module')
def walked():
    """Return states and torques of the stages of the nodes, from the activation on: the filter of one robot, not a fleet."""
    robot, contract = load_robot('go2'), load_contract('go2_velocity')
    loop = Lockstep(World(robot), SafetyFilter(robot), PolicyRunner(contract))
    for event, seconds in ((Event.DAMP, 1.2), (Event.POSE, 4.5)):
        loop.run(0.1)
        assert loop.safety.request(event) is None
        loop.run(seconds)
    while loop.world.steps % 10:
        loop.tick()
    states = [loop.tick()]  # the policy answers this one; what it remembers since then counts on
    torques = [loop.sent.torque]
    assert loop.safety.request(Event.ACTIVATE) is None
    loop.command[:] = COMMAND
    for _ in range(1000):
        states.append(loop.tick())
        torques.append(loop.sent.torque)
    assert loop.safety.mode is Mode.ACTIVE
    return states, np.array(torques)


def row(state, size):
    """Return the state of one robot `size` times."""
    return RobotState(
        state.stamp,
        *(np.tile(part, (size, 1)) for part in (state.joint_pos, state.joint_vel, state.base_quat_xyzw, state.base_ang_vel)),
    )


@pytest.mark.parametrize('size', [1, 3])
def test_torques_are_those_of_the_safety_filter(walked, size):
    states, torques = walked
    own = trial(ranges={})
    draws = own.draw('flat', range(size))
    controls = Controls(own.robot, own.contract, own.certificate, draws, own.pose)
    difference = []
    for tick, (state, torque) in enumerate(zip(states, torques, strict=True)):
        mine = controls.step(row(state, size), np.tile(COMMAND * (tick > 0), (size, 1)))
        difference.append(np.abs(mine - torque).max())
    after = np.array(difference[round(BLEND_S / 0.002) :])
    assert after.max() < 1e-11  # N m: where the rate limits, it reckons with stamps there and with the nominal period here
    assert np.count_nonzero(after) < 0.02 * len(after)
    assert not controls.checks.fault.any()
