# SPDX-License-Identifier: Apache-2.0
"""Promises of `sim2real schema`: the documented schema is the one in force, and shipped files obey it."""

from __future__ import annotations

import json

import pytest
from makers import REPOSITORY

from sim2real_ros.tools.cli import main


def test_the_schema_of_the_robot_file_in_docs_is_the_one_in_force(capsys):
    assert main(['schema', 'robot']) == 0
    assert capsys.readouterr().out == (REPOSITORY / 'docs' / 'robot.schema.json').read_text(encoding='utf-8'), (
        'write it anew: sim2real schema robot > docs/robot.schema.json'
    )


def test_without_a_name_it_is_that_of_the_contract(capsys):
    assert main(['schema']) == 0
    assert json.loads(capsys.readouterr().out)['title'] == 'ContractFile'


def test_another_document_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(['schema', 'urdf'])
    assert "invalid choice: 'urdf'" in capsys.readouterr().err
