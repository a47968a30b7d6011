# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the packages `launch` and `launch_ros`, which are in no wheel: enough of them to walk our launch files.

It starts nothing. Classes take the keyword arguments of the real ones (launch 3.4, launch_ros 0.26) and no others, so a wrong
name or a wrong kind of value is found here. What it cannot show is what real actions do: `test_*_launch.py` do, with ROS 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


class Action:
    """Base of all actions."""


class LaunchContext:
    """Values of the launch arguments, and whether the launch is over."""

    is_shutdown = False

    def __init__(self) -> None:
        self.launch_configurations: dict[str, str] = {}


class LaunchConfiguration:
    def __init__(self, variable_name: str) -> None:
        self.name = variable_name

    def perform(self, context: LaunchContext) -> str:
        return context.launch_configurations[self.name]


class DeclareLaunchArgument(Action):
    def __init__(self, name: str, *, default_value: str | None = None, description: str | None = None) -> None:
        assert isinstance(name, str)
        assert default_value is None or isinstance(default_value, str)
        self.name, self.default_value, self.description = name, default_value, description

    def execute(self, context: LaunchContext) -> None:
        context.launch_configurations.setdefault(self.name, self.default_value or '')


class OpaqueFunction(Action):
    def __init__(self, *, function: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs or {}

    def execute(self, context: LaunchContext) -> list[Action] | None:
        return self._function(context, *self._args, **self._kwargs)


class Shutdown:
    def __init__(self, *, reason: str = 'reason not given', due_to_sigint: bool = False) -> None:
        self.reason = reason


class EmitEvent(Action):
    def __init__(self, *, event: Shutdown) -> None:
        self.event = event


class ExecuteProcess(Action):
    def __init__(
        self,
        *,
        cmd: Iterable[str],
        output: str = 'log',
        additional_env: dict[str, str] | None = None,
        on_exit: Any = None,
    ) -> None:
        self.cmd, self.additional_env = list(cmd), additional_env or {}
        assert all(isinstance(word, str) for word in self.cmd)
        assert all(isinstance(text, str) for pair in self.additional_env.items() for text in pair)
        self.on_exit = on_exit


class ParameterValue:
    def __init__(self, value: Any, *, value_type: type | None = None) -> None:
        self.value = value
        self.value_type = value_type


class Node(ExecuteProcess):
    def __init__(
        self,
        *,
        executable: str,
        package: str | None = None,
        name: str | None = None,
        namespace: str | None = None,
        parameters: list[Any] | None = None,
        remappings: list[tuple[str, str]] | None = None,
        arguments: Iterable[str] | None = None,
        **process: Any,
    ) -> None:
        super().__init__(cmd=[executable, *(arguments or ())], **process)
        assert parameters is None or isinstance(parameters, list)
        assert all(isinstance(values, (dict, str)) for values in parameters or [])
        assert all(len(pair) == 2 for pair in remappings or [])
        self.node_package, self.node_executable, self.namespace = package, executable, namespace
        self.parameters, self.remappings = parameters or [], remappings or []


class LaunchDescription:
    def __init__(self, initial_entities: Iterable[Action] | None = None) -> None:
        self.entities = list(initial_entities or ())


MODULES = {
    'launch': (Action, LaunchContext, LaunchDescription),
    'launch.actions': (DeclareLaunchArgument, EmitEvent, ExecuteProcess, OpaqueFunction),
    'launch.events': (Shutdown,),
    'launch.substitutions': (LaunchConfiguration,),
    'launch_ros': (),
    'launch_ros.actions': (Node,),
    'launch_ros.parameter_descriptions': (ParameterValue,),
}


def install(monkeypatch: Any) -> None:
    """Put the stand-ins where `import launch` finds them, for one test."""
    for name, members in MODULES.items():
        module = ModuleType(name)
        for member in members:
            setattr(module, member.__name__, member)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, 'sim2real_ros.ros.launching', raising=False)
