# SPDX-License-Identifier: Apache-2.0
"""Promises of the rehearsal: what only fails on other numbers than zeros fails before the robot follows."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml
from broken_networks import NETWORKS, save

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import NetworkError
from sim2real_ros.paths import find_policy
from sim2real_ros.policy.pilot import Pilot
from sim2real_ros.policy.runner import PolicyRunner
from sim2real_ros.robot import load_robot

ROBOT = load_robot('go2')


def policy(folder, network=None, **changes):
    """Return our policy without golden vectors, altered."""
    shutil.copytree(find_policy('go2_velocity').parent, folder)
    data = yaml.safe_load((folder / 'policy.yaml').read_text()) | {
        'model': {'file': 'policy.onnx'},
        'golden': None,
        'novelty': None,
    }
    for path, value in changes.items():
        part, key = path.split('__')
        data[part][key] = value
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data))
    if network is not None:
        save(NETWORKS[network](), folder / 'policy.onnx')
    return str(folder)


@pytest.mark.parametrize(
    ('network', 'reason'),
    [
        ('an overflow on all but zeros', 'non-finite action'),
        ('a NaN on all but zeros', 'non-finite action'),
        ('an error on all but zeros', 'Gather'),
    ],
)
def test_a_network_that_only_survives_zeros_is_refused(tmp_path, network, reason):
    path = policy(tmp_path / 'p', network)
    PolicyRunner(load_contract(path))  # which tries zeros alone
    with pytest.raises(NetworkError, match=f'(?s)fails on states that the robot can be in.*{reason}'):
        Pilot.of(ROBOT, path)


@pytest.mark.filterwarnings('ignore:overflow')
def test_targets_that_are_not_finite_are_refused(tmp_path):
    path = policy(tmp_path / 'p')
    text = (tmp_path / 'p' / 'policy.yaml').read_text()
    (tmp_path / 'p' / 'policy.yaml').write_text(
        text.replace('scale: 0.25\n    type: joint_position', 'scale: 1.0e+308\n    type: joint_position')
    )
    with pytest.raises(NetworkError, match='targets that are not finite'):
        Pilot.of(ROBOT, path)


def test_a_clock_of_no_period_is_refused_by_the_term_that_it_breaks(tmp_path):
    with pytest.raises(NetworkError, match='is not finite: phase'):
        Pilot.of(ROBOT, policy(tmp_path / 'p', phase__period_s=5e-324))


def test_a_network_that_is_slower_than_its_rate_is_refused(monkeypatch):
    contract = load_contract('go2_velocity')
    monkeypatch.setattr('sim2real_ros.policy.network.time.perf_counter', iter(range(10**6)).__next__)  # 1 s per call
    with pytest.raises(NetworkError, match=r'one call takes 1000\.0 ms of 20\.0 ms'):
        Pilot(ROBOT, contract)


def test_our_policy_passes_on_a_robot_without_limits():
    free = replace(ROBOT.limits, lower=np.full(12, -np.inf), upper=np.full(12, np.inf), velocity=np.full(12, np.inf))
    assert Pilot(replace(ROBOT, limits=free), load_contract('go2_velocity')).unfamiliar == ''
