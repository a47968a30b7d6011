# SPDX-License-Identifier: Apache-2.0
"""Promises of `inspect`: a good policy passes, and each thing that may be wrong is found, named, and never raised."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from sim2real_ros.paths import find_policy
from sim2real_ros.policy.inspection import inspect, passed

OURS = find_policy('go2_velocity').parent


def failures(policy: object, robot: str | None = None) -> dict[str, str]:
    """Return what failed, by name."""
    return {check.name: check.detail for check in inspect(str(policy), robot) if check.verdict == 'fail'}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the shipped policy, without the passport that no change of it leaves valid."""
    return Path(shutil.copytree(OURS, tmp_path / 'policy', ignore=shutil.ignore_patterns('passport.json')))


def alter(folder: Path, **changes: object) -> Path:
    """Change fields of its contract."""
    data = yaml.safe_load((folder / 'policy.yaml').read_text())
    (folder / 'policy.yaml').write_text(yaml.safe_dump(data | changes, sort_keys=False))
    return folder


def test_the_shipped_policy_passes_every_check():
    checks = inspect('go2_velocity')
    assert passed(checks)
    assert {'contract', 'hash', 'robot go2', 'gains', 'network', 'golden vectors', 'latency', 'NaN', 'sensors'} <= {
        check.name for check in checks
    }


def test_a_policy_that_does_not_exist_is_one_failure():
    assert 'neither a path' in failures('nope')['contract']


def test_gains_that_the_rate_cannot_hold_are_found(folder):
    assert 'cannot be held at 500 Hz' in failures(alter(folder, damping={'.*': 50.0}))['gains']


def test_a_default_pose_outside_the_robots_limits_is_found(folder):
    pose = {'.*_hip_joint': 0.0, '.*_thigh_joint': 0.8, '.*_calf_joint': 1.5}
    assert "outside the robot's range" in failures(alter(folder, default_position=pose))['robot go2']


def test_a_policy_for_another_robot_is_found(folder):
    assert 'this robot is "go2"' in failures(alter(folder, robot='spot'), 'go2')['robot go2']


def test_an_unknown_robot_leaves_out_only_what_needs_it(folder):
    checks = inspect(str(alter(folder, robot='unheard_of')))
    assert {check.verdict for check in checks if check.name == 'robot'} == {'skip'}
    assert passed(checks)


def test_golden_vectors_of_another_network_are_found(folder):
    data = dict(np.load(folder / 'golden.npz'))
    data['out__actions'] = data['out__actions'] + 0.1
    np.savez(folder / 'golden.npz', **data)
    assert 'not the network that was validated' in failures(folder)['network']


def test_a_truncated_network_is_found(folder):
    network = folder / 'policy.onnx'
    network.write_bytes(network.read_bytes()[:2000])
    assert 'sha256' in failures(folder)['contract']
