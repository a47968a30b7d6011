# SPDX-License-Identifier: Apache-2.0
"""Promises of the command line: a mistake costs one message and no time, and leaves nothing behind."""

from __future__ import annotations

import argparse
import importlib.util

import pytest

from sim2real_ros.tools import cli
from sim2real_ros.tools.arguments import namespace, not_negative, positive

has_torch = importlib.util.find_spec('torch') is not None and importlib.util.find_spec('rsl_rl') is not None
trains = pytest.mark.skipif(not has_torch, reason='training needs the extra `train`')


def refusal(capsys, line: list[str]) -> str:
    """Run a command that must be refused; returns its message."""
    try:
        code = cli.main(line)
    except SystemExit as end:  # argparse
        code = end.code
    assert code in (1, 2)
    return capsys.readouterr().err.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('evaluate go2_velocity --episodes 0', '--episodes: "0" is not a whole number of at least 1'),
        ('evaluate go2_velocity --episodes many', '--episodes: "many" is not a whole number'),
        ('evaluate go2_velocity --seed -1', '--seed: "-1" is not a whole number of at least 0'),
        ('evaluate go2_velocity --json /proc/none/figures.json', '--json: cannot write the file /proc/none/figures.json'),
        ('evaluate go2_velocity --json .', '--json: cannot write the file .: Is a directory'),
        ('evaluate nothing', 'policy "nothing" is neither a path nor one of the shipped ones: go2_velocity'),
        ('run --seconds -1', '--seconds is -1; 1 to 3600 are possible'),
        ('run --trace /proc/none/trace.npz', '--trace: cannot write the file /proc/none/trace.npz'),
        ('run --namespace 2dogs', '--namespace: "2dogs" is no namespace'),
        ('record --namespace a/2', '--namespace: "a/2" is no namespace'),
        ('preflight --namespace a//b', '--namespace: "a//b" is no namespace'),
        ('describe go2 --for gazebo --namespace my-dog', '--namespace: "my-dog" is no namespace'),
        ('run --policy nothing', 'policy "nothing" is neither'),
        ('run --params-file nothing.yaml', 'cannot read nothing.yaml: No such file'),
        ('show nothing', 'policy "nothing" is neither'),
        ('show go2_velocity --robot nothing', 'robot "nothing" is neither'),
        ('train nothing', 'no training task "nothing"; tasks are go2_velocity'),
        ('train go2_velocity --environments 0', '--environments: "0" is not a whole number'),
        ('train go2_velocity --iterations 0', '--iterations: "0" is not a whole number'),
        pytest.param('train go2_velocity --run /proc/none', '--run: cannot write into the folder /proc/none', marks=trains),
        pytest.param('train go2_velocity --export-only --run /none', '/none holds no checkpoint', marks=trains),
    ],
)  # fmt: skip
def test_a_mistake_ends_in_one_line_that_names_it(capsys, line, words):
    message = refusal(capsys, line.split())
    assert words in message


@trains
def test_training_refuses_an_output_folder_that_is_a_file(capsys, tmp_path):
    (tmp_path / 'policy').write_text('')
    line = ['train', 'go2_velocity', '--run', str(tmp_path / 'run'), '-o', str(tmp_path / 'policy')]
    assert refusal(capsys, line).endswith('policy: a file of this name is there')


@pytest.mark.parametrize(('kind', 'text', 'number'), [(positive, '1', 1), (not_negative, '0', 0), (positive, ' 20 ', 20)])
def test_whole_numbers_are_read(kind, text, number):
    assert kind(text) == number


@pytest.mark.parametrize('text', ['0', '-1', '1.5', 'nan', '', '1e3'])
def test_what_is_no_positive_whole_number_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match='of at least 1'):
        positive(text)


@pytest.mark.parametrize(('text', 'name'), [('', ''), ('/', ''), ('dog', 'dog'), ('/dog/', 'dog'), ('/lab/dog_2', 'lab/dog_2')])
def test_namespaces_are_read_with_and_without_the_slashes_around_them(text, name):
    assert namespace(text) == name


def test_a_long_name_that_is_no_namespace_is_refused_at_once():
    """A pattern that tries every way to cut it up would not come to an end."""
    with pytest.raises(argparse.ArgumentTypeError, match='is no namespace'):
        namespace('a' * 60 + '-')
