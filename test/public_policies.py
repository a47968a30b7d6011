# SPDX-License-Identifier: Apache-2.0
"""The public policies of `shared/third_party`: how each is imported, and what its own deployment fed its network."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from makers import REPOSITORY
from traces import Trace, a_step_before, load_trace

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract
from sim2real_ros.tools.cli import main

THIRD_PARTY = REPOSITORY.parent / 'shared' / 'third_party'
PAGE, WRITE = (
    REPOSITORY / 'docs' / 'third-party.md',
    'SIM2REAL_WRITE_THIRD_PARTY',
)  # figures, and the variable that has them written


@dataclass(frozen=True)
class Public:
    """A policy, what it is imported with, and how its deployment was simulated."""

    format: str
    words: tuple[str, ...] = ()  # of the import command, beside source and folder
    command: tuple[float, float, float] = (0.5, 0.0, 0.0)  # m/s, m/s, rad/s
    timestep: float | None = None  # s, where it is not the model's
    rotors: bool = False  # inertia of the rotors is kp / (20 pi)^2
    undamped: bool = False  # the contract's damping holds that of the model's joints


POLICIES = {
    'unitree_rl_lab_g1': Public('unitree_rl_lab `deploy.yaml`'),
    'unitree_rl_mjlab_g1': Public('unitree_rl_mjlab `deploy.yaml`, weights beside', rotors=True),
    'rl_sar_go2_himloco': Public('rl_sar `base.yaml`, `config.yaml`'),
    'rl_sar_go2_robot_lab': Public('rl_sar `base.yaml`, `config.yaml`'),
    'unitree_rl_gym_g1': Public('unitree_rl_gym YAML, LSTM'),
    'bhl_policy_biped_50hz': Public('Berkeley Humanoid Lite YAML', command=(0.3, 0.0, 0.0), timestep=0.001),
    'holosoma_ppo_g1': Public('holosoma ONNX metadata (JSON)', rotors=True),
    'holosoma_wbt_dance': Public('holosoma ONNX metadata (JSON)', command=(0.0, 0.0, 0.0), rotors=True),
    'playground_go1': Public('MuJoCo Playground preset', ('--preset', 'go1_joystick'), command=(0.8, 0.0, 0.0), undamped=True),
    'ur10_reach': Public('Isaac Lab `env.yaml`'),
}
DANCE, ARM, GO1 = 'holosoma_wbt_dance', 'ur10_reach', 'playground_go1'
_imported: dict[str, Contract] = {}
WALKERS = [name for name in POLICIES if name not in (DANCE, ARM)]


def folder_of(name: str) -> Path:
    """Return the folder of a policy; skips the test where it is absent."""
    folder = THIRD_PARTY / name
    if not folder.is_dir():
        pytest.skip(f'there is no {folder}')
    return folder


def spec_of(name: str) -> dict[str, Any]:
    """Return the specification of a policy."""
    return json.loads((folder_of(name) / 'spec.json').read_text(encoding='utf-8'))


def import_command(name: str) -> list[str]:
    """Return the one command that imports a policy, but for the folder that it is written to."""
    return ['import', str(folder_of(name)), *POLICIES[name].words]


def import_public(name: str, out: Path) -> Contract:
    """Import a policy as a user does."""
    assert main([*import_command(name), '-o', str(out)]) == 0
    return load_contract(out)


def imported(name: str, factory: pytest.TempPathFactory) -> Contract:
    """Return the contract of a policy, imported once in a run of the tests."""
    if name not in _imported:
        _imported[name] = import_public(name, factory.mktemp('imported') / name)
    return _imported[name]


def recorded(name: str) -> Trace:
    """Return the trace of a policy with the states that its recorder read: some sensors are older by one physics step."""
    trace = load_trace(folder_of(name))
    if name != GO1:
        return trace
    assert trace.sensors is not None
    rates, speeds = trace.sensors[1:, 0:3], trace.sensors[1:, 3:6]
    turned = [a_step_before(state, 0.004).base_quat_xyzw for state in trace.states[1:]]
    read = [
        replace(state, base_quat_xyzw=quat, base_ang_vel=rate, base_lin_vel=speed)
        for state, quat, rate, speed in zip(trace.states[1:], turned, rates, speeds, strict=True)
    ]
    return replace(trace, states=[trace.states[0], *read])


def torso_read_early(trace: Trace) -> Trace:
    """Return the dance's trace with all of its states as they were when the recorder read the torso's orientation."""
    return replace(trace, states=[trace.states[0], *(a_step_before(state, 0.002) for state in trace.states[1:])])


def arm_recipe(states: list[Any], goals: np.ndarray, actions: np.ndarray, default: np.ndarray) -> np.ndarray:
    """Return what the arm's own deployment feeds, (k, 25), by its specification; goals are (k, 7) m, quaternion xyzw."""
    last = np.vstack((np.zeros((1, 6)), actions[:-1]))
    positions, rates = (np.array([getattr(state, name) for state in states]) for name in ('joint_pos', 'joint_vel'))
    return np.hstack((positions - default, rates, goals[:, :3], goals[:, [6, 3, 4, 5]], last)).astype(np.float32)
