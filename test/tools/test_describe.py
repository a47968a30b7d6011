# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real describe`: the document alone on stdout, the rest on stderr, and one sentence for a mistake."""

import importlib.util
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

from sim2real_ros.robot import load_robot
from sim2real_ros.tools.cli import main

with_mujoco = pytest.mark.skipif(importlib.util.find_spec('mujoco') is None, reason='needs the extra `sim`')


def test_gazebo_gets_a_description_and_beside_it_the_parameter_file_that_it_names(tmp_path):
    out = tmp_path / 'new' / 'dog.urdf'
    assert main(['describe', 'go2', '--for', 'gazebo', '-o', str(out), '--namespace', '/dog/']) == 0
    root = ElementTree.parse(out).getroot()
    parameters = out.with_name('dog.controllers.yaml')
    assert root.findtext('gazebo/plugin/parameters') == str(parameters)
    assert '/dog/effort_controller' in yaml.safe_load(parameters.read_text())


def test_a_parameter_file_of_the_users_own_is_named_and_left_alone(tmp_path, capsys):
    mine = tmp_path / 'mine.yaml'
    assert main(['describe', 'go2', '--for', 'gazebo', '--controllers', str(mine)]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).findtext('gazebo/plugin/parameters') == str(mine)
    assert not mine.exists()


def test_the_document_is_printed_alone(capsys):
    assert main(['describe', 'go2', '--for', 'controllers']) == 0
    assert yaml.safe_load(capsys.readouterr().out)['effort_controller']['ros__parameters']['joints'][0] == 'FL_hip_joint'
    assert main(['describe', 'go2', '--for', 'ros2_control', '--plugin', 'mock']) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).tag == 'robot'


@with_mujoco
def test_mujoco_gets_an_mjcf(capsys):
    assert main(['describe', 'go2', '--for', 'mujoco', '--pose', 'stand']) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).find('keyframe/key').get('name') == 'start'


@pytest.mark.parametrize('name', ['robot.yaml', 'go2.urdf', 'link.urdf'])
def test_what_a_document_is_made_from_is_never_overwritten(tmp_path, capsys, name):
    shipped = load_robot('go2')
    (tmp_path / 'go2.urdf').write_text(shipped.urdf.read_text())
    (tmp_path / 'robot.yaml').write_text(shipped.path.read_text().replace('../../urdf/go2.urdf', 'go2.urdf'))
    (tmp_path / 'link.urdf').symlink_to('go2.urdf')
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    arguments = ['describe', str(tmp_path / 'robot.yaml'), '--for', 'gazebo', '-o', str(tmp_path / name)]
    assert main(arguments) == 1
    assert 'is a file that the document is made from; give another name' in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_was_replaced_is_told_on_stderr(tmp_path, capsys):
    once = tmp_path / 'once.urdf'
    assert main(['describe', 'go2', '--for', 'gazebo', '-o', str(once)]) == 0
    robot = yaml.safe_load(load_robot('go2').path.read_text()) | {'urdf': str(once)}
    (tmp_path / 'dog.yaml').write_text(yaml.safe_dump(robot))
    assert main(['describe', str(tmp_path / 'dog.yaml'), '--for', 'ros2_control', '--plugin', 'maker/Bus']) == 0
    told = capsys.readouterr()
    assert 'replaced <ros2_control name="go2"' in told.err
    assert 'GazeboSimSystem' not in told.out


@pytest.mark.parametrize(
    ('arguments', 'part'),
    [
        (['go2', '--for', 'gazebo'], 'give -o FILE, or --controllers FILE'),
        (['go2', '--for', 'ros2_control'], 'name the class of your hardware'),
        (['go2', '--for', 'gazebo', '--gazebo', 'classic', '--controllers', 'x'], 'there are harmonic, fortress, ignition'),
        (['dog', '--for', 'controllers'], 'robot "dog" is neither'),
        (['go2', '--for', 'controllers', '-o', '/proc/none/x'], 'cannot write'),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_code_1(capsys, arguments, part):
    assert main(['describe', *arguments]) == 1
    assert part in capsys.readouterr().err
