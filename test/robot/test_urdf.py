# SPDX-License-Identifier: Apache-2.0
"""What is read from a URDF, and that the shipped one holds the robot's published figures."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import yaml
from makers import REPOSITORY
from transforms3d import euler, quaternions

from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.robot.urdf import read_joints, read_mounting

GO2 = REPOSITORY / 'urdf' / 'go2.urdf'
LEGS = {'FL': (1, 1), 'FR': (-1, 1), 'RL': (1, -1), 'RR': (-1, -1)}  # side, end
INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


@pytest.fixture(scope='module')
def facts(shared):
    path = shared / 'facts' / 'go2.yaml'
    if not path.is_file():
        pytest.skip('there is no shared/facts/go2.yaml beside the repository')
    return yaml.safe_load(path.read_text())


@pytest.fixture(scope='module')
def links():
    """(mass, centre of mass, inertia) by link name."""
    found = {}
    for link in ElementTree.parse(GO2).getroot().iter('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            found[link.get('name')] = (
                float(inertial.find('mass').get('value')),
                [float(x) for x in inertial.find('origin').get('xyz').split()],
                [float(inertial.find('inertia').get(key)) for key in INERTIA],
            )
    return found


def number(value, side, end):
    """Read a figure of the facts file, which may be an expression in the side and end of the leg."""
    return eval(value, {'__builtins__': {}}, {'side': side, 'end': end}) if isinstance(value, str) else value


def test_go2_weighs_15_017_kg(links):
    assert sum(mass for mass, _, _ in links.values()) == pytest.approx(15.017, abs=1e-9)


def test_go2_has_the_twelve_joints_leg_by_leg():
    expected = [f'{leg}_{part}_joint' for leg in LEGS for part in ('hip', 'thigh', 'calf')]
    assert [joint.name for joint in read_joints(GO2)] == expected


@pytest.mark.parametrize('leg', LEGS)
def test_go2_knee_has_the_smaller_of_the_published_limits(leg):
    knee = next(joint for joint in read_joints(GO2) if joint.name == f'{leg}_calf_joint')
    assert (knee.effort, knee.velocity) == (35.55, 20.07)
    assert (knee.lower, knee.upper) == (-2.7227, -0.83776)


@pytest.mark.parametrize('leg', LEGS)
def test_go2_hip_and_thigh_limits(leg):
    joints = {joint.name: joint for joint in read_joints(GO2)}
    hip, thigh = joints[f'{leg}_hip_joint'], joints[f'{leg}_thigh_joint']
    assert (hip.lower, hip.upper, hip.effort, hip.velocity) == (-1.0472, 1.0472, 23.7, 30.1)
    reach = (-1.5708, 3.4907) if leg[0] == 'F' else (-0.5236, 4.5379)
    assert (thigh.lower, thigh.upper, thigh.effort, thigh.velocity) == (*reach, 23.7, 30.1)


@pytest.mark.parametrize('leg', LEGS)
@pytest.mark.parametrize('part', ['hip', 'thigh', 'calf'])
def test_go2_joint_limits_are_those_of_the_facts(facts, leg, part):
    joint = next(j for j in read_joints(GO2) if j.name == f'{leg}_{part}_joint')
    limits = dict(facts[part]['limits'])
    for key in ('lower', 'upper'):
        if isinstance(limits[key], str):  # '-1.5708 front, -0.5236 rear'
            by_end = {end: float(value) for value, end in (text.split() for text in limits[key].split(','))}
            limits[key] = by_end['front' if leg[0] == 'F' else 'rear']
    assert {key: getattr(joint, key) for key in limits} == limits


@pytest.mark.parametrize('leg', LEGS)
@pytest.mark.parametrize('part', ['hip', 'thigh', 'calf'])
def test_go2_leg_masses_and_inertias_are_those_of_the_facts(facts, links, leg, part):
    side, end = LEGS[leg]
    mass, com, inertia = links[f'{leg}_{part}']
    assert mass == facts[part]['mass']
    assert com == pytest.approx(number(facts[part]['com'], side, end), abs=1e-12)
    assert inertia == pytest.approx([number(facts[part]['inertia'][key], side, end) for key in INERTIA], abs=1e-12)


def test_go2_trunk_and_feet_are_those_of_the_facts(facts, links):
    mass, com, inertia = links['base_link']
    assert (mass, com) == (facts['base']['mass'], facts['base']['com'])
    assert inertia == [facts['base']['inertia'][key] for key in INERTIA]
    for leg in LEGS:
        mass, com, inertia = links[f'{leg}_foot']
        assert (mass, com) == (facts['foot']['mass'], [0, 0, 0])
        each = facts['foot']['inertia_each_axis']
        assert inertia == [each, 0, 0, each, 0, each]


@pytest.mark.parametrize('leg', LEGS)
@pytest.mark.parametrize('part', ['hip', 'thigh', 'calf'])
def test_go2_joint_origins_and_axes_are_those_of_the_facts(facts, leg, part):
    joint = ElementTree.parse(GO2).getroot().find(f"joint[@name='{leg}_{part}_joint']")
    origin = [float(x) for x in joint.find('origin').get('xyz').split()]
    assert origin == pytest.approx(number(facts[part]['origin'], *LEGS[leg]), abs=1e-12)
    assert [float(x) for x in joint.find('axis').get('xyz').split()] == facts[part]['axis']


def test_go2_needs_no_other_file():
    text = GO2.read_text()
    assert '<mesh' not in text
    assert 'package://' not in text
    assert 'filename' not in text


def test_go2_inertias_can_exist(links):
    """Every inertia is positive definite and obeys the triangle inequality."""
    for name, (mass, _, (ixx, ixy, ixz, iyy, iyz, izz)) in links.items():
        moments = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        assert mass > 0
        assert moments[0] > 0, name
        assert moments[2] <= moments[0] + moments[1] + 1e-9, name


def test_mujoco_reads_go2_with_the_same_mass_and_ranges():
    mujoco = pytest.importorskip('mujoco')
    spec = mujoco.MjSpec.from_file(str(GO2))
    spec.compiler.fusestatic = False
    spec.worldbody.first_body().add_freejoint()
    model = spec.compile()
    assert model.body_mass.sum() == pytest.approx(15.017, abs=1e-6)
    joints = read_joints(GO2)
    assert [model.joint(i).name for i in range(1, model.njnt)] == [joint.name for joint in joints]
    np.testing.assert_allclose(model.jnt_range[1:], [(joint.lower, joint.upper) for joint in joints], atol=1e-12)


def write(tmp_path, body, root='robot'):
    path = tmp_path / 'bot.urdf'
    path.write_text(f'<{root} name="bot"><link name="base"/><link name="arm"/>{body}</{root}>')
    return path


def joint_xml(name='j', kind='revolute', limit='<limit lower="-1" upper="2" velocity="3" effort="4"/>', origin=''):
    return f'<joint name="{name}" type="{kind}"><parent link="base"/><child link="arm"/>{origin}{limit}</joint>'


def test_fixed_and_transmission_joints_are_not_movable(tmp_path):
    path = write(tmp_path, joint_xml('f', 'fixed', '') + joint_xml() + '<transmission><joint name="j"/></transmission>')
    assert [joint.name for joint in read_joints(path)] == ['j']


def test_continuous_joint_has_no_range(tmp_path):
    (joint,) = read_joints(write(tmp_path, joint_xml(kind='continuous', limit='<limit velocity="3" effort="4"/>')))
    assert (joint.lower, joint.upper, joint.velocity, joint.effort) == (-math.inf, math.inf, 3.0, 4.0)


def test_limits_that_the_urdf_leaves_out_are_nan(tmp_path):
    (joint,) = read_joints(write(tmp_path, joint_xml(limit='<limit lower="-1" upper="2"/>')))
    assert math.isnan(joint.velocity)
    assert math.isnan(joint.effort)


def test_every_limit_that_is_no_number_is_listed(tmp_path):
    with pytest.raises(DocumentError) as caught:
        read_joints(write(tmp_path, joint_xml(limit='<limit lower="x" upper="inf" velocity="3" effort="nan"/>')))
    assert caught.value.faults == [
        'joint j: limit lower="x" is not a finite number',
        'joint j: limit upper="inf" is not a finite number',
        'joint j: limit effort="nan" is not a finite number',
    ]


@pytest.mark.parametrize(
    ('joints', 'said'),
    [
        (
            joint_xml('j', 'wibble'),
            'joint j: type "wibble" is none; types are revolute, continuous, prismatic, fixed, floating',
        ),
        (joint_xml() + joint_xml(), 'two joints are called j; rename all but one'),
        (joint_xml(''), r'the joint between the links base and arm has no name; add name="\.\.\."'),
        (joint_xml(limit='<limit lower="-1" upper="1"/><mimic joint="k"/>'), r'joint j follows another joint \(<mimic>\)'),
    ],
)
def test_joints_that_cannot_be_told_apart_or_driven_are_refused(tmp_path, joints, said):
    with pytest.raises(DocumentError, match=said):
        read_joints(write(tmp_path, joints))


@pytest.mark.parametrize(
    'part', ['<x:arg xmlns:x="http://www.ros.org/wiki/xacro" name="a"/>', joint_xml(limit='<limit lower="${-pi}" upper="1"/>')]
)
@pytest.mark.parametrize('name', ['bot.urdf.xacro', 'bot.urdf', 'bot.xacro'])
def test_xacro_is_told_with_the_command_that_expands_it(tmp_path, part, name):
    path = write(tmp_path, part).rename(tmp_path / name)
    command = {'bot.xacro': 'xacro bot.xacro > bot.urdf'}.get(name, 'xacro bot.urdf.xacro > bot.urdf')
    with pytest.raises(DocumentError, match=f'this is xacro; write a plain URDF first: {command}'):
        read_joints(path)


def test_urdf_without_movable_joint_is_refused(tmp_path):
    with pytest.raises(DocumentError, match='no movable joint'):
        read_joints(write(tmp_path, joint_xml(kind='fixed')))


def test_file_that_is_no_urdf_is_refused_by_its_root(tmp_path):
    with pytest.raises(DocumentError, match='starts with <robot>, this file with <mujoco>'):
        read_joints(write(tmp_path, '', root='mujoco'))


def test_broken_xml_is_refused(tmp_path):
    path = tmp_path / 'bot.urdf'
    path.write_text('<robot><link></robot>')
    with pytest.raises(DocumentError, match='not valid XML'):
        read_joints(path)


def test_missing_urdf_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r'cannot read the URDF .*gone\.urdf'):
        read_joints(tmp_path / 'gone.urdf')


def test_mounting_of_the_root_link_is_no_rotation(tmp_path):
    np.testing.assert_allclose(read_mounting(write(tmp_path, joint_xml()), 'base'), [0, 0, 0, 1], atol=1e-15)


def test_mounting_multiplies_the_fixed_joints_up_to_the_root(tmp_path):
    path = tmp_path / 'bot.urdf'
    path.write_text(
        '<robot name="bot"><link name="base"/><link name="plate"/><link name="imu"/>'
        '<joint name="a" type="fixed"><parent link="base"/><child link="plate"/><origin rpy="0.3 -0.4 1.2"/></joint>'
        '<joint name="b" type="fixed"><parent link="plate"/><child link="imu"/><origin xyz="1 2 3" '
        'rpy="3.14159265358979 0.1 0"/></joint></robot>'
    )
    expected = euler.euler2mat(0.3, -0.4, 1.2, 'sxyz') @ euler.euler2mat(math.pi, 0.1, 0, 'sxyz')
    x, y, z, w = read_mounting(path, 'imu')
    np.testing.assert_allclose(quaternions.quat2mat([w, x, y, z]), expected, atol=1e-12)


def test_mounting_on_a_moving_link_is_refused_with_the_joint(tmp_path):
    with pytest.raises(DocumentError, match='link "arm" moves against the base through the joint j'):
        read_mounting(write(tmp_path, joint_xml()), 'arm')


def test_mounting_on_an_unknown_link_lists_the_links(tmp_path):
    with pytest.raises(DocumentError, match=r'there is no link "imu" \(sensors.imu_frame\); links are base, arm'):
        read_mounting(write(tmp_path, joint_xml()), 'imu')
