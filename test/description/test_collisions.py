# SPDX-License-Identifier: Apache-2.0
"""Promises about the names of collision shapes in Gazebo, by the rule of sdformat's URDF parser."""

import xml.etree.ElementTree as ElementTree

from sim2real_ros.description.collisions import collision_names


def link(name, *shapes):
    collisions = ''.join(f'<collision name="{shape}"/>' if shape else '<collision/>' for shape in shapes)
    return f'<link name="{name}">{collisions}</link>'


def joint(name, parent, child, kind='fixed'):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/></joint>'


def names(*parts):
    return collision_names(ElementTree.fromstring(f'<robot>{"".join(parts)}</robot>'))


def test_shapes_of_a_moving_link_are_named_after_it_and_counted():
    assert names(link('calf', None, None)) == {'calf': ['calf_collision', 'calf_collision_1']}


def test_a_named_shape_of_another_name_is_marked_with_its_link():
    assert names(link('calf', 'tube')) == {'calf': ['calf_fixed_joint_lump__tube_collision']}


def test_a_foot_on_a_fixed_joint_is_merged_behind_the_shapes_of_its_link():
    made = names(link('calf', None), link('foot', None), joint('j', 'calf', 'foot'))
    assert made['foot'] == ['calf_fixed_joint_lump__foot_collision_1']


def test_a_foot_on_a_foot_is_merged_all_the_way():
    made = names(link('calf'), link('ankle'), link('foot', 'ball'), joint('a', 'calf', 'ankle'), joint('b', 'ankle', 'foot'))
    assert made['foot'] == ['calf_fixed_joint_lump__ball_collision']


def test_links_on_fixed_joints_are_merged_in_the_alphabetical_order_of_the_joints():
    made = names(link('hand'), link('b', None), link('a', None), joint('z', 'hand', 'a'), joint('c', 'hand', 'b'))
    assert made == {
        'hand': [],
        'b': ['hand_fixed_joint_lump__b_collision'],
        'a': ['hand_fixed_joint_lump__a_collision_1'],
    }


def test_a_preserved_joint_keeps_the_link():
    keep = '<gazebo reference="j"><preserveFixedJoint>true</preserveFixedJoint></gazebo>'
    made = names(link('calf', None), link('foot', None), joint('j', 'calf', 'foot'), keep)
    assert made['foot'] == ['foot_collision']


def test_nothing_is_merged_into_the_world():
    made = names(link('world'), link('base', None), joint('bolt', 'world', 'base'))
    assert made['base'] == ['base_collision']


def test_a_link_that_moves_is_not_merged():
    made = names(link('thigh', None), link('calf', None), joint('knee', 'thigh', 'calf', 'revolute'))
    assert made['calf'] == ['calf_collision']
