# SPDX-License-Identifier: Apache-2.0
"""Joint orders are matched by name, never by position."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_ros.errors import JointError, Sim2RealError
from sim2real_ros.joints import JointMap, by_name

NAMES = st.lists(st.text('abcdefgh_', min_size=1, max_size=6), min_size=1, max_size=12, unique=True)


@given(NAMES.flatmap(lambda names: st.tuples(st.just(names), st.permutations(names))), st.sampled_from([(), (1,), (3, 2)]))
def test_map_and_its_inverse_give_back_every_value_at_its_place(orders, batch):
    source, target = orders
    values = np.random.default_rng(0).normal(size=(*batch, len(source)))
    there = JointMap(source, target)(values)
    for k, name in enumerate(target):
        assert np.array_equal(there[..., k], values[..., source.index(name)])
    assert np.array_equal(JointMap(target, source)(there), values)


@given(NAMES.flatmap(lambda names: st.tuples(st.permutations(names), st.integers(1, len(names)))))
def test_map_picks_a_subset_by_name(case):
    source, count = case
    target = sorted(source)[:count]
    values = np.arange(len(source), dtype=float)
    assert [source[int(v)] for v in JointMap(source, target)(values)] == target


def test_map_between_equal_orders_is_identity_and_copies_nothing():
    joint_map, values = JointMap(['a', 'b'], ['a', 'b']), np.array([1.0, 2.0])
    assert joint_map.identity
    assert joint_map(values) is values


def test_map_between_different_orders_is_not_identity():
    assert not JointMap(['a', 'b'], ['b', 'a']).identity
    assert not JointMap(['a', 'b'], ['a']).identity


def test_missing_joint_is_refused_with_both_sides_named():
    with pytest.raises(JointError, match='driver lacks c, which policy needs.*driver has: a, b') as caught:
        JointMap(['a', 'b'], ['a', 'c'], source='driver', target='policy')
    assert caught.value.missing == ['c']
    assert isinstance(caught.value, Sim2RealError)


def test_extra_joint_is_allowed_by_default_and_refused_when_exact():
    assert JointMap(['a', 'b'], ['a'])(np.array([1.0, 2.0])).tolist() == [1.0]
    with pytest.raises(JointError, match='driver has b, which policy does not know') as caught:
        JointMap(['a', 'b'], ['a'], source='driver', target='policy', exact=True)
    assert caught.value.extra == ['b']


@pytest.mark.parametrize(('source', 'target'), [(['a', 'a'], ['a']), (['a', 'b'], ['a', 'a'])])
def test_duplicate_joint_is_refused_on_either_side(source, target):
    with pytest.raises(JointError, match='a occurs more than once') as caught:
        JointMap(source, target)
    assert caught.value.duplicate == ['a']


def test_every_kind_of_mismatch_is_in_one_message():
    with pytest.raises(JointError) as caught:
        JointMap(['a', 'a', 'x'], ['a', 'm'], exact=True)
    assert (caught.value.missing, caught.value.extra, caught.value.duplicate) == (['m'], ['x'], ['a'])
    for name in ('m', 'x', 'a occurs more than once'):
        assert name in str(caught.value)


def test_empty_source_is_said_to_have_no_joints():
    with pytest.raises(JointError, match='source has: none'):
        JointMap([], ['a'])


HIPS_AND_KNEES = ['l_hip', 'l_knee', 'r_hip', 'r_knee']


def table(values):
    faults = []
    return by_name(values, HIPS_AND_KNEES, faults, 'gains'), faults


def test_table_expands_names_and_expressions_into_joint_order():
    values, faults = table({'r_knee': 4.0, '.*_hip': 1.0, 'l_knee': 2.0})
    assert values.tolist() == [1.0, 2.0, 1.0, 4.0]
    assert faults == []


def test_expression_must_match_the_whole_name():
    _, faults = table({'hip': 1.0, '.*knee': 2.0})
    assert any(f.startswith('gains.hip: matches no joint') for f in faults)
    assert 'gains: no value for l_hip, r_hip' in faults


def test_joint_matched_twice_is_a_fault_naming_both_patterns():
    _, faults = table({'.*': 1.0, 'l_hip': 2.0})
    assert faults == ['gains: l_hip is matched by both ".*" and "l_hip"']


def test_broken_expression_is_a_fault_with_its_path():
    _, faults = table({'(': 1.0, '.*': 2.0})
    assert len(faults) == 1
    assert faults[0].startswith('gains.(: not a regular expression')


def test_joint_without_value_is_nan_and_a_fault():
    values, faults = table({'.*_hip': 1.0})
    assert np.isnan(values).tolist() == [False, True, False, True]
    assert faults == ['gains: no value for l_knee, r_knee']


def test_joint_name_with_special_characters_matches_itself():
    faults = []
    assert by_name({'a+b': 1.0}, ['a+b'], faults, 'gains').tolist() == [1.0]
    assert faults == []
