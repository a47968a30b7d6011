# SPDX-License-Identifier: Apache-2.0
"""Promises of the launch files, seen on a stand-in for `launch`: what is started, in which order, with what."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from makers import REPOSITORY
from test_bringup import declared

pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')

import fake_launch  # noqa: E402
from walking import Walk, executable, parameter, parameters  # noqa: E402

from sim2real_ros.bringup.options import GazeboOptions, Options, RobotOptions, defaults  # noqa: E402
from sim2real_ros.errors import DependencyError, DocumentError, NotFoundError, RunError  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402

FILES = {'sim.launch.py': Options, 'gazebo.launch.py': GazeboOptions, 'robot.launch.py': RobotOptions}
OURS = ['watchdog_node', 'safety_node', 'policy_node']
GIVEN = {'gazebo.launch.py': {'z': '0.2'}}  # so that MuJoCo is not needed
TAIL = [
    'spawn joint_state_broadcaster', 'spawn imu_sensor_broadcaster', 'check sensors',
    'spawn effort_controller --inactive', 'check armed', 'spawn effort_controller', 'check active',
]  # fmt: skip


@pytest.fixture
def walk(monkeypatch, tmp_path):
    """Return a function that walks a launch file with launch arguments, as if everything were installed."""
    fake_launch.install(monkeypatch)
    monkeypatch.setattr('sim2real_ros.bringup.prerequisites.require', lambda *_: None)
    monkeypatch.setenv('ROS_HOME', str(tmp_path))
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    yield lambda file, codes=None, **given: Walk(file, codes or {}, GIVEN.get(file, {}) | given)
    sys.modules.pop('sim2real_ros.ros.launching', None)  # it holds the stand-ins


@pytest.mark.parametrize('file', FILES)
def test_every_option_is_a_launch_argument_with_its_default(walk, file):
    made = walk(file).context.launch_configurations
    assert made == {option: default for option, (default, _) in defaults(FILES[file]).items()} | GIVEN.get(file, {})


@pytest.mark.parametrize('file', FILES)
def test_every_launch_argument_is_in_the_pages_of_the_backends(file):
    pages = ''.join(page.read_text() for page in (REPOSITORY / 'docs' / 'backends').glob('*.md'))
    missing = [option for option in defaults(FILES[file]) if f'`{option}`' not in pages and f'`{option}:=' not in pages]
    assert missing == ['use_sim_time'] * (file == 'sim.launch.py')  # nobody needs to set it


def test_there_is_no_other_launch_file():
    assert {path.name for path in (REPOSITORY / 'launch').glob('*.launch.py')} == set(FILES)


# --- what is started, in which order


def test_the_embedded_simulator_is_started_with_our_nodes_at_once(walk):
    assert walk('sim.launch.py').names == [*OURS, 'mujoco_node']


def test_gazebo_is_started_step_by_step_our_nodes_first_and_the_effort_controller_last(walk):
    assert walk('gazebo.launch.py').names == [
        *OURS, 'robot_state_publisher', 'parameter_bridge', 'gz', 'check simulator',
        'create', 'check controller_manager', *TAIL,
    ]  # fmt: skip


@pytest.mark.parametrize('hardware', ['running', 'mock', 'maker/Bus'])
def test_on_a_robot_only_our_nodes_and_spawners_are_started_unless_the_hardware_is_named(walk, hardware):
    manager = [] if hardware == 'running' else ['robot_state_publisher', 'ros2_control_node']
    assert walk('robot.launch.py', hardware=hardware).names == [*OURS, *manager, 'check controller_manager', *TAIL]


@pytest.mark.parametrize('step', ['simulator', 'controller_manager', 'sensors', 'armed', 'active'])
def test_a_step_that_fails_ends_the_launch_with_its_name(walk, step):
    with pytest.raises(RunError, match=f'the start failed at "{step}"; bringup_check says why'):
        walk('gazebo.launch.py', {step: 1})


@pytest.mark.parametrize('given', [{'arm': 'false'}, {'read_only': 'true'}])
def test_who_does_not_want_to_arm_gets_an_inactive_controller(walk, given):
    made = walk('robot.launch.py', **given)
    assert made.names[-1] == 'check armed'
    assert parameter(made['check armed'], 'arm') is False
    assert ('watchdog_node' in made.names) == ('arm' in given)


def test_a_launch_that_is_being_ended_starts_nothing_more(walk, monkeypatch):
    monkeypatch.setattr(fake_launch.LaunchContext, 'is_shutdown', True)
    assert walk('robot.launch.py').names == [*OURS, 'check controller_manager']


@pytest.mark.parametrize('file', FILES)
def test_when_a_process_that_should_run_on_ends_the_launch_ends(walk, file):
    made = walk(file)
    for name in OURS:
        assert made.ends[name] == f'{name} ended'
    assert not {'create', 'spawner', 'bringup_check'} & set(made.ends)


# --- with what


@pytest.mark.parametrize('file', FILES)
def test_every_parameter_of_our_nodes_is_declared_by_them(walk, file):
    """A parameter that a node does not declare is ignored by ROS without a word."""
    ours = [action for action in walk(file).actions if getattr(action, 'node_package', '') == 'sim2real_ros']
    assert len(ours) >= 4
    for action in ours:
        assert set(parameters(action)) <= declared(executable(action)), executable(action)


def test_our_nodes_listen_to_the_imu_broadcaster_and_know_which_sensors_have_noise(walk):
    for file, noise in (('gazebo.launch.py', 'imu'), ('robot.launch.py', 'all')):
        made = walk(file)
        for name in (*OURS, 'check sensors'):
            assert made[name].remappings == [('imu/data', 'imu_sensor_broadcaster/imu')]
        assert parameter(made['safety_node'], 'sensor_noise') == noise
        assert parameter(made['safety_node'], 'sim_time') is (file == 'gazebo.launch.py')
        assert parameter(made['safety_node'], 'controller') == 'effort_controller'
    assert parameter(walk('robot.launch.py', hardware='mock')['safety_node'], 'sensor_noise') == 'none'


@pytest.mark.parametrize(
    ('file', 'given', 'backend', 'required'),
    [
        ('sim.launch.py', {}, 'simulated', None),
        ('gazebo.launch.py', {}, 'simulated', None),
        ('robot.launch.py', {}, 'hardware', True),
        ('robot.launch.py', {'hardware': 'maker/Bus'}, 'hardware', True),
        ('robot.launch.py', {'hardware': 'mock'}, 'simulated', True),
        ('robot.launch.py', {'require_passport': 'false'}, 'hardware', False),
        ('robot.launch.py', {'read_only': 'true'}, 'hardware', False),
    ],
)
def test_only_what_moves_motors_asks_for_a_passport(walk, file, given, backend, required):
    policy = walk(file, **given)['policy_node']
    assert (parameter(policy, 'backend'), parameter(policy, 'require_passport')) == (backend, required)


def test_a_controller_of_another_name_is_commanded_watched_checked_and_spawned(walk):
    made = walk('robot.launch.py', controller='legs', imu='driver/imu')
    assert made[OURS[0]].remappings == [('imu/data', 'driver/imu'), ('effort_controller/commands', 'legs/commands')]
    assert parameter(made['safety_node'], 'controller') == parameter(made['check armed'], 'controller') == 'legs'
    spawner = made['spawn legs --inactive']
    file = yaml.safe_load(Path(spawner.cmd[spawner.cmd.index('--param-file') + 1]).read_text())
    assert file['legs']['ros__parameters']['joints'] == list(load_robot('go2').joints)


def test_gazebo_reads_files_that_are_there_and_agree(walk):
    made = walk('gazebo.launch.py', namespace='dog', pose='stand')
    robot = ElementTree.fromstring(parameter(made['robot_state_publisher'], 'robot_description'))
    controllers = yaml.safe_load(Path(robot.findtext('gazebo/plugin/parameters')).read_text())
    assert controllers['/dog/effort_controller']['ros__parameters']['joints'] == list(load_robot('go2').joints)
    assert ElementTree.parse(made['gz'].cmd[-1]).find('world').get('name') in made['create'].cmd
    rows = yaml.safe_load(Path(parameter(made['parameter_bridge'], 'config_file')).read_text())
    assert rows[0]['ros_topic_name'] == '/clock'
    assert all(getattr(action, 'namespace', 'dog') == 'dog' for action in made.actions)


def test_the_server_of_gazebo_runs_unpaused_and_finds_the_plugin(walk, monkeypatch):
    monkeypatch.setenv('AMENT_PREFIX_PATH', '/opt/ros/jazzy')
    monkeypatch.setenv('GZ_SIM_SYSTEM_PLUGIN_PATH', '/mine')
    server = walk('gazebo.launch.py')['gz']
    assert {'-s', '-r'} <= set(server.cmd)
    folders = server.additional_env['GZ_SIM_SYSTEM_PLUGIN_PATH'].split(':')
    assert folders[0] == '/mine'
    assert '/opt/ros/jazzy/lib' in folders
    assert server.additional_env['GZ_SIM_RESOURCE_PATH'] == '/opt/ros/jazzy/share'


def test_a_window_is_a_process_of_its_own(walk):
    servers = [action.cmd for action in walk('gazebo.launch.py', headless='false').actions if action.cmd[0] == 'gz']
    assert [('-s' in words, '-g' in words) for words in servers] == [(True, False), (False, True)]


def test_fortress_gets_its_own_program_names_and_world(walk):
    made = walk('gazebo.launch.py', gazebo='ignition')
    assert made['ign'].cmd[:2] == ['ign', 'gazebo']
    world = Path(made['ign'].cmd[-1]).read_text()
    assert 'ignition::gazebo::systems::Imu' in world
    assert 'gz::sim' not in world
    assert 'ign_ros2_control/IgnitionSystem' in parameter(made['robot_state_publisher'], 'robot_description')


def test_humble_hands_the_description_to_the_controller_manager_as_a_parameter(walk, monkeypatch):
    assert parameter(walk('robot.launch.py', hardware='mock')['ros2_control_node'], 'robot_description') is None
    monkeypatch.setenv('ROS_DISTRO', 'humble')
    assert '<robot' in parameter(walk('robot.launch.py', hardware='mock')['ros2_control_node'], 'robot_description')


def test_a_text_that_looks_like_a_number_stays_a_text(walk):
    (values,) = walk('sim.launch.py', policy='12')['policy_node'].parameters
    assert (values['policy'].value, values['policy'].value_type) == ('12', str)


def test_a_parameter_file_goes_to_our_nodes_alone_and_wins(walk):
    made = walk('robot.launch.py', hardware='mock', params_file='mine.yaml')
    assert made['safety_node'].parameters[-1] == 'mine.yaml'
    assert 'mine.yaml' not in made['ros2_control_node'].parameters


@pytest.mark.skipif(importlib.util.find_spec('mujoco') is None, reason='needs the extra `sim`')
@pytest.mark.parametrize(('pose', 'low', 'high'), [('', 0.1, 0.2), ('stand', 0.3, 0.4)])
def test_the_robot_is_spawned_just_above_the_ground(walk, pose, low, high):
    words = walk('gazebo.launch.py', pose=pose, z='')['create'].cmd
    assert low < float(words[words.index('-z') + 1]) < high


# --- what is refused before anything is started


@pytest.mark.parametrize(
    ('file', 'given', 'error', 'part'),
    [
        ('gazebo.launch.py', {'gazebo': 'classic'}, NotFoundError, 'harmonic, fortress, ignition'),
        ('gazebo.launch.py', {'pose': 'sitting'}, NotFoundError, 'its poses are stand, lying'),
        (
            'gazebo.launch.py',
            {'world': 'moon'},
            NotFoundError,
            'world "moon" is neither a path nor one of the shipped ones: flat',
        ),
        ('gazebo.launch.py', {'z': 'high'}, DocumentError, 'z is "high"'),
        ('gazebo.launch.py', {'x': 'far'}, ValueError, 'x is "far"'),
        ('robot.launch.py', {'hardware': 'urdf'}, DocumentError, 'it has no <ros2_control> block'),
        ('robot.launch.py', {'arm': 'maybe'}, ValueError, 'arm is "maybe"; true or false'),
        ('robot.launch.py', {'robot': 'cat'}, NotFoundError, 'robot "cat"'),
    ],
)
def test_a_wrong_argument_starts_nothing(walk, file, given, error, part):
    with pytest.raises(error, match=part):
        walk(file, **given)


def test_what_is_not_installed_is_told_before_anything_is_started(monkeypatch, tmp_path):
    fake_launch.install(monkeypatch)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    for file in ('gazebo.launch.py', 'robot.launch.py'):
        with pytest.raises(DependencyError, match='sudo apt install .*ros-jazzy-controller-manager'):
            Walk(file, {}, {})
    sys.modules.pop('sim2real_ros.ros.launching', None)
