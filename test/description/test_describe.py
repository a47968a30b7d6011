# SPDX-License-Identifier: Apache-2.0
"""Promises of a `robot_description`: what a backend needs is added, and everything of the user's own robot survives."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from makers import REPOSITORY

from sim2real_ros.description import for_gazebo, for_ros2_control, gazebo
from sim2real_ros.description.gazebo_names import FORTRESS, GENERATIONS, HARMONIC, IGNITION
from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.robot import load_robot

PARAMETERS = Path('/somewhere/controllers.yaml')
SNAPSHOTS = Path(__file__).parent / 'snapshots'
MODELS = REPOSITORY / 'test' / 'models'
with_mujoco = pytest.mark.skipif(importlib.util.find_spec('mujoco') is None, reason='needs the extra `sim`')


@pytest.fixture(scope='module')
def go2():
    return load_robot('go2')


@pytest.fixture(scope='module')
def arm():
    return load_robot(MODELS / 'arm7.yaml')


def plain(element: ElementTree.Element) -> str:
    """Return an element in a form that depends on nothing but its content."""
    return ElementTree.canonicalize(ElementTree.tostring(element, encoding='unicode'), strip_text=True)


def split(description, urdf: Path) -> tuple[list[str], list[ElementTree.Element]]:
    """Return the elements that a description shares with a URDF, and those that were added."""
    own = [plain(element) for element in ElementTree.parse(urdf).getroot()]
    elements = [e for e in ElementTree.fromstring(description.text) if isinstance(e.tag, str)]
    return [plain(e) for e in elements if plain(e) in own], [e for e in elements if plain(e) not in own]


def with_urdf(robot, tmp_path: Path, more: str, old: str = '</robot>'):
    """Return the robot with text added to its URDF."""
    path = tmp_path / 'robot.urdf'
    path.write_text(robot.urdf.read_text().replace(old, f'{more}{old}', 1))
    return replace(robot, urdf=path)


ROBOTS = {'go2': 'go2', 'arm7': MODELS / 'arm7.yaml', 'humanoid29': MODELS / 'humanoid29.yaml'}
BACKENDS = {
    'gazebo': lambda robot: for_gazebo(robot, HARMONIC, PARAMETERS),
    'ros2_control': lambda robot: for_ros2_control(robot, 'mock'),
}


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', ROBOTS)
def test_every_element_of_the_urdf_survives_unchanged(name, backend):
    robot = load_robot(ROBOTS[name])
    kept, added = split(BACKENDS[backend](robot), robot.urdf)
    assert kept == [plain(element) for element in ElementTree.parse(robot.urdf).getroot()]
    assert added


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', ['go2', 'arm7'])
def test_what_is_added_is_what_the_snapshot_says(name, backend):
    """After a change that is meant: delete the snapshot, run the test, read the new one."""
    robot = load_robot(ROBOTS[name])
    root = ElementTree.Element('added')
    root.extend(split(BACKENDS[backend](robot), robot.urdf)[1])
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding='unicode').replace('\n\n', '\n') + '\n'
    snapshot = SNAPSHOTS / f'{name}.{backend}.xml'
    if not snapshot.is_file():
        snapshot.write_text(text)
        pytest.fail(f'{snapshot} was missing and has been written; read it, then run again')
    assert text == snapshot.read_text()


@with_mujoco
@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('name', ROBOTS)
def test_joints_limits_masses_and_inertias_are_the_same_to_a_simulator(name, backend):
    import mujoco

    robot = load_robot(ROBOTS[name])
    before = mujoco.MjModel.from_xml_path(str(robot.urdf))
    after = mujoco.MjModel.from_xml_string(BACKENDS[backend](robot).text)
    for field in ('jnt_range', 'jnt_axis', 'jnt_pos', 'body_mass', 'body_inertia', 'body_ipos', 'dof_damping'):
        theirs, ours = getattr(before, field), getattr(after, field)
        assert np.array_equal(theirs, ours[-len(theirs) :]), field  # a fixed base has one body more, the first
    assert [before.joint(i).name for i in range(before.njnt)] == [after.joint(i).name for i in range(after.njnt)]


def test_every_joint_takes_effort_within_its_limit_and_tells_position_velocity_and_effort(go2):
    block = ElementTree.fromstring(for_gazebo(go2, HARMONIC, PARAMETERS).text).find('ros2_control')
    assert [joint.get('name') for joint in block.findall('joint')] == list(go2.joints)
    for joint, effort in zip(block.findall('joint'), go2.limits.effort, strict=True):
        (command,) = joint.findall('command_interface')
        assert command.get('name') == 'effort'
        assert [float(param.text) for param in command.findall('param')] == [-effort, effort]
        assert [state.get('name') for state in joint.findall('state_interface')] == ['position', 'velocity', 'effort']


@pytest.mark.parametrize(('pose', 'expected'), [('', 'lying'), ('stand', 'stand')])
def test_the_robot_begins_in_the_start_pose_or_in_the_one_that_is_asked_for(go2, pose, expected):
    block = ElementTree.fromstring(for_gazebo(go2, HARMONIC, PARAMETERS, start=pose).text).find('ros2_control')
    values = [float(param.text) for param in block.findall('joint/state_interface[@name="position"]/param')]
    assert values == go2.pose(expected).tolist()


def test_a_pose_that_the_robot_does_not_have_is_refused_with_those_it_has(go2):
    with pytest.raises(NotFoundError, match='its poses are stand, lying'):
        for_gazebo(go2, HARMONIC, PARAMETERS, start='sitting')


@pytest.mark.parametrize('names', GENERATIONS.values(), ids=lambda names: names.name)
def test_each_generation_of_gazebo_gets_its_own_names(go2, names):
    root = ElementTree.fromstring(for_gazebo(go2, names, PARAMETERS).text)
    assert root.findtext('ros2_control/hardware/plugin') == names.hardware
    plugin = root.find(f'gazebo/plugin[@name="{names.plugin}"]')
    assert plugin.get('filename') == names.library
    assert plugin.findtext('parameters') == str(PARAMETERS)
    assert root.find(f'gazebo/plugin[@filename="{names.system_file}-odometry-publisher-system"]') is not None


def test_the_imu_tells_its_orientation_in_the_world_and_is_the_sensor_that_ros2_control_reads(go2):
    root = ElementTree.fromstring(for_gazebo(go2, HARMONIC, PARAMETERS).text)
    sensor = root.find('gazebo[@reference="imu_link"]/sensor')
    assert sensor.findtext('imu/orientation_reference_frame/localization') == 'ENU'
    assert sensor.get('name') == root.find('ros2_control/sensor').get('name')
    assert float(sensor.findtext('update_rate')) == go2.sensors.rate_hz
    assert len(root.findall('ros2_control/sensor/state_interface')) == 10


def test_a_namespace_goes_to_the_controller_manager_and_to_the_topics_of_the_simulator(go2):
    root = ElementTree.fromstring(for_gazebo(go2, HARMONIC, PARAMETERS, namespace='dog').text)
    assert root.findtext('gazebo/plugin/ros/namespace') == '/dog'
    assert root.findtext('gazebo[@reference="FL_foot"]/sensor/topic') == '/dog/contacts/FL_foot'


def test_a_fixed_base_is_bolted_to_the_world_and_has_neither_imu_nor_odometry(arm):
    root = ElementTree.fromstring(for_gazebo(arm, HARMONIC, PARAMETERS).text)
    assert root.find('joint[@name="world_joint"]/child').get('link') == 'base_link'
    assert root.find('.//sensor') is None
    assert len(root.findall('gazebo')) == 1


def test_a_urdf_that_is_bolted_down_already_is_not_bolted_twice(arm, tmp_path):
    fixed = '<link name="world"/><joint name="bolt" type="fixed"><parent link="world"/><child link="base_link"/></joint>'
    root = ElementTree.fromstring(for_gazebo(with_urdf(arm, tmp_path, fixed), HARMONIC, PARAMETERS).text)
    assert len(root.findall('joint[@type="fixed"]/parent[@link="world"]')) == 1


# --- what a user's URDF may have already

OWN = """
  <ros2_control name="motors" type="system"><hardware><plugin>maker/Bus</plugin></hardware>
    {joints}
  </ros2_control>
  <ros2_control name="lamp" type="system"><hardware><plugin>maker/Lamp</plugin></hardware><gpio name="lamp"/></ros2_control>
  <gazebo reference="FL_foot"><mu1>0.9</mu1><sensor name="old_contact" type="contact"/></gazebo>
  <gazebo><plugin filename="gz_ros2_control-system" name="gz_ros2_control::GazeboSimROS2ControlPlugin"/></gazebo>
  <gazebo reference="imu_link"><sensor name="old" type="imu"/></gazebo>
  <transmission name="t"/>
"""
STATES = ''.join(f'<state_interface name="{state}"/>' for state in ('position', 'velocity'))


def own(robot, command: str = 'effort', joints=None) -> str:
    rows = [
        f'<joint name="{joint}"><command_interface name="{command}"/>{STATES}</joint>'
        for joint in (robot.joints if joints is None else joints)
    ]
    return OWN.format(joints=''.join(rows))


def test_own_blocks_for_the_same_joints_plugin_and_imu_are_replaced_and_told(go2, tmp_path):
    described = for_gazebo(with_urdf(go2, tmp_path, own(go2)), HARMONIC, PARAMETERS)
    root = ElementTree.fromstring(described.text)
    assert [block.get('name') for block in root.findall('ros2_control')] == ['lamp', 'go2']
    assert len(root.findall('gazebo/plugin[@filename="gz_ros2_control-system"]')) == 1
    assert len(root.findall('gazebo[@reference="imu_link"]')) == 1
    assert root.findtext('gazebo[@reference="FL_foot"]/mu1') == '0.9'
    assert 'old' not in ''.join(sensor.get('name') for sensor in root.findall('gazebo/sensor'))
    assert root.find('transmission') is not None
    assert len(described.notes) == 4
    assert 'replaced <ros2_control name="motors"> (maker/Bus)' in described.notes[0]


def test_describing_a_description_again_changes_nothing(go2, tmp_path):
    once = for_gazebo(go2, HARMONIC, PARAMETERS)
    path = tmp_path / 'once.urdf'
    path.write_text(once.text)
    twice = for_gazebo(replace(go2, urdf=path), HARMONIC, PARAMETERS)
    assert sorted(map(plain, ElementTree.fromstring(twice.text))) == sorted(map(plain, ElementTree.fromstring(once.text)))


def test_own_hardware_that_takes_effort_is_kept(go2, tmp_path):
    robot = with_urdf(go2, tmp_path, own(go2))
    described = for_ros2_control(robot)
    assert described.notes == ('kept <ros2_control name="motors">',)
    assert split(described, robot.urdf)[1] == []


def test_own_hardware_that_lacks_something_is_refused_joint_by_joint(go2, tmp_path):
    urdf = own(go2, 'position', go2.joints[:2])
    with pytest.raises(DocumentError) as error:
        for_ros2_control(with_urdf(go2, tmp_path, urdf))
    assert error.value.faults[0] == 'joint FL_hip_joint has no command effort interface in <ros2_control>'
    assert error.value.faults[2] == 'joint FL_calf_joint is in no <ros2_control> block'
    assert len(error.value.faults) == 12


def test_without_own_hardware_a_class_must_be_named(go2):
    with pytest.raises(DocumentError, match='name the class of your hardware, or mock'):
        for_ros2_control(go2)
    assert '<plugin>maker/Bus</plugin>' in for_ros2_control(go2, 'maker/Bus').text


def test_a_mock_measures_a_level_robot_at_rest_in_its_start_pose(go2):
    sensor = ElementTree.fromstring(for_ros2_control(go2, 'mock').text).find('ros2_control/sensor')
    rest = {state.get('name'): float(state.findtext('param')) for state in sensor}
    assert {name: value for name, value in rest.items() if value} == {'orientation.w': 1.0, 'linear_acceleration.z': 9.81}


# --- what a file may be


@pytest.mark.parametrize(
    ('text', 'part'),
    [
        ('<robot', 'not valid XML'),
        ('<sdf/>', 'starts with <robot>'),
        ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="x"/></robot>', 'this is xacro'),
    ],
)
def test_a_file_that_cannot_be_described_is_refused_with_what_to_do(go2, tmp_path, text, part):
    path = tmp_path / 'robot.urdf'
    path.write_text(text)
    with pytest.raises(DocumentError, match=part):
        for_ros2_control(replace(go2, urdf=path), 'mock')


IMPOSSIBLE = (
    (
        '<parent link="RL_calf"/>',
        '<parent link="paw"/>',
        'joint RL_foot_joint: its parent link "paw" is not there; links are base',
    ),
    ('<parent link="FL_thigh"/>', '<parent link="FL_calf"/>', 'joint FL_calf_joint: its parent is its own child, FL_calf'),
    ('<axis xyz="1 0 0"/>', '<axis xyz="0 0 0"/>', 'joint FL_hip_joint: axis xyz="0 0 0" is no direction'),
    ('<axis xyz="0 1 0"/>', '<axis xyz="a b"/>', 'joint FL_thigh_joint: axis xyz="a b" is no direction'),
    ('<mass value="6.921"/>', '<mass value="-6.9"/>', 'link base_link: mass value="-6.9" is not above 0 kg'),
)


@pytest.mark.parametrize('describe', [for_ros2_control, lambda robot, _: for_gazebo(robot, HARMONIC, PARAMETERS)])
def test_a_robot_that_cannot_be_is_refused_with_all_that_is_wrong(go2, tmp_path, describe):
    text = go2.urdf.read_text()
    for good, wrong, _ in IMPOSSIBLE:
        assert good in text
        text = text.replace(good, wrong, 1)
    (tmp_path / 'robot.urdf').write_text(text)
    with pytest.raises(DocumentError) as error:
        describe(replace(go2, urdf=tmp_path / 'robot.urdf'), 'mock')
    assert len(error.value.faults) == len(IMPOSSIBLE)
    for _, _, said in IMPOSSIBLE:
        assert any(fault.startswith(said) for fault in error.value.faults), said


@pytest.mark.parametrize(
    ('links', 'joints', 'said'),
    [
        ('ab', ('ab', 'ba'), 'the joints run in a circle'),
        ('abc', ('ab',), 'the links do not hang together: a, c are'),
        ('abc', ('ac', 'bc'), 'link c is the child of 2 joints'),
    ],
)
def test_links_that_are_no_tree_are_refused(go2, tmp_path, links, joints, said):
    elements = [f'<link name="{name}"/>' for name in links]
    elements += [f'<joint name="{p}{c}" type="fixed"><parent link="{p}"/><child link="{c}"/></joint>' for p, c in joints]
    (tmp_path / 'robot.urdf').write_text(f'<robot>{"".join(elements)}</robot>')
    with pytest.raises(DocumentError, match=said):
        for_ros2_control(replace(go2, urdf=tmp_path / 'robot.urdf'), 'mock')


def test_a_frame_without_mass_is_possible_where_it_is_fixed(go2, tmp_path):
    text = go2.urdf.read_text().replace(
        '<link name="imu_link"/>', '<link name="imu_link"><inertial><mass value="0"/></inertial></link>'
    )
    assert 'mass value="0"' in text
    (tmp_path / 'robot.urdf').write_text(text)
    assert for_ros2_control(replace(go2, urdf=tmp_path / 'robot.urdf'), 'mock').text


def test_a_declared_but_unused_xacro_namespace_is_fine(go2, tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_text(go2.urdf.read_text().replace('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ', 1))
    assert 'FL_hip_joint' in for_ros2_control(replace(go2, urdf=path), 'mock').text


def test_comments_stay(go2, tmp_path):
    assert '<!-- measured -->' in for_ros2_control(with_urdf(go2, tmp_path, '<!-- measured -->'), 'mock').text


def test_a_foot_that_is_not_in_the_urdf_or_cannot_touch_is_named(go2):
    wrong = replace(go2, simulation=replace(go2.simulation, feet=('paw', 'imu_link')))
    with pytest.raises(DocumentError) as error:
        for_gazebo(wrong, HARMONIC, PARAMETERS)
    assert 'paw is no link; links are base_link' in error.value.faults[0]
    assert 'imu_link has no <collision>' in error.value.faults[1]


MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'


def meshes(robot, tmp_path: Path, name: str) -> str:
    (tmp_path / 'meshes').mkdir(exist_ok=True)
    text = for_ros2_control(with_urdf(robot, tmp_path, MESH.format(name), '</link>'), 'mock').text
    return next(ElementTree.fromstring(text).iter('mesh')).get('filename')


@pytest.mark.parametrize('name', ['package://go2_description/meshes/base.dae', 'file:///opt/base.stl', 'model://go2/base.stl'])
def test_a_mesh_with_a_scheme_stays_as_it_is(go2, tmp_path, name):
    assert meshes(go2, tmp_path, name) == name


def test_a_relative_mesh_is_found_from_wherever_the_description_is_read(go2, tmp_path):
    assert meshes(go2, tmp_path, 'meshes/base.stl') == (tmp_path / 'meshes' / 'base.stl').as_uri()


# --- which generation


@pytest.mark.parametrize(
    ('distribution', 'libraries', 'expected'),
    [
        ('jazzy', [], HARMONIC),
        ('', [], HARMONIC),
        ('lyrical', [], HARMONIC),
        ('humble', [], FORTRESS),
        ('humble', [FORTRESS.library], FORTRESS),
        ('humble', [IGNITION.library], IGNITION),
        ('humble', [IGNITION.library, FORTRESS.library], FORTRESS),
    ],
)
def test_the_generation_is_that_of_the_distribution_and_of_the_plugin_that_is_installed(
    tmp_path, distribution, libraries, expected
):
    (tmp_path / 'lib').mkdir()
    for library in libraries:
        (tmp_path / 'lib' / f'lib{library}.so').touch()
    assert gazebo('', {'ROS_DISTRO': distribution, 'AMENT_PREFIX_PATH': str(tmp_path)}) is expected


def test_a_generation_that_is_named_is_taken_and_an_unknown_one_refused():
    assert gazebo('ignition', {'ROS_DISTRO': 'jazzy'}) is IGNITION
    with pytest.raises(NotFoundError, match='harmonic, fortress, ignition'):
        gazebo('garden', {})
