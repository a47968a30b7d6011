# SPDX-License-Identifier: Apache-2.0
"""Promises of `Trace`: it lies where it was asked for, and says what acted."""

from __future__ import annotations

import numpy as np
import pytest

from sim2real_ros.robot import load_robot

pytest.importorskip('mujoco')

from sim2real_ros.sim.trace import Row, Source, Trace  # noqa: E402 - needs MuJoCo
from sim2real_ros.sim.world import World  # noqa: E402


@pytest.mark.parametrize('name', ['trace.npz', 'trace', 'new/folder/trace.dat'])
def test_a_trace_has_the_very_name_that_was_asked_for(tmp_path, name):
    world = World(load_robot('go2'))
    trace = Trace(world)
    for step in range(3):
        torque = np.full(12, float(step))
        trace.add(Row(torque, Source.SAFETY, 'pose', 0.002, 0.0))
        world.step(torque)
    trace.save(tmp_path / name)
    with np.load(tmp_path / name) as saved:
        assert saved['time'].tolist() == [0.0, 0.002, 0.004]
        assert saved['torque'][:, 0].tolist() == [0.0, 1.0, 2.0]
        assert saved['mode'].tolist() == ['pose'] * 3
        assert saved['source'].tolist() == [Source.SAFETY] * 3
        assert saved['joints'].tolist() == list(world.robot.joints)
