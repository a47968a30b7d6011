# SPDX-License-Identifier: Apache-2.0
"""target = base + offset + scale * filter(clip(action)), in policy joint order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import JOINTS, contract_data, make_contract

from sim2real_ros.action.decode import ActionDecoder
from sim2real_ros.errors import JointError

ACTION = np.array([1.0, -2.0, 0.5, 4.0])


def decoder(outputs, **changes):
    return ActionDecoder(make_contract(contract_data(outputs=outputs, **changes)))


def action(kind='joint_position', scale=0.25, offset='default', clip=None, joints=None):
    return {'type': kind, 'scale': scale, 'offset': offset, 'clip': clip, 'joints': joints}


def run(decoder, values, stamp=0.0):
    return decoder.decode(decoder.filter(decoder.clip(values)), stamp)


def test_position_action_is_default_plus_scale_times_action():
    targets = run(decoder({'actions': action()}), ACTION, stamp=3.5)
    assert targets.position.tolist() == [0.1 + 0.25, -1.5 - 0.5, 0.1 + 0.125, -1.5 + 1.0]
    assert targets.velocity.tolist() == [0.0] * 4
    assert targets.effort.tolist() == [0.0] * 4
    assert targets.stamp == 3.5


def test_clip_acts_before_the_scale():
    targets = run(decoder({'actions': action(clip=[-1, 1], offset='zeros')}), ACTION)
    assert targets.position.tolist() == [0.25, -0.25, 0.125, 0.25]


def test_clip_does_not_hide_a_nan():
    clipped = decoder({'actions': action(clip=[-1, 1])}).clip(np.array([np.nan, 2.0, 0.0, -np.inf]))
    assert np.isnan(clipped[0])
    assert clipped[1:].tolist() == [1.0, 0.0, -1.0]


def test_scale_by_joint_follows_the_joints():
    targets = run(decoder({'actions': action(scale={'.*_hip_joint': 0.125, '.*_knee_joint': 0.5}, offset='zeros')}), ACTION)
    assert targets.position.tolist() == [0.125, -1.0, 0.0625, 2.0]


@pytest.mark.parametrize(('kind', 'field'), [('joint_velocity', 'velocity'), ('joint_torque', 'effort')])
def test_velocity_and_torque_actions_fill_their_own_field(kind, field):
    made = decoder({'actions': action(kind, 2.0, 'zeros')}, stiffness={'.*': 0.0})
    targets = run(made, ACTION)
    assert getattr(targets, field).tolist() == (2 * ACTION).tolist()
    assert targets.position.tolist() == [0.1, -1.5, 0.1, -1.5]
    for other in {'velocity', 'effort'} - {field}:
        assert getattr(targets, other).tolist() == [0.0] * 4


def test_joints_of_an_action_may_come_in_any_order():
    targets = run(decoder({'actions': action(joints=JOINTS[::-1], offset='zeros', scale=1.0)}), ACTION)
    assert targets.position.tolist() == ACTION[::-1].tolist()


def test_scale_and_offset_follow_reordered_joints():
    made = decoder({'actions': action(joints=JOINTS[::-1], scale={'.*_hip_joint': 0.0, '.*_knee_joint': 1.0})})
    assert run(made, ACTION).position.tolist() == [0.1, -1.5 + 0.5, 0.1, -1.5 + 1.0]


MIXED = {
    'wheels': action('joint_velocity', 10.0, 'zeros', clip=[-1, 1], joints=['b_knee_joint', 'a_knee_joint']),
    'legs': action(scale=0.5, joints=['a_hip_joint', 'b_hip_joint']),
}
SOFT_KNEES = {'stiffness': {'.*_hip_joint': 25.0, '.*_knee_joint': 0.0}}


def test_several_outputs_drive_their_own_joints():
    made = decoder(MIXED, **SOFT_KNEES)
    joined = made.join({'legs': np.array([3.0, 4.0], np.float32), 'wheels': np.array([1.0, -2.0], np.float32)})
    assert joined.tolist() == [1.0, -2.0, 3.0, 4.0]
    assert joined.dtype == np.float64
    targets = run(made, joined)
    assert targets.velocity.tolist() == [0.0, -10.0, 0.0, 10.0]
    assert targets.position.tolist() == [0.1 + 1.5, -1.5, 0.1 + 2.0, -1.5]


def test_outputs_are_joined_as_float64_copies():
    made, output = decoder({'actions': action()}), np.ones(4, np.float32)
    joined = made.join({'actions': output})
    joined[:] = 7
    assert joined.dtype == np.float64
    assert output.tolist() == [1.0] * 4


def test_decoding_does_not_change_its_input_or_the_default_pose():
    contract = make_contract()
    made, values = ActionDecoder(contract), ACTION.copy()
    targets = run(made, values)
    targets.position[:] = 99
    assert np.array_equal(values, ACTION)
    assert contract.default_position.tolist() == [0.1, -1.5, 0.1, -1.5]


def test_describe_names_the_number_that_drives_a_joint():
    made = decoder(MIXED, **SOFT_KNEES)
    assert made.scale_of('a_knee_joint') == 10.0
    assert made.scale_of('b_hip_joint') == 0.5
    with pytest.raises(JointError, match='no output drives tail'):
        made.scale_of('tail')


@given(
    st.lists(st.lists(st.floats(-50, 50), min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from([({'actions': action(clip=[-3, 3])}, {}), (MIXED, SOFT_KNEES)]),
)
def test_batch_equals_scalar_bit_for_bit(rows, case):
    made, values = decoder(case[0], **case[1]), np.array(rows)
    batch = run(made, values)
    for k in range(len(rows)):
        one, single = run(made, values[k]), run(made, values[k : k + 1])
        for field in ('position', 'velocity', 'effort'):
            assert np.array_equal(getattr(batch, field)[k], getattr(one, field))
            assert np.array_equal(getattr(single, field)[0], getattr(one, field))


def test_offset_may_be_a_table():
    made = decoder({'actions': action(offset={'.*_hip_joint': 1.0, '.*_knee_joint': -1.0}, scale=1.0)})
    assert run(made, ACTION).position.tolist() == [2.0, -3.0, 1.5, 3.0]


def test_filter_is_first_order_from_zero_and_forgets_at_reset():
    made = decoder({'actions': action(scale=1.0, offset='zeros') | {'filter': {'share': 0.25}}})
    assert run(made, np.full(4, 8.0)).position.tolist() == [2.0] * 4
    assert run(made, np.full(4, 8.0)).position.tolist() == [3.5] * 4
    assert run(made, np.zeros(4)).position.tolist() == [2.625] * 4
    made.reset()
    assert run(made, np.full(4, 8.0)).position.tolist() == [2.0] * 4


def test_filter_sees_the_clipped_action():
    made = decoder({'actions': action(scale=1.0, offset='zeros', clip=[-1, 1]) | {'filter': {'share': 0.5}}})
    assert run(made, np.full(4, 8.0)).position.tolist() == [0.5] * 4


def test_target_clip_bounds_the_target_of_some_joints():
    made = decoder({'actions': action(scale=1.0, offset='zeros') | {'target_clip': {'.*_hip_joint': [-0.2, 0.7]}}})
    assert run(made, ACTION).position.tolist() == [0.7, -2.0, 0.5, 4.0]


def relative(base, **more):
    return decoder({'actions': action(scale=0.5, offset='zeros') | {'relative_to': base} | more}, motion=MOTION)


MOTION = {'source': 'network', 'quantities': {'joint_pos': 'ref'}}
MEASURED, REFERENCE = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 3.0, 4.0])


def test_delta_action_starts_from_the_measured_position_and_integrates():
    made = relative('last_target')
    ones = np.ones(4)
    np.testing.assert_allclose(made.decode(ones, 0.0, MEASURED).position, MEASURED + 0.5)
    np.testing.assert_allclose(made.decode(ones, 0.0, MEASURED + 9).position, MEASURED + 1.0)
    made.reset()
    np.testing.assert_allclose(made.decode(ones, 0.0, MEASURED + 9).position, MEASURED + 9.5)


def test_delta_action_does_not_wind_up_beyond_its_target_clip():
    made = relative('last_target', target_clip={'.*': [-1.0, 1.0]})
    for _ in range(20):
        made.decode(np.ones(4), 0.0, MEASURED)
    np.testing.assert_allclose(made.decode(-np.ones(4), 0.0, MEASURED).position, [0.5] * 4)


def test_action_relative_to_the_measured_position_or_the_motion():
    for _ in range(2):
        np.testing.assert_allclose(relative('measured').decode(np.ones(4), 0.0, MEASURED).position, MEASURED + 0.5)
        np.testing.assert_allclose(relative('motion').decode(np.ones(4), 0.0, MEASURED, REFERENCE).position, REFERENCE + 0.5)


def test_relative_action_may_have_an_offset_table():
    made = relative('motion', offset={'.*_hip_joint': 1.0, '.*_knee_joint': 0.0})
    np.testing.assert_allclose(made.decode(np.zeros(4), 0.0, MEASURED, REFERENCE).position, REFERENCE + [1, 0, 1, 0])


STATEFUL = {
    'wheels': action('joint_velocity', 10.0, 'zeros', joints=['b_knee_joint', 'a_knee_joint']) | {'filter': {'share': 0.3}},
    'legs': action(scale=0.5, offset='zeros', joints=['a_hip_joint', 'b_hip_joint'])
    | {'relative_to': 'last_target', 'target_clip': {'a_hip_joint': [-1, 1]}},
}


@given(ticks=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 99)), max_size=10))
def test_stateful_batch_equals_scalar_bit_for_bit(ticks):
    """Filters, last targets and resets of each robot are its own."""
    contract = make_contract(contract_data(outputs=STATEFUL, **SOFT_KNEES))
    scalars, single, batch = (
        [ActionDecoder(contract) for _ in range(3)],
        ActionDecoder(contract, (1,)),
        ActionDecoder(contract, (3,)),
    )
    for bits, seed in ticks:
        rng = np.random.default_rng(seed)
        values, measured, mask = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), np.array([bits & 1, bits & 2, bits & 4]) > 0
        batch.reset(mask)
        single.reset(mask[:1])
        for k in np.flatnonzero(mask):
            scalars[k].reset()
        together, one = (d.decode(d.filter(values[:w]), 0.0, measured[:w]) for d, w in ((batch, 3), (single, 1)))
        for k, scalar in enumerate(scalars):
            own = scalar.decode(scalar.filter(values[k]), 0.0, measured[k])
            for field in ('position', 'velocity', 'effort'):
                assert np.array_equal(getattr(together, field)[k], getattr(own, field))
                assert k or np.array_equal(getattr(one, field)[0], getattr(own, field))
