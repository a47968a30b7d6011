# SPDX-License-Identifier: Apache-2.0
"""`sim2real novelty`: what it refuses before it runs, and what it records."""

import numpy as np
import pytest

from sim2real_ros.contract import load_contract
from sim2real_ros.policy.components import Components
from sim2real_ros.robot import load_robot
from sim2real_ros.tools.cli import main


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--episodes', '599'], '--episodes 599: 0.5% of false alarms need 600 or more'),
        (['-o', '/proc/none/s.npz'], '--output: cannot write the file /proc/none/s.npz'),
    ],
)
def test_what_cannot_end_well_is_refused_at_once(arguments, message, capsys):
    assert main(['novelty', 'go2_velocity', *arguments]) == 1
    assert message in capsys.readouterr().err


def test_records_what_every_policy_sees_and_who_stays_upright(monkeypatch):
    pytest.importorskip('mujoco.batch', reason='simulating many robots needs MuJoCo 4')
    from sim2real_ros.sim.fleet_stack import FleetStack
    from sim2real_ros.sim.randomization import Ranges
    from sim2real_ros.tools import evaluate, novelty

    monkeypatch.setattr(evaluate, 'EPISODE_S', 0.4)
    contract = load_contract('go2_velocity')
    stack, components = FleetStack(load_robot('go2'), contract, 3, Ranges(), 0), Components(contract)
    stack.fleet.qpos[1, 3:7] = np.cos(0.3), np.sin(0.3), 0, 0  # the second one leans by 0.6 rad
    ticks, upright = novelty.record(stack, contract, components)
    assert ticks.shape == (20, 3, 59)
    assert upright.tolist() == [True, False, True]
    last_action, action = ticks[..., 33:45], ticks[..., 47:]
    np.testing.assert_allclose(last_action[1:], action[:-1], atol=1e-6)
