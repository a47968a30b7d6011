# SPDX-License-Identifier: Apache-2.0
"""Contracts written by hand for five public policies build what upstream fed its network, to 1e-6, from recorded states.

Between them they need a base velocity, a recurrent state, two kinds of gait clock, terms in alphabetical order, a counter, a
reference motion that the network itself plays, and an anchor behind three joints.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from makers import random_state, write_yaml
from traces import a_step_before, differences, load_trace, replay, replay_all

from sim2real_ros.contract import load_contract
from sim2real_ros.policy import PolicyRunner

NOW = {'lags': [0], 'layout': 'term_major', 'fill': 'first'}
CLOCK = {'encoding': ['sin', 'cos'], 'timebase': 'policy_ticks', 'stop_at_zero_command': False}
LIMIT = 1e-6


def term(name, **how):
    return {'term': name} | how


RAW = term('last_action', value='raw')
POSITIONS = [term('joint_pos_rel'), term('joint_vel')]


def document(name, model, spec, joints, terms, scale, output='actions', source='obs', **more):
    """Return a contract; `spec` has the poses, gains are those of the trainer where it states them."""
    gains = {key: spec[key] if isinstance(spec[key], list) else [1.0] * len(joints) for key in ('kp', 'kd')}
    tables = {'default_position': spec['default_pose'], 'stiffness': gains['kp'], 'damping': gains['kd']}
    return {
        'schema': 1,
        'name': name,
        'robot': spec['robot'],
        'model': {'file': str(model)},
        'rate_hz': 50,
        'joints': list(joints),
        **{key: dict(zip(joints, map(float, values), strict=True)) for key, values in tables.items()},
        'inputs': {source: {'stack': NOW, 'terms': terms}},
        'outputs': {output: {'type': 'joint_position', 'scale': scale, 'offset': 'default', 'clip': None}},
        'commands': {'velocity': {'x': [-2, 2], 'y': [-2, 2], 'yaw': [-7, 7], 'timeout_s': 0.5}},
        'provenance': {'trainer': 'test'},
    } | more


def playground_go1(folder, spec, joints):
    terms = [term('base_lin_vel'), term('base_ang_vel'), term('projected_gravity'), *POSITIONS, RAW, term('velocity_command')]
    return document('go1', folder / 'go1_policy.onnx', spec, joints, terms, 0.5, 'continuous_actions')


def bhl_policy_biped_50hz(folder, spec, joints):
    terms = [term('velocity_command'), term('base_ang_vel'), term('projected_gravity'), *POSITIONS, RAW]
    return document('bhl', folder / 'policy_biped_50hz.onnx', spec, joints, terms, 0.25)


def unitree_rl_gym_g1(folder, spec, joints):
    terms = [
        term('base_ang_vel', scale=0.25),
        term('projected_gravity'),
        term('velocity_command', scale=[2.0, 2.0, 0.25]),
        term('joint_pos_rel'),
        term('joint_vel', scale=0.05),
        RAW,
        term('phase'),
    ]
    data = document('g1_legs', folder / 'motion.onnx', spec, joints, terms, 0.25)
    data['inputs'] |= {f'{name}_in': {'state': f'{name}_out', 'initial': 'zeros'} for name in ('h', 'c')}
    data['phase'] = CLOCK | {'period_s': 0.8, 'offsets': [0.0], 'first_tick': 1}
    return data


def holosoma_ppo_g1(folder, spec, joints):
    terms = [
        term('last_action', value='clipped'),
        term('base_ang_vel', scale=0.25),
        term('velocity_command_yaw'),
        term('velocity_command_lin'),
        term('phase_cos'),
        term('joint_pos_rel'),
        term('joint_vel', scale=0.05),
        term('projected_gravity'),
        term('phase_sin'),
    ]
    data = document('holosoma', folder / 'ppo_g1_29dof.onnx', spec, joints, terms, 0.25, 'action', 'actor_obs')
    stands = {'stop_at_zero_command': True, 'standing_below': 0.01, 'standing_phase': 0.5}
    data['phase'] = CLOCK | {'period_s': 1.0, 'offsets': [0.0, 0.5]} | stands
    data['outputs']['action']['clip'] = [-100.0, 100.0]
    return data


def holosoma_wbt_dance(folder, spec, joints):
    terms = [RAW, term('base_ang_vel'), *POSITIONS, term('motion_command'), term('motion_anchor_ori_b')]
    data = document('dance', folder / 'fastsac_g1_29dof_dancing.onnx', spec, joints, terms, 1.0, commands={})
    data['inputs']['time_step'] = {'counter': 'ticks'}
    data['motion'] = {
        'source': 'network',
        'quantities': {'joint_pos': 'joint_pos', 'joint_vel': 'joint_vel', 'anchor_quat': 'ref_quat_xyzw'},
        'quaternion': 'xyzw',
        'anchor': {
            'body': 'torso_link',
            'chain': [['waist_yaw_joint', 'z'], ['waist_roll_joint', 'x'], ['waist_pitch_joint', 'y']],
        },
    }
    return data


CONTRACTS = {
    make.__name__: make
    for make in (playground_go1, bhl_policy_biped_50hz, unitree_rl_gym_g1, holosoma_ppo_g1, holosoma_wbt_dance)
}


def load(name, third_party, tmp_path):
    """Return contract and trace of a policy; skips where its folder is absent."""
    folder = third_party / name
    trace = load_trace(folder)
    spec = json.loads((folder / 'spec.json').read_text())
    data = CONTRACTS[name](folder, spec, trace.policy_joints)
    return load_contract(write_yaml(tmp_path / 'policy.yaml', data)), trace


def as_read(name, trace):
    """Return the trace with the states that its recorder read: for Go1 sensors that are older by one physics step."""
    if name != 'playground_go1':
        return trace
    gyro, lin_vel = trace.sensors[:, 0:3], trace.sensors[:, 3:6]
    states = [
        replace(s, base_quat_xyzw=a_step_before(s, 0.004).base_quat_xyzw, base_ang_vel=w, base_lin_vel=v) if k else s
        for k, (s, w, v) in enumerate(zip(trace.states, gyro, lin_vel, strict=True))
    ]
    return replace(trace, states=states)


@pytest.mark.parametrize('name', [name for name in CONTRACTS if name != 'holosoma_wbt_dance'])
def test_inputs_and_targets_are_those_of_upstream(name, third_party, tmp_path):
    contract, trace = load(name, third_party, tmp_path)
    built, targets = replay_all(contract, as_read(name, trace))
    assert set(built) == set(trace.inputs)
    assert max(differences(built, trace).values()) <= LIMIT
    for target, recorded in zip(targets, trace.targets, strict=True):
        np.testing.assert_allclose(target.position, recorded, rtol=0, atol=LIMIT)


def test_motion_that_the_network_plays_is_followed_as_upstream_does(third_party, tmp_path):
    """The recorder read the torso's orientation before the last physics step, everything else after it."""
    contract, trace = load('holosoma_wbt_dance', third_party, tmp_path)
    turn = {slot.name: slice(slot.start, slot.stop) for slot in PolicyRunner(contract).builder.slots['obs']}[
        'motion_anchor_ori_b'
    ]
    built, before = (
        replay(contract, replace(trace, states=states))
        for states in (trace.states, [trace.states[0], *(a_step_before(state, 0.002) for state in trace.states[1:])])
    )
    assert np.array_equal(built['time_step'].ravel(), trace.inputs['time_step'].ravel())
    difference = np.abs(built['obs'] - trace.inputs['obs'])
    assert difference[:, : turn.start].max() <= LIMIT
    assert difference[0].max() <= LIMIT
    assert np.abs(before['obs'] - trace.inputs['obs'])[:, turn].max() <= LIMIT


@pytest.mark.parametrize(
    ('name', 'change'),
    [
        ('holosoma_wbt_dance', {'motion': {'quaternion': 'wxyz'}}),
        ('holosoma_wbt_dance', {'motion': {'anchor': {'body': 'pelvis', 'chain': []}}}),
        ('holosoma_wbt_dance', {'inputs': {'time_step': {'counter': 'ticks', 'start': 1}}}),
        ('unitree_rl_gym_g1', {'phase': {'first_tick': 0}}),
        ('holosoma_ppo_g1', {'phase': {'offsets': [0.5, 0.0]}}),
    ],
    ids=str,
)
def test_oracle_notices_a_wrong_field(name, change, third_party, tmp_path):
    contract, trace = load(name, third_party, tmp_path)
    data = contract.file.model_dump(mode='json', by_alias=True)
    for part, fields in change.items():
        data[part] |= fields
    wrong = load_contract(write_yaml(tmp_path / 'wrong.yaml', data))
    assert max(differences(replay(wrong, as_read(name, trace)), trace).values()) > 0.01


def test_recurrent_policy_runs_by_itself(third_party, tmp_path):
    """With its own outputs fed back, nothing recorded but the states."""
    contract, trace = load('unitree_rl_gym_g1', third_party, tmp_path)
    runner = PolicyRunner(contract)
    for tick, state in enumerate(trace.states):
        targets = runner.step(state, trace.command)
        np.testing.assert_allclose(targets.position, trace.targets[tick], rtol=0, atol=1e-4)


def test_arm_sees_its_goal_in_the_order_that_it_was_trained_with(third_party, tmp_path):
    """UR10 has no trace: its recipe is short enough to be written down."""
    folder = third_party / 'ur10_reach'
    if not (folder / 'spec.json').is_file():
        pytest.skip(f'there is no {folder}')
    spec = json.loads((folder / 'spec.json').read_text())
    terms = [*POSITIONS, term('pose_command'), RAW]
    initial = [0.5, 0.0, 0.3, 0.7071068, 0.0, 0.7071068, 0.0]
    data = document('reach', folder / 'ur_reach_policy.onnx', spec, spec['joints'], terms, 0.5, rate_hz=30)
    data['commands'] = {'pose': {'frame': 'base', 'quaternion': 'wxyz', 'initial': initial}}
    runner = PolicyRunner(load_contract(write_yaml(tmp_path / 'policy.yaml', data)))
    rng, last = np.random.default_rng(0), np.zeros(6)
    for goal in (None, np.array([0.4, 0.1, 0.2, 0.1, 0.2, 0.3, 0.9]), np.array([0.6, 0.0, 0.4, 0.0, 1.0, 0.0, 0.0])):
        state = random_state(rng, 6)
        pose = initial if goal is None else [*goal[:3], goal[6], *goal[3:6]]
        expected = np.concatenate([state.joint_pos - spec['default_pose'], state.joint_vel, pose, last])
        targets = runner.step(state, np.zeros(3), goal)
        np.testing.assert_allclose(runner.observation['obs'], expected, rtol=1e-6, atol=1e-6)
        last = runner.action.copy()
        np.testing.assert_allclose(targets.position, spec['default_pose'] + 0.5 * last)
