# SPDX-License-Identifier: Apache-2.0
"""Promises of a world of Gazebo: it is used only where it has what the robot needs, and the message says what to add."""

from dataclasses import replace
from pathlib import Path

import pytest
from makers import REPOSITORY

from sim2real_ros.description.gazebo_names import GENERATIONS, HARMONIC, IGNITION
from sim2real_ros.description.world import world
from sim2real_ros.errors import DocumentError, NotFoundError
from sim2real_ros.robot import load_robot

FLAT = (REPOSITORY / 'config' / 'gazebo' / 'flat.sdf').read_text()


@pytest.fixture(scope='module')
def go2():
    return load_robot('go2')


def changed(tmp_path: Path, old: str, new: str) -> str:
    path = tmp_path / 'mine.sdf'
    assert old in FLAT
    path.write_text(FLAT.replace(old, new))
    return str(path)


@pytest.mark.parametrize('names', GENERATIONS.values(), ids=lambda names: names.name)
def test_the_shipped_world_serves_every_generation_in_its_own_names(go2, names):
    made = world('flat', names, go2)
    assert made.name == 'flat'
    assert f'{names.system_class}::Imu' in made.text
    assert f'{names.system_file}-contact-system' in made.text


def test_a_world_without_imu_or_contacts_is_refused_with_the_line_to_add(go2, tmp_path):
    silent = changed(tmp_path, '<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>', '')
    with pytest.raises(DocumentError, match='add <plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>'):
        world(silent, HARMONIC, go2)


def test_a_robot_without_feet_or_imu_needs_neither_system(tmp_path):
    arm = load_robot(REPOSITORY / 'test' / 'models' / 'arm7.yaml')
    path = Path(changed(tmp_path, '<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>', ''))
    path.write_text(path.read_text().replace('<plugin filename="gz-sim-contact-system" name="gz::sim::systems::Contact"/>', ''))
    assert world(str(path), HARMONIC, arm).name == 'flat'


def test_a_world_of_fortress_is_taken_as_it_is(go2, tmp_path):
    path = tmp_path / 'mine.sdf'
    path.write_text(FLAT.replace('gz-sim-', 'ignition-gazebo-').replace('gz::sim::', 'ignition::gazebo::'))
    assert world(str(path), IGNITION, go2).text == path.read_text()


def test_steps_longer_than_a_period_of_the_joint_states_are_refused(go2, tmp_path):
    with pytest.raises(DocumentError, match=r'max_step_size 0\.004 s is longer than a period .* 500'):
        world(changed(tmp_path, '<max_step_size>0.001<', '<max_step_size>0.004<'), HARMONIC, go2)
    fast = replace(go2, sensors=go2.sensors.model_copy(update={'rate_hz': 2000.0}))
    with pytest.raises(DocumentError, match='2000'):
        world('flat', HARMONIC, fast)


@pytest.mark.parametrize(
    ('text', 'part'), [('<sdf', 'not valid XML'), ('<robot/>', 'this is no world'), ('<sdf><model/></sdf>', 'this is no world')]
)
def test_a_file_that_is_no_world_is_refused(go2, tmp_path, text, part):
    path = tmp_path / 'mine.sdf'
    path.write_text(text)
    with pytest.raises(DocumentError, match=part):
        world(str(path), HARMONIC, go2)


def test_a_world_that_is_not_there_is_told_with_the_shipped_ones(go2):
    with pytest.raises(NotFoundError, match='one of the shipped ones: flat'):
        world('moon', HARMONIC, go2)
