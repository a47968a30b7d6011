# SPDX-License-Identifier: Apache-2.0
"""A checked contract: tables in joint order, cross-checks, identity, JSON round trip."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import JOINTS, contract_data, make_contract

from sim2real_ros.contract import Contract
from sim2real_ros.errors import DocumentError


def faults_of(data):
    with pytest.raises(DocumentError) as caught:
        make_contract(data)
    return caught.value.faults


def test_tables_are_expanded_to_the_policys_joint_order():
    contract = make_contract(joints=JOINTS[::-1])
    assert contract.joints == tuple(JOINTS[::-1])
    assert contract.default_position.tolist() == [-1.5, 0.1, -1.5, 0.1]
    assert contract.gains.stiffness.tolist() == [25.0] * 4
    assert contract.gains.damping.tolist() == [0.6] * 4


def test_period_is_the_inverse_of_the_rate():
    assert make_contract(rate_hz=40).period_s == 0.025


def test_faults_between_fields_come_in_one_message_with_paths():
    data = contract_data(
        default_position={'.*_hip': 0.0, '.*_knee_joint': 0.0},
        stiffness={'.*': 25.0, 'a_hip_joint': 30.0},
        damping={'a_.*': 0.6},
        commands={},
    )
    data['outputs']['actions'] |= {'joints': ['a_hip_joint', 'c_hip_joint'], 'scale': {'.*_knee_joint': 1.0}}
    data['inputs']['obs']['terms'].append({'term': 'phase'})
    text = '\n'.join(faults_of(data))
    for part in (
        'default_position..*_hip: matches no joint',
        'default_position: no value for a_hip_joint, b_hip_joint',
        'stiffness: a_hip_joint is matched by both ".*" and "a_hip_joint"',
        'damping: no value for b_hip_joint, b_knee_joint',
        "outputs.actions.joints: c_hip_joint not among the contract's joints",
        'outputs.actions.scale..*_knee_joint: matches no joint',
        'outputs: no action drives a_knee_joint, b_hip_joint, b_knee_joint',
        'commands.velocity: is missing, but the term velocity_command is used',
        'phase: is missing, but the term phase is used',
    ):
        assert part in text


def test_joint_named_twice_is_refused():
    assert any(f == 'joints: a_hip_joint occurs 2 times' for f in faults_of(contract_data(joints=[*JOINTS, JOINTS[0]])))


def test_joint_driven_twice_is_refused():
    data = contract_data()
    data['outputs']['more'] = data['outputs']['actions'] | {'joints': [JOINTS[0]]}
    assert faults_of(data) == ['outputs: a_hip_joint is driven by 2 actions']


@pytest.mark.parametrize('kind', ['joint_velocity', 'joint_torque'])
def test_velocity_or_torque_action_on_a_stiff_joint_is_refused(kind):
    data = contract_data()
    data['outputs']['actions'] |= {'type': kind, 'offset': 'zeros'}
    assert faults_of(data)[0].startswith(f'outputs.actions: a {kind} action needs stiffness 0 on its joints')
    assert make_contract(data | {'stiffness': {'.*': 0.0}}).action_width == 4


def test_contract_without_observation_is_refused():
    faults = faults_of(contract_data(inputs={'h': {'state': 'h_out', 'initial': 'zeros'}}))
    assert faults == ['inputs: none of them is made of observation terms']


def test_clock_that_stops_at_zero_command_needs_a_command():
    phase = {'period_s': 0.8, 'encoding': ['sin'], 'offsets': [0.0], 'timebase': 'policy_ticks', 'stop_at_zero_command': True}
    data = contract_data(commands={}, phase=phase)
    data['inputs']['obs']['terms'] = [{'term': 'phase'}]
    assert faults_of(data) == ['phase.stop_at_zero_command: there is no velocity command to be zero']


def test_inputs_are_told_apart():
    data = contract_data()
    data['inputs']['h_in'] = {'state': 'h_out', 'initial': 'zeros'}
    contract = make_contract(data)
    assert list(contract.observations) == ['obs']
    assert {name: part.state for name, part in contract.states.items()} == {'h_in': 'h_out'}


def test_action_width_adds_up_the_outputs():
    data = contract_data(stiffness={'.*_hip_joint': 25.0, '.*_knee_joint': 0.0})
    knees = [joint for joint in JOINTS if 'knee' in joint]
    data['outputs']['actions']['joints'] = [joint for joint in JOINTS if 'hip' in joint]
    data['outputs']['wheels'] = {'type': 'joint_velocity', 'scale': 1.0, 'offset': 'zeros', 'clip': None, 'joints': knees}
    contract = make_contract(data)
    assert contract.action_width == 4
    assert contract.action_joints(contract.file.outputs['wheels']) == tuple(knees)


def test_identity_is_twelve_hex_digits_and_stays_for_equal_contracts():
    assert make_contract().id == make_contract().id
    assert len(make_contract().id) == 12
    assert int(make_contract().id, 16) >= 0


CHANGES = {
    'name': 'other',
    'rate_hz': 51,
    'joints': JOINTS[::-1],
    'default_position': {'.*_hip_joint': 0.1, '.*_knee_joint': -1.5000001},
    'stiffness': {'.*': 25.1},
    'damping': {'.*': 0.61},
    'model': {'file': 'policy.onnx', 'sha256': '0' * 64},
    'commands': {'velocity': {'x': [-1.0, 1.4], 'y': [-0.5, 0.5], 'yaw': [-1.5, 1.5], 'timeout_s': 0.5}},
    'latency': None,
    'golden': 'golden.npz',
    'novelty': 'statistics.npz',
    'provenance': {'trainer': 'another'},
}


@pytest.mark.parametrize('key', CHANGES)
def test_identity_changes_with_any_field(key):
    assert make_contract(**{key: CHANGES[key]}).id != make_contract().id


def test_identity_does_not_depend_on_the_order_of_keys_in_the_file():
    assert make_contract(dict(reversed(contract_data().items()))).id == make_contract().id


def test_json_round_trip_keeps_everything_but_the_place_of_the_file():
    contract = make_contract()
    back = Contract.from_json(contract.to_json(), 'policy/contract')
    assert (back.id, back.file, back.joints) == (contract.id, contract.file, contract.joints)
    assert np.array_equal(back.default_position, contract.default_position)
    assert back.model_path is None
    assert back.source == 'policy/contract'


NUMBER = st.floats(-1e30, 1e30).filter(bool)


@given(scale=NUMBER, position=NUMBER, gain=st.floats(0, 1e20), notes=st.text(st.characters(exclude_categories=['Cs'])))
def test_json_round_trip_keeps_any_number_and_any_text(scale, position, gain, notes):
    data = contract_data(default_position={'.*': position}, stiffness={'.*': gain}, damping={'.*': gain})
    data['outputs']['actions']['scale'] = scale
    data['provenance']['notes'] = notes
    contract = make_contract(data)
    back = Contract.from_json(contract.to_json(), 'wire')
    assert back.id == contract.id
    assert back.file == contract.file
    assert back.to_json() == contract.to_json()


def test_json_is_canonical_and_complete():
    text = make_contract().to_json()
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert data['phase'] is None
    assert data['schema'] == 1
    assert '\n' not in text


@pytest.mark.parametrize('text', ['', '{', '[]', 'null', '{"schema": 1}', '{"schema": 1, "rate_hz": NaN}'])
def test_damaged_json_is_refused_with_its_source(text):
    with pytest.raises(DocumentError, match='policy/contract'):
        Contract.from_json(text, 'policy/contract')


# --- fields of stacks, actions, motions ----------------------------------------------------------------------------


def with_terms(*terms, **changes):
    data = contract_data(**changes)
    data['inputs']['obs']['terms'] = [{'term': name} if isinstance(name, str) else name for name in terms]
    return data


MOTION = {'source': 'network', 'quantities': {'joint_pos': 'ref_pos'}}
STOPPING = {'period_s': 0.8, 'encoding': ['sin'], 'offsets': [0.0], 'timebase': 'policy_ticks', 'stop_at_zero_command': True}
FILTERED = {'term': 'last_action', 'value': 'filtered'}


@pytest.mark.parametrize(
    ('data', 'faults'),
    [
        (
            with_terms('velocity_command_lin', 'velocity_command_yaw', commands={}),
            [f'commands.velocity: is missing, but the term velocity_command_{part} is used' for part in ('lin', 'yaw')],
        ),
        (with_terms('phase_cos'), ['phase: is missing, but the term phase_cos is used']),
        (with_terms('phase_cos', phase=STOPPING), ['phase.encoding: lacks cos, but the term phase_cos is used']),
        (with_terms('pose_command'), ['commands.pose: is missing, but the term pose_command is used']),
        (
            with_terms('foot_contacts'),
            ['contacts: is missing, but the term foot_contacts is used; name the feet in the order of the policy'],
        ),
        (with_terms(FILTERED), ['outputs: no action has a filter, but last_action asks for the value filtered']),
        (with_terms('motion_joint_pos'), ['motion: is missing, but the term motion_joint_pos is used']),
        (
            with_terms('motion_command', 'motion_anchor_ori_b', motion=MOTION),
            [
                'motion.quantities: lacks joint_vel, which the term motion_command needs',
                'motion.quantities: lacks anchor_quat, which the term motion_anchor_ori_b needs',
                'motion.anchor: is missing, but the term motion_anchor_ori_b is used',
            ],
        ),
        (
            contract_data(motion=MOTION | {'anchor': {'body': 'torso', 'chain': [['waist', 'z'], ['a_hip_joint', 'x']]}}),
            ["motion.anchor.chain: waist not among the contract's joints a_hip_joint, a_knee_joint, b_hip_joint, b_knee_joint"],
        ),
        (
            contract_data(phase=STOPPING | {'stop_at_zero_command': False, 'standing_phase': 0.5}),
            ['phase.stop_at_zero_command: is false, so that standing_below and standing_phase mean nothing'],
        ),
    ],
)
def test_term_without_what_it_needs_is_refused(data, faults):
    assert faults_of(data) == faults


def with_action(**more):
    data = contract_data()
    data['outputs']['actions'] |= more
    return data


@pytest.mark.parametrize(
    ('data', 'fault'),
    [
        (with_action(columns=[0, 1, 2]), 'outputs.actions.columns: 3 for 4 joints; one each is needed'),
        (
            with_action(target_clip={'tail': [-1, 1]}),
            'outputs.actions.target_clip.tail: matches no joint; joints are a_hip_joint',
        ),
        (with_action(offset={'.*_hip_joint': 0.0}), 'outputs.actions.offset: no value for a_knee_joint, b_knee_joint'),
        (
            with_action(offset='zeros', relative_to='motion'),
            'outputs.actions.relative_to: motion, but there is no motion with the quantity joint_pos',
        ),
    ],
)
def test_action_that_does_not_fit_its_joints_is_refused(data, fault):
    (text,) = faults_of(data)
    assert text.startswith(fault)


def test_actions_of_one_tensor_must_say_their_columns():
    data = contract_data()
    action = data['outputs'].pop('actions') | {'tensor': 'mu'}
    data['outputs'] = {'left': action | {'joints': JOINTS[:2], 'columns': [0, 1]}, 'right': action | {'joints': JOINTS[2:]}}
    assert faults_of(data) == ['outputs.right: left and right read the tensor mu; each must say which columns']


def test_tables_of_actions_travel_joint_by_joint():
    data = with_action(
        scale={'.*_hip_joint': 0.5, '.*_knee_joint': 0.25},
        offset={'a_.*': 0.1, 'b_.*': 0.2},
        target_clip={'.*_knee_joint': [-2.0, -0.5]},
    )
    action = make_contract(data).file.outputs['actions']
    assert action.scale == dict(zip(JOINTS, [0.5, 0.25, 0.5, 0.25], strict=True))
    assert action.offset == dict(zip(JOINTS, [0.1, 0.1, 0.2, 0.2], strict=True))
    assert action.target_clip == {'a_knee_joint': [-2.0, -0.5], 'b_knee_joint': [-2.0, -0.5]}


def rich_data():
    """Return a contract with a value in every part that a contract can have."""
    data = with_action(offset='zeros', relative_to='motion', filter={'share': 0.5}, target_clip={'a_.*': [-1.0, 1.0]})
    block = data['inputs']['obs']
    block['terms'][3] |= {'lags': [3, 0], 'joints': JOINTS[:2], 'offset': [1.0, 2.0]}
    data['inputs'] = {
        'obs': {'blocks': [block, block]},
        'carry': {'state': 'carry_out', 'initial': [1.0, 2.0]},
        'step': {'counter': 'ticks', 'start': 1, 'last': 9, 'end': 'loop'},
        'is_init': {'first': True},
    }
    data['commands']['pose'] = {'frame': 'world', 'quaternion': 'xyzw', 'initial': [0.0] * 6 + [1.0]}
    data['motion'] = MOTION | {'anchor': {'body': 'torso', 'chain': [['a_hip_joint', '-z']]}, 'align_heading': False}
    data['phase'] = STOPPING | {'standing_below': 0.1, 'standing_phase': 0.5, 'first_tick': 1}
    data['assumptions'] = [{'field': 'rate_hz', 'value': '50', 'source': 'test'}]
    return data | {'contacts': ['left', 'right']}


def test_whole_contract_travels_as_json():
    contract = make_contract(rich_data())
    back = Contract.from_json(contract.to_json(), 'wire')
    assert (back.id, back.file, back.to_json()) == (contract.id, contract.file, contract.to_json())


def test_patterns_do_not_travel():
    """What another process sends is taken by name: it must not run expressions here."""
    text = make_contract(rich_data()).to_json().replace('"target_clip":{"a_hip_joint"', '"target_clip":{"a_hip_j.*"')
    with pytest.raises(DocumentError, match=r'target_clip\.a_hip_j\.\*: matches no joint'):
        Contract.from_json(text, 'wire')


def test_inputs_of_every_kind_are_told_apart():
    contract = make_contract(rich_data())
    assert {name: len(blocks) for name, blocks in contract.observations.items()} == {'obs': 2}
    assert (list(contract.states), list(contract.counters), contract.flags) == (['carry'], ['step'], ['is_init'])
    assert contract.tensors == {'actions': 'actions'}
