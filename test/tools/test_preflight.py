# SPDX-License-Identifier: Apache-2.0
"""Promises of the tool `sim2real preflight` that need no running stack: consent, and arguments that make no sense."""

import argparse
import builtins
from types import SimpleNamespace

import pytest

from sim2real_ros.errors import NotFoundError
from sim2real_ros.preflight.finding import Finding, Level
from sim2real_ros.robot import load_robot
from sim2real_ros.tools import preflight
from sim2real_ros.tools.cli import main

ROS = pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')
ROBOT = load_robot('go2')
ASKED = argparse.Namespace(namespace='', yes=False)
FINE = [Finding('nodes', Level.OK, 'fine'), Finding('rivals', Level.WARNING, 'odd')]


@pytest.mark.parametrize('answer', ['', 'n', 'no', 'maybe', 'yess'])
def test_no_joint_moves_without_a_clear_yes(monkeypatch, answer):
    monkeypatch.setattr(builtins, 'input', lambda: answer)
    (finding,) = preflight._wiggle(ROBOT, ASKED, FINE)
    assert (finding.level, finding.text) == (Level.SKIPPED, 'no joint was wiggled: you did not consent')


def test_no_joint_moves_where_nobody_can_answer(monkeypatch):
    def nobody():
        raise EOFError

    monkeypatch.setattr(builtins, 'input', nobody)
    (finding,) = preflight._wiggle(ROBOT, ASKED, FINE)
    assert finding.level is Level.SKIPPED


def test_no_joint_moves_and_nobody_is_asked_while_anything_is_refused(monkeypatch):
    monkeypatch.setattr(builtins, 'input', lambda: pytest.fail('asked'))
    (finding,) = preflight._wiggle(ROBOT, argparse.Namespace(namespace='', yes=True), [Finding('imu', Level.REFUSED, 'silent')])
    assert (finding.level, 'mend what is refused' in finding.text) == (Level.SKIPPED, True)


def test_the_robot_is_that_of_the_safety_node_unless_another_is_given():
    running = SimpleNamespace(parameters={'robot': 'go2', 'profile': 'first_steps'})
    assert preflight._robot(running, '').profile == 'first_steps'
    assert preflight._robot(SimpleNamespace(parameters={}), 'go2').name == 'go2'
    with pytest.raises(NotFoundError, match='safety_node does not answer'):
        preflight._robot(SimpleNamespace(parameters={}), '')


@pytest.mark.parametrize('seconds', ['0', '-1', 'nan', 'inf', 'long'])
def test_a_time_that_cannot_be_watched_is_refused(capsys, seconds):
    with pytest.raises(SystemExit) as end:
        main(['preflight', '--seconds', seconds])
    assert end.value.code == 2
    assert f'"{seconds}" is no number of seconds from 0.5 to 60' in capsys.readouterr().err
