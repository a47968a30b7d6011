# SPDX-License-Identifier: Apache-2.0
"""Promises of the files for other programs in `config/`: they parse, and name topics and services that we have."""

import json
import re

import pytest
import yaml
from makers import REPOSITORY

from sim2real_ros.safety.modes import OPERATOR

FOXGLOVE = REPOSITORY / 'config' / 'foxglove' / 'sim2real.json'
RVIZ = REPOSITORY / 'config' / 'rviz' / 'sim2real.rviz'
TOPICS = {
    '/robot_description',
    '/joint_states',
    '/odom',
    '/cmd_vel',
    '/effort_controller/commands',
    '/safety/mode',
    '/diagnostics',
}


def panels(tree) -> list[str]:
    return [tree] if isinstance(tree, str) else [*panels(tree['first']), *panels(tree['second'])]


def test_every_panel_of_the_foxglove_layout_is_configured_and_shown():
    layout = json.loads(FOXGLOVE.read_text())
    assert sorted(panels(layout['layout'])) == sorted(layout['configById'])


def test_every_service_of_the_foxglove_layout_is_one_of_the_safety_node():
    services = {p['serviceName'] for p in json.loads(FOXGLOVE.read_text())['configById'].values() if 'serviceName' in p}
    assert services
    assert services <= {f'/safety_node/{event.value}' for event in OPERATOR}


@pytest.mark.parametrize('file', [FOXGLOVE, RVIZ], ids=lambda path: path.name)
def test_every_topic_is_one_that_is_published(file):
    found = {
        re.match(r'/[\w/]+', topic).group()
        for topic in re.findall(r'"?[Tt]opic\w*"?: "?(/[^"\n]+)|value": "(/[^"]+)', file.read_text())
        for topic in topic
        if topic
    }
    found |= set(re.findall(r'Value: (/\S+)', file.read_text()))
    assert found
    assert found <= TOPICS


def test_the_rviz_configuration_parses():
    assert yaml.safe_load(RVIZ.read_text())['Visualization Manager']['Displays']
