# SPDX-License-Identifier: Apache-2.0
"""Terms, then clip and scale in the contract's order, then history, into float32."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import JOINTS, OBS_WIDTH, contract_data, make_contract, random_state, row

from sim2real_ros.errors import DocumentError
from sim2real_ros.observation import Moment, ObservationBuilder
from sim2real_ros.observation.needs import missing_signals

PHASE = {
    'period_s': 0.8,
    'encoding': ['sin', 'cos'],
    'offsets': [0.0, 0.5],
    'timebase': 'policy_ticks',
    'stop_at_zero_command': True,
}


def moment(contract, rng, batch=()):
    return Moment(
        random_state(rng, len(contract.joints), batch),
        contract.default_position,
        rng.normal(size=(*batch, 3)),
        rng.normal(size=(*batch, contract.action_width)),
        rng.normal(size=(*batch, contract.action_width)),
        rng.normal(size=(*batch, 4 if contract.file.phase else 0)),
    )


def one(m, index):
    """Return one robot of a batch of moments."""
    return Moment(
        row(m.state, index),
        m.default_joint_pos,
        m.velocity_command[index],
        m.last_action_raw[index],
        m.last_action_clipped[index],
        m.phase[index],
    )


def with_terms(terms, stack=None):
    data = contract_data(phase=PHASE)
    data['inputs']['obs']['terms'] = terms
    data['inputs']['obs']['stack'] |= stack or {}
    return make_contract(data)


def build(contract, m):
    return ObservationBuilder(contract).build(m)['obs']


def test_observation_is_the_terms_in_order_scaled_as_float32():
    contract = make_contract()
    m = moment(contract, np.random.default_rng(0))
    state = m.state
    x, y, z, w = state.base_quat_xyzw
    expected = np.concatenate(
        [
            0.25 * state.base_ang_vel,
            [2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1],
            m.velocity_command * [2.0, 2.0, 0.25],
            state.joint_pos - contract.default_position,
            0.05 * state.joint_vel,
            m.last_action_raw,
        ]
    )
    built = build(contract, m)
    assert built.dtype == np.float32
    assert built.shape == (OBS_WIDTH,)
    np.testing.assert_array_equal(built, expected.astype(np.float32))


@pytest.mark.parametrize(
    ('process', 'expected'),
    [(['clip', 'scale'], [0.5, -0.5, 0.25]), (['scale', 'clip'], [1.0, -1.0, 0.25])],
)
def test_clip_and_scale_run_in_the_stated_order(process, expected):
    contract = with_terms([{'term': 'velocity_command', 'scale': 0.5, 'clip': [-1, 1], 'process': process}])
    m = moment(contract, np.random.default_rng(0))
    m.velocity_command[:] = [3.0, -4.0, 0.5]
    assert build(contract, m).tolist() == expected


def test_terms_with_either_order_live_in_one_frame():
    contract = with_terms(
        [
            {'term': 'velocity_command', 'scale': 0.5, 'clip': [-1, 1], 'process': ['clip', 'scale']},
            {'term': 'velocity_command', 'scale': 0.5, 'clip': [-1, 1], 'process': ['scale', 'clip']},
            {'term': 'velocity_command', 'clip': [-2, 2]},
            {'term': 'velocity_command', 'scale': [1.0, 10.0, 100.0]},
        ]
    )
    m = moment(contract, np.random.default_rng(0))
    m.velocity_command[:] = [3.0, -4.0, 0.5]
    expected = [0.5, -0.5, 0.25, 1, -1, 0.25, 2, -2, 0.5, 3, -40, 50]
    assert build(contract, m).tolist() == expected


@pytest.mark.parametrize(('value', 'field'), [('raw', 'last_action_raw'), ('clipped', 'last_action_clipped')])
def test_last_action_is_the_one_that_the_contract_names(value, field):
    contract = with_terms([{'term': 'last_action', 'value': value}])
    m = moment(contract, np.random.default_rng(0))
    np.testing.assert_array_equal(build(contract, m), getattr(m, field).astype(np.float32))


def test_history_is_stacked_after_scale_and_clip():
    contract = with_terms(
        [{'term': 'velocity_command', 'scale': 2.0}, {'term': 'base_ang_vel'}],
        {'lags': [1, 0], 'layout': 'term_major', 'fill': 'zeros'},
    )
    builder, rng = ObservationBuilder(contract), np.random.default_rng(0)
    before, now = moment(contract, rng), moment(contract, rng)
    builder.build(before)
    expected = [2 * before.velocity_command, 2 * now.velocity_command, before.state.base_ang_vel, now.state.base_ang_vel]
    np.testing.assert_array_equal(builder.build(now)['obs'], np.concatenate(expected).astype(np.float32))
    assert builder.width('obs') == 12


def test_inputs_have_histories_of_their_own():
    data = contract_data()
    terms = [{'term': 'velocity_command'}]
    data['inputs'] = {
        'now': {'stack': {'lags': [0], 'layout': 'frame_major', 'fill': 'zeros'}, 'terms': terms},
        'then': {'stack': {'lags': [2], 'layout': 'frame_major', 'fill': 'first'}, 'terms': terms},
    }
    contract = make_contract(data)
    builder, rng = ObservationBuilder(contract), np.random.default_rng(0)
    moments = [moment(contract, rng) for _ in range(4)]
    built = [builder.build(m) for m in moments]
    for k in range(4):
        np.testing.assert_array_equal(built[k]['now'], moments[k].velocity_command.astype(np.float32))
        np.testing.assert_array_equal(built[k]['then'], moments[max(k - 2, 0)].velocity_command.astype(np.float32))


def test_result_of_a_tick_is_not_overwritten_by_the_next():
    contract, rng = make_contract(), np.random.default_rng(0)
    builder = ObservationBuilder(contract)
    first = builder.build(moment(contract, rng))['obs']
    kept = first.copy()
    builder.build(moment(contract, rng))
    assert np.array_equal(first, kept)


def test_slots_say_where_each_term_lies():
    slots = ObservationBuilder(make_contract()).slots['obs']
    assert [(slot.name, slot.start, slot.stop) for slot in slots] == [
        ('base_ang_vel', 0, 3),
        ('projected_gravity', 3, 6),
        ('velocity_command', 6, 9),
        ('joint_pos_rel', 9, 13),
        ('joint_vel', 13, 17),
        ('last_action', 17, 21),
    ]


def test_needed_sensors_are_those_of_the_terms():
    assert ObservationBuilder(make_contract()).needs == ['imu']
    assert ObservationBuilder(with_terms([{'term': 'joint_pos'}])).needs == []
    assert ObservationBuilder(with_terms([{'term': 'base_lin_vel'}, {'term': 'projected_gravity'}])).needs == ['imu', 'odom']


def test_unknown_terms_and_wrong_scales_come_in_one_message_with_paths():
    terms = [
        {'term': 'gravity'},
        {'term': 'joint_pos', 'scale': [1.0, 2.0]},
        {'term': 'base_ang_vel'},
        {'term': 'heights'},
    ]
    with pytest.raises(DocumentError) as caught:
        with_terms(terms)
    faults = caught.value.faults
    assert [fault.split(': ')[0] for fault in faults] == [
        'inputs.obs.terms.0.term',
        'inputs.obs.terms.1.scale',
        'inputs.obs.terms.3.term',
    ]
    assert faults[1].endswith('joint_pos has 4 numbers, the scale has 2')


TERM = st.sampled_from(
    [
        {'term': 'base_ang_vel', 'scale': 0.25},
        {'term': 'projected_gravity'},
        {'term': 'velocity_command', 'scale': [2.0, 2.0, 0.25]},
        {'term': 'joint_pos_rel', 'clip': [-0.5, 0.5], 'scale': 3.0, 'process': ['scale', 'clip']},
        {'term': 'joint_vel', 'clip': [-5, 5], 'scale': 0.05, 'process': ['clip', 'scale']},
        {'term': 'last_action', 'value': 'clipped'},
        {'term': 'phase'},
    ]
)
STACK = st.fixed_dictionaries(
    {
        'lags': st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True),
        'layout': st.sampled_from(['term_major', 'frame_major']),
        'fill': st.sampled_from(['first', 'zeros']),
    }
)


@given(terms=st.lists(TERM, min_size=1, max_size=5), stack=STACK, seed=st.integers(0, 1000))
def test_batch_equals_scalar_bit_for_bit(terms, stack, seed):
    """A batch of one, and every robot of a larger batch, equals the scalar builder."""
    contract, rng = with_terms(terms, stack), np.random.default_rng(seed)
    scalars = [ObservationBuilder(contract) for _ in range(3)]
    single, batch = ObservationBuilder(contract, (1,)), ObservationBuilder(contract, (3,))
    assert scalars[0].width('obs') == batch.width('obs')
    for tick in range(6):
        if tick == 3:
            scalars[1].reset()
            batch.reset(np.array([False, True, False]))
        m = moment(contract, rng, (3,))
        built = batch.build(m)['obs']
        expected = [scalar.build(one(m, k))['obs'] for k, scalar in enumerate(scalars)]
        assert built.shape == (3, batch.width('obs'))
        assert np.array_equal(built, np.array(expected))
        assert np.array_equal(single.build(one(m, slice(0, 1)))['obs'][0], expected[0])


ORDERS = list(permutations(('clip', 'scale', 'offset')))


@given(
    order=st.sampled_from(ORDERS),
    scale=st.one_of(st.floats(-3, -0.1), st.lists(st.floats(-3, 3), min_size=3, max_size=3)),
    offset=st.one_of(st.floats(0.1, 2), st.lists(st.floats(-2, 2), min_size=3, max_size=3)),
    values=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
)
def test_clip_scale_and_offset_run_in_any_stated_order(order, scale, offset, values):
    use = {'term': 'velocity_command', 'clip': [-1, 1], 'scale': scale, 'offset': offset, 'process': list(order)}
    contract = with_terms([use, {'term': 'velocity_command', 'clip': [-2, 2], 'scale': 0.5, 'process': ['scale', 'clip']}])
    m = moment(contract, np.random.default_rng(0))
    m.velocity_command[:] = values
    expected = np.array(values)
    for step in order:
        expected = {
            'clip': lambda x: np.clip(x, -1, 1),
            'scale': lambda x: x * np.array(scale),
            'offset': lambda x: x + np.array(offset),
        }[step](expected)
    built = build(contract, m)
    np.testing.assert_allclose(built[:3], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(built[3:], np.clip(0.5 * np.array(values), -2, 2), rtol=1e-6, atol=1e-6)


def test_joint_terms_may_be_of_some_joints_in_another_order():
    some = [JOINTS[3], JOINTS[0]]
    contract = with_terms(
        [
            {'term': 'joint_pos_rel', 'joints': some, 'scale': [2.0, 3.0]},
            {'term': 'joint_vel', 'joints': some[:1]},
            {'term': 'joint_pos'},
        ]
    )
    m = moment(contract, np.random.default_rng(0))
    relative = (m.state.joint_pos - contract.default_position)[[3, 0]]
    expected = [*relative * [2.0, 3.0], m.state.joint_vel[3], *m.state.joint_pos]
    np.testing.assert_array_equal(build(contract, m), np.float32(expected))
    slots = ObservationBuilder(contract).slots['obs']
    assert [slot.joints for slot in slots] == [tuple(some), tuple(some[:1]), tuple(JOINTS)]


@pytest.mark.parametrize(
    ('use', 'fault'),
    [
        ({'term': 'joint_pos', 'joints': ['tail']}, "joints: tail not among the contract's joints a_hip_joint"),
        ({'term': 'joint_pos', 'joints': [JOINTS[0]] * 2}, 'joints: a_hip_joint occurs more than once'),
        ({'term': 'joint_pos', 'joints': []}, 'joints: is empty; leave it out for all joints'),
        ({'term': 'base_ang_vel', 'joints': JOINTS[:1]}, 'joints: base_ang_vel is not a term of joints'),
        ({'term': 'last_action', 'value': 'raw', 'joints': JOINTS[:1]}, 'joints: last_action is not a term of joints'),
        ({'term': 'joint_pos', 'joints': JOINTS[:2], 'scale': [1.0] * 4}, 'scale: joint_pos has 2 numbers, the scale has 4'),
        ({'term': 'joint_pos', 'offset': [1.0, 2.0]}, 'offset: joint_pos has 4 numbers, the offset has 2'),
    ],
)
def test_joints_and_lists_that_do_not_fit_are_refused(use, fault):
    with pytest.raises(DocumentError) as caught:
        with_terms([use])
    (text,) = caught.value.faults
    assert text.startswith(f'inputs.obs.terms.0.{fault}')


def test_blocks_lie_side_by_side_each_with_its_own_history():
    data = contract_data()
    now = {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': [{'term': 'velocity_command'}]}
    then = {'stack': {'lags': [2, 1], 'layout': 'frame_major', 'fill': 'zeros'}, 'terms': [{'term': 'joint_pos'}]}
    data['inputs'] = {'obs': {'blocks': [now, then]}}
    contract = make_contract(data)
    builder, rng = ObservationBuilder(contract), np.random.default_rng(0)
    moments = [moment(contract, rng) for _ in range(4)]
    for tick, m in enumerate(moments):
        past = [moments[tick - lag].state.joint_pos if tick >= lag else np.zeros(4) for lag in (2, 1)]
        np.testing.assert_array_equal(builder.build(m)['obs'], np.float32(np.concatenate([m.velocity_command, *past])))
    assert builder.width('obs') == 3 + 2 * 4
    assert builder.depth == 2
    assert [(slot.block, slot.start, slot.stop, slot.lags) for slot in builder.slots['obs']] == [
        (0, 0, 3, (0,)),
        (1, 3, 7, (2, 1)),
    ]


def test_fault_in_a_block_is_told_with_its_path():
    data = contract_data()
    block = data['inputs']['obs']
    data['inputs'] = {'obs': {'blocks': [block, block | {'terms': [{'term': 'gravity'}]}]}}
    with pytest.raises(DocumentError, match=r'inputs\.obs\.blocks\.1\.terms\.0\.term: observation term "gravity"'):
        make_contract(data)


def test_terms_have_lags_of_their_own():
    contract = with_terms([{'term': 'velocity_command', 'lags': [3, 1, 0]}, {'term': 'joint_pos'}])
    builder, rng = ObservationBuilder(contract), np.random.default_rng(0)
    moments = [moment(contract, rng) for _ in range(5)]
    for tick, m in enumerate(moments):
        past = [moments[max(tick - lag, 0)].velocity_command for lag in (3, 1, 0)]
        np.testing.assert_array_equal(builder.build(m)['obs'], np.float32([*np.concatenate(past), *m.state.joint_pos]))


def test_terms_that_are_not_finite_are_named_in_any_block():
    data = contract_data()
    block = data['inputs']['obs']
    data['inputs'] = {'obs': {'blocks': [block | {'terms': [{'term': 'joint_pos'}]}, block]}}
    contract = make_contract(data)
    builder, m = ObservationBuilder(contract), moment(contract, np.random.default_rng(0))
    m.velocity_command[1] = np.nan
    builder.build(m)
    assert builder.not_finite('obs') == ['velocity_command']


# --- signals -------------------------------------------------------------------------------------------------------


def test_missing_signals_are_told_with_term_and_topic():
    contract = with_terms(
        [{'term': 'base_lin_vel'}, {'term': 'base_height'}, {'term': 'projected_gravity'}, {'term': 'joint_pos'}]
    )
    assert missing_signals(contract, ['imu', 'odom']) == []
    (sentence,) = missing_signals(contract, ['imu'])
    assert sentence == (
        'testbot_velocity needs odometry of the base for base_lin_vel, base_height, but nobody gives it: publish it on the '
        'topic odom, or take a policy without these terms'
    )
    assert [sentence.split(' for ')[0] for sentence in missing_signals(contract, [])] == [
        'testbot_velocity needs an IMU',
        'testbot_velocity needs odometry of the base',
    ]
