# SPDX-License-Identifier: Apache-2.0
"""Promises of the Makefile: what a target needs is installed, and installed once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from makers import REPOSITORY

pytestmark = pytest.mark.skipif(shutil.which('make') is None, reason='there is no make')


@pytest.fixture
def venv(tmp_path) -> Path:
    """A virtual environment whose programs do nothing; `pip` writes down what it was asked for."""
    folder = tmp_path / 'venv'
    (folder / 'bin').mkdir(parents=True)
    for name in ('python', 'pip', 'sim2real', 'ruff', 'mypy'):
        program = folder / 'bin' / name
        program.write_text(f'#!/bin/sh\n[ {name} = pip ] && echo "$@" >> {folder}/asked\nexit 0\n')
        program.chmod(0o755)
        os.utime(program, (1, 1))
    return folder


def make(venv: Path, *words: str) -> list[str]:
    """Run make, without a sourced ROS 2, and return what pip was asked to install by this call."""
    asked = venv / 'asked'
    asked.write_text('')
    done = subprocess.run(
        ['make', f'VENV={venv}', 'PYTHON=false', *words],
        cwd=REPOSITORY,
        env={'PATH': os.environ['PATH']},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [line.split('.[')[1].rstrip(']') for line in asked.read_text().splitlines()]


def test_tests_after_the_demo_install_what_the_demo_lacked_and_then_nothing(venv):
    assert make(venv, 'demo') == ['ros,sim']
    assert make(venv, 'demo') == []
    assert make(venv, 'test') == ['ros,sim,test,validate']
    assert make(venv, 'test') == []


def test_the_demo_after_the_tests_installs_nothing(venv):
    assert make(venv, 'test') == ['ros,sim,test,validate']
    assert make(venv, 'demo') == []


def test_other_extras_are_installed_though_the_usual_ones_are_there(venv):
    make(venv, 'test')
    assert make(venv, 'test', 'EXTRAS=ros,sim,test,validate,train') == ['ros,sim,test,validate,train']
    assert make(venv, 'test', 'EXTRAS=ros,sim,test,validate,train') == []


def test_a_changed_setup_file_installs_again(venv):
    make(venv, 'lint')
    os.utime(venv / 'ros,sim,test,validate.stamp', (2, 2))  # older than setup.py
    assert make(venv, 'lint') == ['ros,sim,test,validate']
