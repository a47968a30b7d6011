# SPDX-License-Identifier: Apache-2.0
"""The launch files with the real `launch`, walked without starting a process, where it can be imported."""

import importlib.util
import runpy

import pytest
from makers import REPOSITORY

if importlib.util.find_spec('launch_ros') is None:
    pytest.skip('needs a ROS 2 with launch; it is in no wheel, see fake_launch.py', allow_module_level=True)

import launch_ros.actions  # noqa: E402

import launch  # noqa: E402
from sim2real_ros.bringup.options import GazeboOptions, Options, RobotOptions, defaults  # noqa: E402

FILES = {'sim.launch.py': Options, 'gazebo.launch.py': GazeboOptions, 'robot.launch.py': RobotOptions}


@pytest.mark.parametrize('file', FILES)
def test_every_entity_of_a_launch_file_can_be_made_and_visited(file, monkeypatch, tmp_path):
    monkeypatch.setattr('sim2real_ros.bringup.prerequisites.require', lambda *_: None)
    monkeypatch.setenv('ROS_HOME', str(tmp_path))
    description = runpy.run_path(str(REPOSITORY / 'launch' / file))['generate_launch_description']()
    assert [argument.name for argument in description.get_launch_arguments()] == list(defaults(FILES[file]))
    context = launch.LaunchContext()
    if file == 'gazebo.launch.py':
        context.launch_configurations['z'] = '0.2'
    made, entities = [], list(description.entities)
    while entities:
        entity = entities.pop(0)
        if isinstance(entity, launch.actions.ExecuteProcess):
            made.append(entity)
        else:
            entities = [*(entity.visit(context) or []), *entities]
    assert sum(isinstance(action, launch_ros.actions.Node) for action in made) >= 4
