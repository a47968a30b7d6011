# SPDX-License-Identifier: Apache-2.0
"""Who may import what: ROS stays in `ros/`, the safety filter stays small, and only it makes a `SafeTorque`."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from makers import REPOSITORY

PACKAGE = REPOSITORY / 'sim2real_ros'
ROS = {'rclpy', 'launch', 'launch_ros', 'builtin_interfaces', 'rcl_interfaces', 'std_srvs', 'rosgraph_msgs'}

BLOCK = """
import importlib, importlib.abc, json, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.split('.')[0]
        if top in {blocked!r} or top.endswith('_msgs'):
            raise ImportError(f'{{name}} is blocked by the test')
        return None

for name in [name for name in sys.modules if name.split('.')[0] in {blocked!r} or name.split('.')[0].endswith('_msgs')]:
    del sys.modules[name]
sys.meta_path.insert(0, Blocked())
"""


def modules() -> list[str]:
    """Return every module of the package outside `ros/` and `training/`."""
    names = []
    for path in sorted(PACKAGE.rglob('*.py')):
        parts = path.relative_to(REPOSITORY).with_suffix('').parts
        if parts[1] not in ('ros', 'training'):
            names.append('.'.join(parts[:-1] if parts[-1] == '__init__' else parts))
    return names


def sources(*folders: str) -> list[Path]:
    """Return the Python files of some folders of the repository."""
    return [path for folder in folders for path in sorted((REPOSITORY / folder).rglob('*.py'))]


def python(code: str) -> object:
    """Run code in a fresh interpreter and return what it prints, as JSON."""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=120, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def imports(path: Path) -> set[str]:
    """Return the top-level names of everything a file imports, anywhere in it; type checking alone does not count."""
    tree = ast.parse(path.read_text(encoding='utf-8'))
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, 'id', '') == 'TYPE_CHECKING'
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.split('.')[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split('.')[0])
    return names


def test_every_module_outside_ros_imports_without_ros():
    code = (
        BLOCK.format(blocked=ROS)
        + f"""
failed = {{}}
for name in {modules()!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""
    )
    assert python(code) == {}


@pytest.mark.parametrize('name', ['rclpy', 'sensor_msgs.msg', 'std_srvs.srv', 'sim2real_ros.ros.safety_node'])
def test_the_block_of_the_test_above_blocks(name):
    code = (
        BLOCK.format(blocked=ROS)
        + f"""
try:
    importlib.import_module({name!r})
    print('false')
except ImportError as error:
    print(json.dumps('blocked by the test' in str(error)))
"""
    )
    assert python(code) is True


@pytest.mark.parametrize(
    'path',
    [path for path in sources('sim2real_ros') if 'ros' not in path.relative_to(PACKAGE).parts],
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
def test_no_file_outside_ros_names_ros_in_an_import_of_any_function(path):
    found = {name for name in imports(path) if name in ROS or name.endswith('_msgs')}
    assert not found


def banned() -> set[str]:
    """Return the packages whose import ruff forbids outside `ros/` and `launch/`."""
    tomllib = pytest.importorskip('tomllib', reason='Python 3.11')
    settings = tomllib.loads((REPOSITORY / 'pyproject.toml').read_text(encoding='utf-8'))
    return set(settings['tool']['ruff']['lint']['flake8-tidy-imports']['banned-api'])


def test_ruff_bans_every_ros_package_that_we_depend_on_or_import():
    depends = {tag.text for tag in ElementTree.parse(REPOSITORY / 'package.xml').getroot() if tag.tag.endswith('depend')}
    used = set().union(*(imports(path) for path in sources('sim2real_ros/ros', 'launch')))
    ros = {name for name in depends | used if name in ROS or name.endswith(('_msgs', '_interfaces'))}
    assert {'rclpy', 'sensor_msgs', 'lifecycle_msgs', 'launch_ros'} <= ros
    assert ros <= banned()


@pytest.mark.parametrize('package', ['tf2_msgs', 'trajectory_msgs', 'control_msgs', 'controller_manager_msgs', 'rclpy'])
def test_ruff_refuses_a_ros_import_outside_ros(package):
    pytest.importorskip('ruff')
    done = subprocess.run(
        [sys.executable, '-m', 'ruff', 'check', '--select', 'TID251', '--stdin-filename', 'sim2real_ros/sim/new.py', '-'],
        input=f'import {package}\n',
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert done.returncode == 1
    assert f'`{package}` is banned: only sim2real_ros/ros/ and launch/ talk to ROS' in done.stdout


def test_the_safety_package_imports_neither_onnxruntime_nor_mujoco_nor_torch():
    code = 'import json, sys, sim2real_ros.safety\nprint(json.dumps(sorted(sys.modules)))'
    loaded = {name.split('.')[0] for name in python(code)}
    assert 'numpy' in loaded
    assert not loaded & {'onnxruntime', 'onnx', 'mujoco', 'torch', 'rclpy', 'scipy'}


@pytest.mark.parametrize('path', sources('sim2real_ros/safety'), ids=lambda path: path.name)
def test_a_file_of_the_safety_package_imports_numpy_and_us_alone(path):
    """`dynamics.py` alone may ask for the simulator, and only inside a function: without it every robot but that one runs."""
    allowed = {'numpy', 'sim2real_ros', *sys.stdlib_module_names}
    text = path.read_text(encoding='utf-8')
    assert 'sim2real_ros.policy' not in text
    if path.name == 'dynamics.py':
        assert imports(path) - {'mujoco'} <= allowed
    else:
        assert imports(path) <= allowed
        assert 'sim2real_ros.sim' not in text


def test_the_safety_filter_of_a_floating_robot_runs_where_neither_simulator_nor_onnxruntime_can_be_imported():
    code = (
        BLOCK.format(blocked={'mujoco', 'onnxruntime', 'onnx', 'torch', 'rclpy'})
        + """
import numpy as np
from sim2real_ros.robot import load_robot
from sim2real_ros.safety import SafetyFilter
from sim2real_ros.safety.modes import Event
from sim2real_ros.signals import LEVEL_XYZW, RobotState

robot = load_robot('go2')
safety = SafetyFilter(robot)
for k in range(3):
    torque = safety.step(RobotState(0.002 * k, robot.pose('stand') + 1e-9 * k, np.ones(12), LEVEL_XYZW))
    safety.request(Event.DAMP)
print(json.dumps([safety.mode.value, bool(np.isfinite(torque.torque).all()), 'mujoco' in sys.modules]))
"""
    )
    assert python(code) == ['damping', True, False]


def makers_of(name: str, paths: list[Path]) -> set[str]:
    """Return the files that call a class by name."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            called = isinstance(node, ast.Call) and (getattr(node.func, 'id', None) or getattr(node.func, 'attr', None))
            if called == name:
                found.add(path.relative_to(REPOSITORY).as_posix())
    return found


def test_only_the_safety_filter_makes_a_safe_torque():
    everything = sources('sim2real_ros', 'launch', 'bench')
    assert makers_of('SafeTorque', everything) == {'sim2real_ros/safety/response.py'}


def test_no_optional_package_is_imported_at_the_top_of_the_command_line():
    """`sim2real --version` and `show` work where the simulator, ROS and PyTorch are absent."""
    code = 'import json, sys, sim2real_ros.tools.cli\nprint(json.dumps(sorted(sys.modules)))'
    loaded = {name.split('.')[0] for name in python(code)}
    assert not loaded & {'mujoco', 'rclpy', 'torch', 'onnxruntime'}
