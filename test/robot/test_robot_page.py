# SPDX-License-Identifier: Apache-2.0
"""Promises of docs/robot.md: no field is left out, defaults are those in force, the worked example is the file it shows."""

from __future__ import annotations

import re

import pytest
import yaml
from makers import REPOSITORY

from sim2real_ros.document import validate
from sim2real_ros.robot import schema
from sim2real_ros.robot.schema import RobotFile

PAGE = (REPOSITORY / 'docs' / 'robot.md').read_text(encoding='utf-8')
SECTIONS = [part for part in vars(schema).values() if isinstance(part, type) and issubclass(part, schema.Section)]
FIELDS = [(section, field.alias or name) for section in SECTIONS for name, field in section.model_fields.items()]


@pytest.mark.parametrize(('section', 'name'), FIELDS, ids=lambda part: getattr(part, '__name__', part))
def test_every_field_is_on_the_page(section, name):
    assert re.search(rf'[`.]{name}[`.]', PAGE)


@pytest.mark.parametrize(
    'name', [name for name, field in schema.MonitorsSection.model_fields.items() if isinstance(field.default, float | int)]
)
def test_defaults_of_the_monitors_are_those_in_force(name):
    (row,) = [line for line in PAGE.splitlines() if line.startswith('|') and f'`{name}`' in line]
    names, defaults = (row.split('|')[i].replace('*', '').replace('`', '') for i in (1, -2))
    shown = re.split('[;,]', defaults)[re.split('[;,]', names.replace(' ', '')).index(name)]
    assert yaml.safe_load(shown) == schema.MonitorsSection.model_fields[name].default


def test_the_worked_example_is_the_file_of_the_arm():
    (example,) = [block for block in re.findall(r'```yaml\n(.*?)```', PAGE, re.DOTALL) if 'name: arm7' in block]
    shown = yaml.safe_load(example)
    assert shown == yaml.safe_load((REPOSITORY / 'test' / 'models' / 'arm7.yaml').read_text())
    validate(RobotFile, shown, 'docs/robot.md')
