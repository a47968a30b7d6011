# SPDX-License-Identifier: Apache-2.0
"""Promises of the bring-up data and its two front ends: command lines of child processes, launch arguments."""

from __future__ import annotations

import ast
import signal
import sys
import time
from dataclasses import fields, replace

import pytest
import yaml
from makers import REPOSITORY

from sim2real_ros.bringup import Options, Process, control, defaults, options_from_text, simulation
from sim2real_ros.errors import RunError
from sim2real_ros.tools import processes
from sim2real_ros.tools.processes import Stack, command_line

NODES = ('watchdog_node', 'safety_node', 'policy_node', 'mujoco_node')


def declared(executable: str) -> set[str]:
    """Return the parameters that a node declares, from its source and that of its parts."""
    tree = parsed(executable)
    parts = [n.module.split('.')[-1] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and '.ros.' in str(n.module)]
    trees = [tree, *(parsed(part) for part in parts if part != 'parameters')]  # which declares what it is called for
    calls = [call for one in trees for call in ast.walk(one) if isinstance(call, ast.Call)]
    names = {call.args[1].value for call in calls if of(call) == 'declare' and isinstance(call.args[1], ast.Constant)}
    own = {'output', 'command_joints', 'sensor_noise'}  # parameters with a function of their own
    return names | ({of(call) for call in calls} & own) | {'realtime_priority'}  # which run_node declares for every node


def parsed(module: str) -> ast.Module:
    """Return the syntax tree of a module of the ros folder."""
    return ast.parse((REPOSITORY / 'sim2real_ros' / 'ros' / f'{module}.py').read_text(encoding='utf-8'))


def of(call: ast.Call) -> str:
    """Return the name of the function that is called, '' for a method."""
    return getattr(call.func, 'id', '')


def given(line: list[str]) -> dict[str, object]:
    """Return the parameters of a command line as ROS would read them: YAML."""
    pairs = [line[i + 1].split(':=', 1) for i, word in enumerate(line) if word == '-p']
    return {name: yaml.safe_load(value) for name, value in pairs}


# --- options


def test_every_option_has_a_help_text_and_a_default_as_text():
    assert list(defaults()) == [f.name for f in fields(Options)]
    for name, (default, text) in defaults().items():
        assert isinstance(default, str), name
        assert len(text) > 5, name


def test_the_default_texts_are_the_default_options():
    assert options_from_text({name: default for name, (default, _) in defaults().items()}) == Options()
    assert options_from_text({}) == Options()


@pytest.mark.parametrize(('text', 'value'), [('true', True), ('True', True), ('FALSE', False), ('false', False)])
def test_truth_is_read_in_any_case(text, value):
    assert options_from_text({'lockstep': text}).lockstep is value


def test_numbers_and_texts_are_read_as_such():
    options = options_from_text({'real_time_factor': '0.5', 'robot': '12', 'policy': 'true'})
    assert (options.real_time_factor, options.robot, options.policy) == (0.5, '12', 'true')


@pytest.mark.parametrize('option', [f.name for f in fields(Options) if not isinstance(f.default, str)])
def test_a_value_of_a_wrong_type_is_refused_by_the_name_of_its_option(option):
    with pytest.raises(ValueError, match=option) as error:
        options_from_text({option: 'fast'})
    assert 'fast' in str(error.value)


# --- processes


def test_the_simulation_starts_watchdog_first_and_driver_last():
    assert tuple(process.executable for process in simulation(Options())) == NODES


def test_the_nodes_beside_the_driver_are_the_same_on_every_backend():
    assert simulation(Options())[:-1] == control(Options())


def test_a_read_only_bring_up_has_no_watchdog_since_it_would_take_over_from_whoever_commands():
    processes = control(Options(read_only=True))
    assert [process.executable for process in processes] == ['safety_node', 'policy_node']
    assert processes[0].parameters['read_only'] is True


@pytest.mark.parametrize('process', simulation(Options()), ids=lambda process: process.executable)
def test_every_process_is_a_module_of_the_ros_folder(process):
    assert (REPOSITORY / 'sim2real_ros' / 'ros' / f'{process.executable}.py').is_file()


@pytest.mark.parametrize('process', simulation(Options()), ids=lambda process: process.executable)
def test_every_parameter_that_is_set_is_declared_by_its_node(process):
    """A parameter that a node does not declare is ignored by ROS without a word."""
    assert set(process.parameters) <= declared(process.executable)


def test_a_recorder_is_started_first_where_one_is_wanted_and_nobody_ends_with_it():
    for record, folder in (('true', ''), ('walk', 'walk')):
        recorder, *others = simulation(Options(record=record))
        assert (recorder.executable, recorder.parameters, recorder.essential) == ('recorder_node', {'folder': folder}, False)
        assert others == simulation(Options())
        assert all(process.essential for process in others)


def test_every_node_gets_the_robot_and_only_the_policy_node_the_policy():
    for process in simulation(Options(robot='other', policy='mine')):
        assert process.parameters['robot'] == 'other'
        assert process.parameters.get('policy') == ('mine' if process.executable == 'policy_node' else None)


def test_an_option_reaches_a_parameter_or_is_one_of_the_front_end():
    """No option is forgotten: changing it changes some process, unless it is handled by the front ends themselves."""
    front_end = {'namespace', 'params_file', 'log_level'}
    for f in fields(Options):
        other = not f.default if isinstance(f.default, bool) else f.default + 1 if f.default == 1.0 else 'other'
        changed = simulation(replace(Options(), **{f.name: other})) != simulation(Options())
        assert changed != (f.name in front_end), f.name


# --- command lines


@pytest.mark.parametrize('process', simulation(Options()), ids=lambda process: process.executable)
def test_ros_reads_back_every_parameter_with_its_value_and_type(process):
    line = command_line(process, Options())
    assert line[:3] == [sys.executable, '-m', f'sim2real_ros.ros.{process.executable}']
    read = given(line)
    assert read == process.parameters
    assert {name: type(value) for name, value in read.items()} == {
        name: type(value) for name, value in process.parameters.items()
    }


@pytest.mark.parametrize('text', ['true', '1.0', '12', '', 'with space', 'a: b', '~', '[x]', '#1', "it's"])
def test_a_text_that_looks_like_something_else_stays_a_text(text):
    assert given(command_line(Process('policy_node', {'policy': text}), Options())) == {'policy': text}


@pytest.mark.parametrize('namespace', ['a', '/a', 'a/', '/a/'])
def test_a_namespace_is_written_with_one_slash(namespace):
    assert '__ns:=/a' in command_line(Process('policy_node', {}), Options(namespace=namespace))


def test_without_a_namespace_none_is_set():
    assert not any('__ns' in word for word in command_line(Process('policy_node', {}), Options()))


def test_the_parameter_file_comes_last_so_that_it_wins():
    line = command_line(simulation(Options())[0], Options(params_file='mine.yaml'))
    assert line[-2:] == ['--params-file', 'mine.yaml']


def test_the_log_level_is_handed_on():
    line = command_line(Process('policy_node', {}), Options(log_level='debug'))
    assert line[line.index('--log-level') + 1] == 'debug'


# --- child processes, with stand-ins for the nodes

WAITS = (
    'import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(0)); print("up", flush=True); time.sleep(60)'
)
ENDS = 'raise SystemExit(3)'


@pytest.fixture
def stand_ins(monkeypatch):
    """Replace the nodes' command lines by small Python programs, named by the executable."""
    monkeypatch.setattr(
        processes,
        'command_line',
        lambda process, options: [sys.executable, '-c', ENDS if process.executable == 'ends' else WAITS],
    )


def test_a_node_that_ends_is_named_with_its_code(stand_ins):
    with Stack([Process('ends', {})], Options()) as stack:
        stack.children['ends'].wait(30)
        with pytest.raises(RunError, match='ends ended with code 3'):
            stack.check()


def test_the_end_of_a_recorder_is_not_the_end_of_the_run(stand_ins):
    with Stack([Process('ends', {}, essential=False), Process('waits', {})], Options()) as stack:
        stack.children['ends'].wait(30)
        stack.check()


def test_all_nodes_are_ended_when_the_block_is_left_by_an_error(stand_ins, monkeypatch):
    monkeypatch.setattr(processes, 'PATIENCE_S', 1.0)
    stack = Stack([Process(name, {}) for name in NODES], Options())

    def fail() -> None:
        with stack:
            stack.check()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(stack.children) == len(NODES)
    assert all(child.returncode is not None for child in stack.children.values())


FAREWELL = """
import signal, sys, time
from pathlib import Path
name, log = sys.argv[1], Path(sys.argv[2])
def say(text):
    with log.open('a') as file:
        file.write(f'{name} {text}\\n')
def end(*_):
    say('is told')
    time.sleep(0.5 if name == 'safety_node' else 0)
    say('ends')
    sys.exit(0)
signal.signal(signal.SIGINT, end)
say('is up')
time.sleep(60)
"""


def test_the_driver_is_told_when_the_safety_node_has_ended_and_a_recorder_when_both_have(tmp_path, monkeypatch):
    log = tmp_path / 'log'
    monkeypatch.setattr(processes, 'command_line', lambda p, _: [sys.executable, '-c', FAREWELL, p.executable, str(log)])
    with Stack([Process('recorder_node', {}, essential=False), *(Process(name, {}) for name in NODES)], Options()):
        while not log.exists() or log.read_text().count('is up') < 5:
            time.sleep(0.02)
    lines = log.read_text().splitlines()
    assert lines.index('safety_node ends') < lines.index('mujoco_node is told')
    assert lines[-2:] == ['recorder_node is told', 'recorder_node ends']


def test_a_node_that_ignores_the_interrupt_is_killed(monkeypatch):
    deaf = 'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print("up", flush=True); time.sleep(60)'
    monkeypatch.setattr(processes, 'command_line', lambda process, options: [sys.executable, '-c', deaf])
    monkeypatch.setattr(processes, 'PATIENCE_S', 1.0)
    with Stack([Process('deaf', {})], Options()) as stack:
        signalled = stack.children['deaf']
    assert signalled.returncode in (-signal.SIGKILL, -signal.SIGINT)
