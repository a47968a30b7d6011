# SPDX-License-Identifier: Apache-2.0
"""Policies that nobody on this project made: contracts written by hand must reproduce their recorded inputs and outputs.

A golden trace holds the simulator's state (MuJoCo layout) and exactly what the upstream code fed its network. Building
the latter from the former is the strongest test of an observation: a closed loop often walks with a wrong one.
"""

import json
import shutil

import numpy as np
import pytest
from makers import write_yaml

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import ModelFileError, NetworkError
from sim2real_ros.joints import JointMap
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.network import open_session
from sim2real_ros.rotations import world_to_base, xyzw_from_wxyz
from sim2real_ros.signals import RobotState

PARTS = ('hip_joint', 'thigh_joint', 'calf_joint')
HUNDRED = {'clip': [-100.0, 100.0], 'process': ['scale', 'clip']}  # upstream clamps the whole observation at the end
ANG_VEL = {'term': 'base_ang_vel', 'scale': 0.25, **HUNDRED}
GRAVITY = {'term': 'projected_gravity', **HUNDRED}
JOINTS = [
    {'term': 'joint_pos_rel', **HUNDRED},
    {'term': 'joint_vel', 'scale': 0.05, **HUNDRED},
    {'term': 'last_action', 'value': 'clipped', **HUNDRED},
]


def go2_contract(name, model, legs, terms, stack, default_position, stiffness, damping):
    """Return what the two Go2 policies of rl_sar have in common."""
    return {
        'schema': 1,
        'name': name,
        'robot': 'go2',
        'model': {'file': str(model)},
        'rate_hz': 50,
        'joints': [f'{leg}_{part}' for leg in legs for part in PARTS],
        'default_position': default_position,
        'stiffness': {'.*': stiffness},
        'damping': {'.*': damping},
        'inputs': {'obs': {'stack': stack, 'terms': terms}},
        'outputs': {
            'actions': {
                'type': 'joint_position',
                'scale': {'.*_hip_joint': 0.125, '.*_thigh_joint': 0.25, '.*_calf_joint': 0.25},
                'offset': 'default',
                'clip': [-100.0, 100.0],
            }
        },
        'commands': {'velocity': {'x': [-1.5, 1.5], 'y': [-1.0, 1.0], 'yaw': [-1.5, 1.5], 'timeout_s': 0.5}},
        'provenance': {'trainer': 'rl_sar', 'licence': 'Apache-2.0'},
    }


def robot_lab(folder):
    return go2_contract(
        'rl_sar_go2_robot_lab',
        folder / 'robot_lab' / 'policy.onnx',
        ('FR', 'FL', 'RR', 'RL'),
        [ANG_VEL, GRAVITY, {'term': 'velocity_command', **HUNDRED}, *JOINTS],
        {'lags': [0], 'layout': 'frame_major', 'fill': 'zeros'},
        {'.*_hip_joint': 0.0, '.*_thigh_joint': 0.8, '.*_calf_joint': -1.5},
        20.0,
        0.5,
    )


def himloco(folder):
    return go2_contract(
        'rl_sar_go2_himloco',
        folder / 'himloco' / 'himloco.onnx',
        ('FL', 'FR', 'RL', 'RR'),
        [{'term': 'velocity_command', 'scale': [2.0, 2.0, 0.25], **HUNDRED}, ANG_VEL, GRAVITY, *JOINTS],
        {'lags': [0, 1, 2, 3, 4, 5], 'layout': 'frame_major', 'fill': 'zeros'},
        {'.L_hip_joint': 0.1, '.R_hip_joint': -0.1, 'F._thigh_joint': 0.8, 'R._thigh_joint': 1.0, '.*_calf_joint': -1.5},
        40.0,
        1.0,
    )


CONTRACTS = {'rl_sar_go2_robot_lab': robot_lab, 'rl_sar_go2_himloco': himloco}


class Trace:
    """A recorded run: states in policy order, and what the upstream code made of them."""

    def __init__(self, path, policy_joints):
        with np.load(path, allow_pickle=False) as archive:
            data = dict(archive)
        meta = json.loads(str(data['meta']))
        self.command = np.array(meta['command'])
        self.obs, self.actions = data['in__obs'][:, 0], data['out__actions'][:, 0]
        self.targets = data['target'][:, JointMap(meta['policy_joints'], policy_joints, exact=True).index]
        to_policy = JointMap(meta['mjcf_hinge_joints'], policy_joints, exact=True)
        qpos, qvel = data['qpos'], data['qvel']
        quat = xyzw_from_wxyz(qpos[:, 3:7])
        self.states = [
            RobotState(t, to_policy(q[7:]), to_policy(v[6:]), turn, v[3:6], world_to_base(turn, v[:3]))
            for t, q, v, turn in zip(data['t'], qpos, qvel, quat, strict=True)
        ]


@pytest.fixture(params=sorted(CONTRACTS))
def case(request, third_party, tmp_path):
    folder = third_party / request.param
    if not (folder / 'trace.npz').is_file():
        pytest.skip(f'there is no {request.param} in shared/third_party')
    contract = load_contract(write_yaml(tmp_path / 'policy.yaml', CONTRACTS[request.param](folder)))
    return contract, Trace(folder / 'trace.npz', contract.joints), json.loads((folder / 'spec.json').read_text())


def test_contract_says_what_the_specification_says(case):
    contract, _, spec = case
    assert list(contract.joints) == spec['joints']
    assert contract.default_position.tolist() == spec['default_pose']
    assert contract.gains.stiffness.tolist() == spec['kp']
    assert contract.gains.damping.tolist() == spec['kd']
    names = {'ang_vel': 'base_ang_vel', 'gravity_vec': 'projected_gravity', 'commands': 'velocity_command'} | {
        'dof_pos': 'joint_pos_rel',
        'dof_vel': 'joint_vel',
        'actions': 'last_action',
    }
    terms = contract.observations['obs'][0].terms
    assert [term.term for term in terms] == [names[entry[0]] for entry in spec['obs']]
    for term, entry in zip(terms, spec['obs'], strict=True):
        assert np.all(np.equal(term.scale, entry[2])), term.term


def test_runner_reproduces_recorded_observations_actions_and_targets(case):
    """The runner feeds itself: its own last actions and histories, from the recorded states alone."""
    contract, trace, _ = case
    runner = PolicyRunner(contract)
    for tick, state in enumerate(trace.states):
        targets = runner.step(state, trace.command)
        np.testing.assert_allclose(runner.observation['obs'], trace.obs[tick], rtol=0, atol=1e-4, err_msg=f'tick {tick}')
        np.testing.assert_allclose(runner.action, trace.actions[tick], rtol=0, atol=1e-3, err_msg=f'tick {tick}')
        np.testing.assert_allclose(targets.position, trace.targets[tick], rtol=0, atol=1e-3, err_msg=f'tick {tick}')


def test_trace_serves_as_golden_vectors(case, tmp_path):
    contract, trace, _ = case
    model = contract.model_path
    shutil.copy(model, tmp_path / model.name)
    np.savez(tmp_path / 'golden.npz', in__obs=trace.obs, out__actions=trace.actions)
    data = contract.file.model_dump(mode='json', by_alias=True) | {'golden': 'golden.npz'}
    data['model']['file'] = model.name
    PolicyRunner(load_contract(write_yaml(tmp_path / 'golden.yaml', data)))


def test_oracle_notices_every_usual_mistake(case):
    """Zeroed angular velocity, swapped quaternion order, joints by position, unscaled command: each is seen."""
    contract, trace, _ = case
    state = trace.states[100]
    mistakes = {
        'angular velocity zeroed': {'base_ang_vel': np.zeros(3)},
        'quaternion order': {'base_quat_xyzw': state.base_quat_xyzw[[3, 0, 1, 2]]},
        'joint order': {'joint_pos': state.joint_pos[[3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]]},
        'velocity sign': {'joint_vel': -state.joint_vel},
    }
    for name, change in mistakes.items():
        runner = PolicyRunner(contract)
        fields = {
            field: getattr(state, field) for field in ('stamp', 'joint_pos', 'joint_vel', 'base_quat_xyzw', 'base_ang_vel')
        }
        runner.step(RobotState(**fields | change), trace.command)
        frame = slice(0, runner.builder.slots['obs'][-1].start)  # all but the last action
        assert np.abs(runner.observation['obs'][frame] - trace.obs[100][frame]).max() > 1e-3, name


def test_observation_that_lacks_a_term_is_refused_with_both_widths(case, tmp_path):
    contract, _, _ = case
    data = contract.file.model_dump(mode='json', by_alias=True)
    del data['inputs']['obs']['terms'][0]
    frames = len(data['inputs']['obs']['stack']['lags'])
    broken = load_contract(write_yaml(tmp_path / 'broken.yaml', data))
    with pytest.raises(NetworkError, match=f'network has {45 * frames} numbers.* make {42 * frames} .{3 * frames} missing'):
        PolicyRunner(broken)


def test_public_file_with_external_data_is_refused_without_it(third_party, tmp_path):
    source = third_party / 'unitree_rl_mjlab_g1' / 'exported'
    if not (source / 'policy.onnx.data').is_file():
        pytest.skip('there is no unitree_rl_mjlab_g1 in shared/third_party')
    shutil.copy(source / 'policy.onnx', tmp_path)
    with pytest.raises(ModelFileError, match=r'policy\.onnx\.data\) that is not beside it'):
        open_session(tmp_path / 'policy.onnx')
    shutil.copy(source / 'policy.onnx.data', tmp_path)
    assert open_session(tmp_path / 'policy.onnx').get_inputs()
