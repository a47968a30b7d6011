# SPDX-License-Identifier: Apache-2.0
"""Presets of MuJoCo Playground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foreign import assumed, hints, terms_of, third_party, write_network
from traces import differences, load_trace, replay_all

from sim2real_ros.contract.importers import import_policy, playground
from sim2real_ros.contract.importers.playground_presets import PRESETS
from sim2real_ros.errors import DocumentError, FormatError
from sim2real_ros.rotations import xyzw_from_wxyz

WIDTHS = {'go1_joystick': 48, 'berkeley_humanoid_joystick': 52, 'g1_joystick': 103, 't1_joystick': 85, 'apollo_joystick': 112}


def policy(path, width, n):
    return write_network(path, {'obs': (1, width)}, {'continuous_actions': (1, n)})


@pytest.mark.parametrize(('name', 'width'), WIDTHS.items())
def test_every_preset_is_found_by_its_widths(tmp_path, name, width):
    preset = PRESETS[name]
    n = len(preset.joints)
    assert preset.width == width
    assert n == len(set(preset.joints)) == len(preset.pose) == len(preset.stiffness) == len(preset.damping)
    contract = import_policy(policy(tmp_path / 'p.onnx', width, n), tmp_path / 'out')
    assert contract.file.robot == preset.robot
    assert name in contract.file.provenance.trainer


def test_command_is_last_for_go1_alone(tmp_path):
    go1 = playground.read(policy(tmp_path / 'a.onnx', 48, 12), hints(tmp_path)).contract
    g1 = playground.read(policy(tmp_path / 'b.onnx', 103, 29), hints(tmp_path)).contract
    assert terms_of(go1, 'obs')[-1] == 'velocity_command'
    assert terms_of(g1, 'obs')[3] == 'velocity_command'
    assert terms_of(g1, 'obs')[-1] == 'phase'
    assert g1['phase']['encoding'] == ['cos', 'sin']


def test_t1_does_not_see_its_head(tmp_path):
    terms = playground.read(policy(tmp_path / 'a.onnx', 85, 23), hints(tmp_path)).contract['inputs']['obs']['terms']
    assert terms[4]['scale'][:3] == terms[5]['scale'][:3] == [0.0, 0.0, 1.0]


def test_everything_is_an_assumption(tmp_path):
    imported = playground.read(policy(tmp_path / 'a.onnx', 52, 12), hints(tmp_path))
    assert {'joints', 'rate_hz', 'default_position', 'stiffness', 'damping', 'inputs.obs.terms', 'phase'} <= set(
        assumed(imported)
    )


def test_a_width_of_no_preset_lists_them(tmp_path):
    with pytest.raises(FormatError, match=r'47 -> 12 numbers; give --preset, one of go1_joystick \(48 -> 12\)'):
        playground.read(policy(tmp_path / 'a.onnx', 47, 12), hints(tmp_path))


def test_a_preset_of_another_width_is_refused(tmp_path):
    with pytest.raises(DocumentError, match='obs: 48 numbers, the preset g1_joystick has 103'):
        playground.read(policy(tmp_path / 'a.onnx', 48, 12), hints(tmp_path, preset='g1_joystick'))
    with pytest.raises(FormatError, match='--preset go9: there is no such preset'):
        playground.read(policy(tmp_path / 'a.onnx', 48, 12), hints(tmp_path, preset='go9'))


def test_go1_feeds_what_upstream_feeds(tmp_path):
    folder = third_party('playground_go1')
    contract = import_policy(folder, tmp_path / 'out')
    trace = load_trace(folder)
    with np.load(folder / 'trace.npz') as data:
        sensors = data['sensordata']  # upstream reads sensors, which are one physics step older than qpos and lie at the IMU
    states = [
        replace(state, base_ang_vel=row[0:3], base_lin_vel=row[3:6], base_quat_xyzw=xyzw_from_wxyz(row[24:28]))
        if row.any()
        else state
        for state, row in zip(trace.states, sensors, strict=True)
    ]
    built, targets = replay_all(contract, replace(trace, states=states))
    assert differences(built, trace)['obs'] < 1e-6
    assert np.abs(np.stack([target.position for target in targets]) - trace.targets).max() < 1e-4
