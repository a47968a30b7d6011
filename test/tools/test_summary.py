# SPDX-License-Identifier: Apache-2.0
"""Promises of the summary: it says that the robot walked only if the trace shows that it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from makers import make_contract

from sim2real_ros.errors import RunError
from sim2real_ros.sim.verdict import SETTLE_S
from sim2real_ros.tools.summary import Segment, summarise

DT = 0.01
CONTRACT = make_contract()


class Walk:
    """A made-up trace of a level robot at 100 Hz that moves as told, in its own frame."""

    def __init__(self, seconds: float = 10.0, yaw: float = 0.0) -> None:
        k = round(seconds / DT)
        self.time = DT * np.arange(k)
        self.qpos, self.qvel = np.zeros((k, 19)), np.zeros((k, 18))
        self.qpos[:, 2], self.qpos[:, 3], self.qpos[:, 6] = 0.3, np.cos(yaw / 2), np.sin(yaw / 2)
        self._yaw = yaw

    def move(self, begin: float, end: float, x: float, y: float = 0.0, yaw_rate: float = 0.0) -> Walk:
        """Set the velocity between two times; the heading is kept, so that the numbers stay simple."""
        rows = (self.time >= begin) & (self.time < end)
        c, s = np.cos(self._yaw), np.sin(self._yaw)
        self.qvel[rows, 0], self.qvel[rows, 1], self.qvel[rows, 5] = c * x - s * y, s * x + c * y, yaw_rate
        return self

    def save(self, folder: Path) -> Path:
        """Write the trace."""
        k = len(self.time)
        path = folder / 'trace.npz'
        np.savez(
            path,
            time=self.time,
            qpos=self.qpos,
            qvel=self.qvel,
            torque=np.full((k, 12), 7.0),
            command_age=np.full(k, 0.002),
            foot_height=np.zeros((k, 4)),
        )
        return path


def code(walk: Walk, folder: Path, segments: list[Segment], mode: str = 'damping') -> int:
    return summarise(walk.save(folder), segments, mode, CONTRACT)


FORWARD = [Segment(0.0, 10.0, (0.5, 0.0, 0.0))]


def test_a_robot_that_was_stopped_before_the_end_has_not_walked_however_well_it_followed(tmp_path, capsys):
    path = Walk().move(0, 10, 0.5).save(tmp_path)
    assert summarise(path, FORWARD, 'damping', CONTRACT, whole=False) == 1
    assert 'the safety node stopped the robot before the end' in capsys.readouterr().out


def test_a_robot_that_follows_its_command_walked(tmp_path, capsys):
    assert code(Walk().move(0, 10, 0.5), tmp_path, FORWARD) == 0
    shown = capsys.readouterr().out
    assert 'the robot walked' in shown
    assert CONTRACT.file.name in shown
    assert 'peak torque 7.0 N m' in shown
    assert 'command age 2.0 ms' in shown


@pytest.mark.parametrize('yaw', [1.0, np.pi / 2, -3.0])
def test_speed_counts_in_the_frame_of_the_robot_whatever_its_heading(tmp_path, yaw):
    segments = [Segment(0.0, 5.0, (0.5, 0.2, 0.0))]
    assert code(Walk(yaw=yaw).move(0, 10, 0.5, 0.2), tmp_path, segments) == 0


@pytest.mark.parametrize(
    ('command', 'measured', 'good'),
    [
        ((1.0, 0.0, 0.0), (0.86, 0.0, 0.0), True),  # within 15 %
        ((1.0, 0.0, 0.0), (0.84, 0.0, 0.0), False),
        ((1.0, 0.0, 0.0), (1.16, 0.0, 0.0), False),
        ((0.5, 0.0, 0.0), (0.41, 0.0, 0.0), True),  # a small command may be missed by 0.1
        ((0.5, 0.0, 0.0), (0.39, 0.0, 0.0), False),
        ((0.5, 0.0, 0.0), (0.5, 0.11, 0.0), False),  # sideways counts
        ((0.5, 0.0, 0.0), (0.5, 0.0, 0.11), False),  # turning counts
        ((0.0, 0.0, 1.0), (0.0, 0.0, 0.9), True),
        ((0.0, 0.0, 0.0), (0.09, 0.0, 0.0), True),
        ((0.0, 0.0, 0.0), (0.11, 0.0, 0.0), False),
        ((0.5, 0.0, 0.0), (-0.5, 0.0, 0.0), False),
    ],
)
def test_a_command_is_met_within_fifteen_percent_or_a_tenth(tmp_path, command, measured, good):
    walk = Walk().move(0, 10, *measured)
    assert code(walk, tmp_path, [Segment(0.0, 10.0, command)]) == (0 if good else 1)


def test_the_time_to_settle_after_a_change_of_command_is_left_out(tmp_path):
    walk = Walk().move(0, SETTLE_S, -3.0).move(SETTLE_S, 10, 0.5)
    assert code(walk, tmp_path, FORWARD) == 0


def test_one_command_that_is_missed_is_enough_to_fail(tmp_path, capsys):
    walk = Walk().move(0, 5, 0.5).move(5, 10, 0.5)
    segments = [Segment(0.0, 5.0, (0.5, 0.0, 0.0)), Segment(5.0, 10.0, (1.0, 0.0, 0.0))]
    assert code(walk, tmp_path, segments) == 1
    shown = capsys.readouterr().out
    assert 'did not do what it was told' in shown
    assert 'yes' in shown


def test_a_robot_that_leans_too_far_fell(tmp_path, capsys):
    walk = Walk().move(0, 10, 0.5)
    walk.qpos[500, 3:7] = (np.cos(0.55), np.sin(0.55), 0, 0)  # 1.1 rad, for one row
    assert code(walk, tmp_path, FORWARD) == 1
    assert 'fell' in capsys.readouterr().out


def test_a_robot_that_sinks_too_low_fell(tmp_path, capsys):
    walk = Walk().move(0, 10, 0.5)
    walk.qpos[-1, 2] = 0.1
    assert code(walk, tmp_path, FORWARD) == 1
    assert 'fell' in capsys.readouterr().out


def test_lying_before_and_after_the_walk_is_no_fall(tmp_path):
    walk = Walk().move(2, 8, 0.5)
    walk.qpos[walk.time < 2, 2] = walk.qpos[walk.time >= 8, 2] = 0.05
    assert code(walk, tmp_path, [Segment(2.0, 8.0, (0.5, 0.0, 0.0))]) == 0


@pytest.mark.parametrize('mode', ['fault', 'active', 'off'])
def test_a_run_that_does_not_end_in_damping_fails_and_says_in_which_mode(tmp_path, capsys, mode):
    assert code(Walk().move(0, 10, 0.5), tmp_path, FORWARD, mode) == 1
    assert f'ended in the mode {mode}' in capsys.readouterr().out


def test_a_run_without_a_command_fails(tmp_path, capsys):
    assert code(Walk(), tmp_path, []) == 1
    assert 'never followed' in capsys.readouterr().out


def test_a_command_that_the_trace_does_not_cover_is_not_met(tmp_path):
    walk = Walk(seconds=5).move(0, 5, 0.5)
    segments = [Segment(0.0, 5.0, (0.5, 0.0, 0.0)), Segment(20.0, 25.0, (0.5, 0.0, 0.0))]
    assert code(walk, tmp_path, segments) == 1


def test_a_simulation_that_blew_up_did_not_walk(tmp_path):
    walk = Walk().move(0, 10, 0.5)
    walk.qvel[700:] = np.nan
    walk.qpos[700:, :3] = np.nan
    assert code(walk, tmp_path, FORWARD) == 1


def test_a_command_shorter_than_the_time_to_settle_is_judged_by_its_end(tmp_path):
    walk = Walk().move(0, 0.4, 0.0).move(0.4, 10, 0.5)
    assert code(walk, tmp_path, [Segment(0.0, 0.6, (0.5, 0.0, 0.0))]) == 0


def test_without_a_trace_the_error_says_so(tmp_path):
    with pytest.raises(RunError, match='no trace'):
        summarise(tmp_path / 'absent.npz', FORWARD, 'damping', CONTRACT)
