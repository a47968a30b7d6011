# SPDX-License-Identifier: Apache-2.0
"""Promises of `compare`: a right contract agrees, each deliberate mistake is named, and the mended contract agrees."""

import copy
from pathlib import Path

import numpy as np
import pytest

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.errors import ModelFileError
from sim2real_ros.parity.compare import compare
from sim2real_ros.parity.trace import Trace, load_trace
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.signals import RobotState

TICKS = 60
OURS = load_contract('go2_velocity')
DOCUMENT = OURS.file.model_dump(mode='json', by_alias=True, exclude_none=True) | {'golden': None, 'novelty': None}


def changed(change) -> Contract:
    """Return the shipped policy's contract after a function has altered its document."""
    document = copy.deepcopy(DOCUMENT)
    change(document)
    return resolve(validate(ContractFile, document, 'changed'), 'changed', OURS.folder)


@pytest.fixture(scope='module')
def trace() -> Trace:
    """Return what the shipped policy sees and does on a robot that is moved about."""
    rng, n = np.random.default_rng(0), len(OURS.joints)
    contract = changed(lambda d: None)
    runner, states, inputs, outputs, targets = PolicyRunner(contract), [], [], [], []
    q, v, tilt = (
        np.cumsum(rng.normal(0, 0.02, (TICKS, n)), axis=0),
        rng.normal(0, 1, (TICKS, n)),
        rng.normal(0, 0.2, (TICKS, 2)),
    )
    for tick in range(TICKS):
        quat = np.array([*tilt[tick], 0.0, 1.0])
        state = RobotState(
            0.02 * tick, OURS.default_position + q[tick], v[tick], quat / np.linalg.norm(quat), rng.normal(size=3)
        )
        targets.append(runner.step(state, np.array([0.5, 0.1, -0.2])).position)
        states.append(state)
        inputs.append(runner.observation['obs'].copy())
        outputs.append(runner.action.copy())
    command = np.tile((0.5, 0.1, -0.2), (TICKS, 1))
    record = {'obs': np.array(inputs)}, {'actions': np.array(outputs)[:, None]}
    return Trace(OURS.joints, OURS.joints, states, command, None, *record, np.array(targets))


def term(document: dict, name: str) -> dict:
    """Return a term of the document's observation."""
    return next(use for use in document['inputs']['obs']['terms'] if use['term'] == name)


def test_the_right_contract_agrees(trace):
    assert compare(changed(lambda d: None), trace).agrees


MISTAKES = {
    'joints are in another order': lambda d: d.update(joints=d['joints'][3:6] + d['joints'][:3] + d['joints'][6:]),
    'sign is the other way round': lambda d: term(d, 'projected_gravity').update(scale=-1.0),
    'gravity in m/s^2': lambda d: term(d, 'projected_gravity').update(scale=1 / 9.81),
    'scale is another one': lambda d: term(d, 'joint_vel').update(scale=1.0),
    'terms are in another order': lambda d: d['inputs']['obs']['terms'].reverse(),
    'less the default pose': lambda d: term(d, 'joint_pos_rel').update(term='joint_pos'),
}


@pytest.mark.parametrize('cause', MISTAKES)
def test_each_mistake_is_named_and_mended(trace, cause):
    """The mended contract agrees: its mistake was the only one."""
    report = compare(changed(MISTAKES[cause]), trace)
    assert cause in report.differences[0].cause
    assert report.mended is not None
    assert compare(changed(lambda d: (d.clear(), d.update(report.mended))), trace).agrees


def test_two_mistakes_are_both_named(trace):
    def both(document):
        term(document, 'projected_gravity').update(scale=-1.0)
        term(document, 'joint_vel').update(scale=2.0)

    assert len(compare(changed(both), trace).differences) == 2


def test_a_wrong_width_is_said_not_raised(trace):
    report = compare(
        changed(lambda d: None),
        Trace(
            *(getattr(trace, f) for f in ('joints', 'policy_joints', 'states', 'commands', 'goal')),
            {'obs': trace.inputs['obs'][:, 1:]},
            trace.outputs,
            None,
        ),
    )
    assert 'the trainer feeds 46' in report.differences[0].cause


def test_other_targets_are_explained(trace):
    report = compare(changed(lambda d: d['outputs']['actions'].update(scale=0.5)), trace)
    assert report.differences[-1].where == 'targets'
    assert 'scale' in report.differences[-1].cause


@pytest.mark.parametrize('content', [b'', b'nonsense', b'PK\x03\x04'])
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content):
    path = tmp_path / 'trace.npz'
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match='is no trace'):
        load_trace(path)


def test_a_trace_without_joint_names_is_refused(tmp_path: Path):
    path = tmp_path / 'trace.npz'
    np.savez(path, t=np.zeros(3), joint_pos=np.zeros((3, 2)), joint_vel=np.zeros((3, 2)))
    with pytest.raises(ModelFileError, match='order of its joints'):
        load_trace(path)


def test_sensors_beside_a_simulator_s_state_count(tmp_path: Path):
    """A trainer reads its sensors, which lie elsewhere and are older than the state."""
    path, rng = tmp_path / 'trace.npz', np.random.default_rng(0)
    qpos, qvel, speed, quat = rng.normal(size=(3, 9)), rng.normal(size=(3, 8)), rng.normal(size=(3, 3)), np.eye(4)[:3]
    np.savez(
        path, t=np.arange(3.0), qpos=qpos, qvel=qvel, base_lin_vel=speed, base_quat_wxyz=quat, meta='{"joints": ["a", "b"]}'
    )
    states = load_trace(path).states
    assert np.array_equal([state.base_lin_vel for state in states], speed)
    assert np.array_equal(states[0].base_quat_xyzw, [0, 0, 0, 1])
    assert np.array_equal([state.base_ang_vel for state in states], qvel[:, 3:6])
    assert np.array_equal([state.joint_pos for state in states], qpos[:, 7:])
