# SPDX-License-Identifier: Apache-2.0
"""What differs between trainers has no default; what contradicts itself is refused."""

import json

import pytest
from makers import contract_data, make_contract

from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.errors import DocumentError


def faults_of(data):
    with pytest.raises(DocumentError) as caught:
        make_contract(data)
    return caught.value.faults


def fault_of(data):
    (fault,) = faults_of(data)
    return fault


def obs(data):
    return data['inputs']['obs']


def test_complete_contract_is_accepted():
    assert make_contract().file.name == 'testbot_velocity'


REQUIRED = [
    ('schema',),
    ('name',),
    ('robot',),
    ('model',),
    ('model', 'file'),
    ('rate_hz',),
    ('joints',),
    ('default_position',),
    ('stiffness',),
    ('damping',),
    ('inputs',),
    ('inputs', 'obs', 'stack'),
    ('inputs', 'obs', 'stack', 'lags'),
    ('inputs', 'obs', 'stack', 'layout'),
    ('inputs', 'obs', 'stack', 'fill'),
    ('inputs', 'obs', 'terms'),
    ('outputs',),
    ('outputs', 'actions', 'type'),
    ('outputs', 'actions', 'scale'),
    ('outputs', 'actions', 'offset'),
    ('outputs', 'actions', 'clip'),
    ('commands', 'velocity', 'timeout_s'),
    ('latency', 'trained_ms'),
    ('provenance',),
    ('provenance', 'trainer'),
]


@pytest.mark.parametrize('path', REQUIRED, ids='.'.join)
def test_field_without_default_cannot_be_left_out(path):
    data = contract_data()
    part = data
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    assert fault_of(data) == f'{".".join(path)}: is missing; it has no default'


@pytest.mark.parametrize(
    'path',
    [(), ('model',), ('inputs', 'obs'), ('inputs', 'obs', 'stack'), ('outputs', 'actions'), ('commands', 'velocity')],
    ids=lambda path: '.'.join(path) or 'document',
)
def test_unknown_key_is_refused_with_its_path(path):
    data = contract_data()
    part = data
    for key in path:
        part = part[key]
    part['sclae'] = 1
    assert fault_of(data).startswith(f'{".".join((*path, "sclae"))}: is not a known key')


def test_unknown_key_in_a_term_is_refused_with_its_number():
    data = contract_data()
    obs(data)['terms'][4]['sclae'] = 1
    assert fault_of(data) == 'inputs.obs.terms.4.sclae: is not a known key'


def test_all_faults_come_in_one_message_and_nothing_else():
    data = contract_data(rate_hz=0, schema=2, joints=[])
    obs(data)['stack'] |= {'layout': 'newest', 'lags': [0, -1]}
    obs(data)['terms'][0]['clip'] = [1, -1]
    data['outputs']['actions']['type'] = 'joint_angle'
    data['commands']['velocity']['x'] = [0.1, 1.0]
    data['stiffness'] = {'.*': -1.0}
    paths = sorted(fault.split(': ')[0] for fault in faults_of(data))
    assert paths == sorted(
        [
            'rate_hz',
            'schema',
            'joints',
            'inputs.obs.stack.layout',
            'inputs.obs.stack.lags.1',
            'inputs.obs.terms.0',
            'outputs.actions.type',
            'commands.velocity',
            'stiffness..*',
        ]
    )


def test_fault_in_a_state_is_only_about_the_state():
    data = contract_data()
    data['inputs']['h_in'] = {'state': 'h_out', 'initial': 'ones'}
    assert fault_of(data).startswith("inputs.h_in.initial: Input should be 'zeros'")


def test_clip_and_scale_without_their_order_are_refused():
    data = contract_data()
    del obs(data)['terms'][0]['process']
    assert 'process: [clip, scale] or [scale, clip]' in fault_of(data)


@pytest.mark.parametrize('process', [['clip'], ['scale'], ['clip', 'clip'], ['clip', 'scale', 'clip']])
def test_incomplete_process_is_refused(process):
    data = contract_data()
    obs(data)['terms'][0]['process'] = process
    assert fault_of(data).startswith('inputs.obs.terms.0: a term with both clip and scale must state their order')


@pytest.mark.parametrize('process', [['clip', 'scale'], ['offset', 'offset', 'clip'], None])
def test_incomplete_process_of_three_steps_is_refused(process):
    data = contract_data()
    obs(data)['terms'][0] |= {'offset': 1.0, 'process': process}
    assert fault_of(data).startswith('inputs.obs.terms.0: a term with clip, scale and offset must state their order')


def test_last_action_must_say_raw_or_clipped():
    data = contract_data()
    del obs(data)['terms'][5]['value']
    assert fault_of(data).startswith('inputs.obs.terms.5: last_action must say which action it means')


def test_value_belongs_to_last_action_alone():
    data = contract_data()
    obs(data)['terms'][1]['value'] = 'raw'
    assert fault_of(data).startswith('inputs.obs.terms.1: value belongs to last_action only')


def test_repeated_lags_are_refused():
    data = contract_data()
    obs(data)['stack']['lags'] = [0, 1, 1]
    assert fault_of(data).startswith('inputs.obs.stack: lags repeat: [0, 1, 1]')


def test_position_offset_of_a_torque_action_is_refused():
    data = contract_data(stiffness={'.*': 0.0})
    data['outputs']['actions']['type'] = 'joint_torque'
    assert fault_of(data).startswith('outputs.actions: offset: default is a position')


@pytest.mark.parametrize('base', ['last_target', 'measured', 'motion'])
def test_relative_target_of_a_velocity_action_is_refused(base):
    data = contract_data(stiffness={'.*': 0.0})
    data['outputs']['actions'] |= {'type': 'joint_velocity', 'offset': 'zeros', 'relative_to': base}
    assert fault_of(data).startswith(f'outputs.actions: relative_to: {base} is a position')


def test_relative_target_beside_the_default_pose_is_refused():
    data = contract_data()
    data['outputs']['actions']['relative_to'] = 'measured'
    assert fault_of(data).startswith('outputs.actions: relative_to: measured has a base of its own; offset: zeros')


@pytest.mark.parametrize(
    ('part', 'fault'),
    [
        ({'counter': 'ticks', 'last': 5}, 'last and end belong together'),
        ({'counter': 'ticks', 'end': 'loop'}, 'last and end belong together'),
        ({'counter': 'ticks', 'start': 5, 'last': 5, 'end': 'hold'}, 'last is the last number of the motion'),
        ({'counter': 'seconds'}, "counter: Input should be 'ticks'"),
        ({'first': False}, 'first: Input should be True'),
        ({'blocks': []}, 'blocks: List should have at least 2 items'),
    ],
)
def test_fault_in_a_special_input_is_only_about_it(part, fault):
    data = contract_data()
    data['inputs']['extra'] = part
    assert fault in fault_of(data)


def test_lags_of_a_term_need_the_term_major_layout():
    data = contract_data()
    obs(data)['terms'][0]['lags'] = [0, 1]
    make_contract(data)
    obs(data)['stack']['layout'] = 'frame_major'
    assert 'base_ang_vel has lags of its own, so the layout must be term_major' in fault_of(data)


@pytest.mark.parametrize(
    ('motion', 'fault'),
    [
        ({'source': 'file', 'quantities': {}}, 'source: file needs file and rate_hz'),
        ({'source': 'network', 'quantities': {}, 'rate_hz': 50.0}, 'source: file needs file and rate_hz'),
        ({'source': 'network', 'quantities': {}, 'end': 'loop'}, 'end: loop is for source: file'),
        ({'source': 'network', 'quantities': {}, 'anchor': {'body': 't', 'chain': [['j', 'w']]}}, 'anchor.chain.0.1'),
    ],
)
def test_motion_that_contradicts_itself_is_refused(motion, fault):
    assert fault in fault_of(contract_data(motion=motion))


@pytest.mark.parametrize('bounds', [[1, -1], [1, 1], [1], [1, 2, 3]])
def test_bounds_are_two_ordered_numbers(bounds):
    data = contract_data()
    data['outputs']['actions']['clip'] = bounds
    assert fault_of(data).startswith('outputs.actions')


def test_command_range_must_hold_zero():
    data = contract_data()
    data['commands']['velocity']['yaw'] = [-2, -1]
    assert 'yaw must contain 0' in fault_of(data)


def test_wrong_hash_form_is_refused():
    assert fault_of(contract_data(model={'file': 'p.onnx', 'sha256': 'abc'})).startswith('model.sha256')


def test_schema_can_be_written_as_json_schema():
    """Editors and `sim2real schema` use it."""
    text = json.dumps(ContractFile.model_json_schema())
    for word in ('stack', 'frame_major', 'initial'):
        assert word in text
