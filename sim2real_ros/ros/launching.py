# SPDX-License-Identifier: Apache-2.0
"""From the bring-up as data to actions of `launch`. The files in `launch/` are a few lines each because of this one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from launch.actions import DeclareLaunchArgument, EmitEvent, ExecuteProcess, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import Action, LaunchContext, LaunchDescription
from sim2real_ros.bringup.options import Common, defaults, options_from_text
from sim2real_ros.bringup.processes import PACKAGE, Process
from sim2real_ros.bringup.ros2_control import Step
from sim2real_ros.errors import RunError

Chosen = TypeVar('Chosen', bound=Common)
OnExit = list[Action] | Callable[[Any, LaunchContext], list[Action] | None]


def launch_description(kind: type[Chosen], start: Callable[[Chosen], list[Action]]) -> LaunchDescription:
    """Return a launch description whose arguments are the options of a backend.

    Args:
        kind: of the options.
        start: makes the actions from them.
    """
    declared = [DeclareLaunchArgument(n, default_value=value, description=text) for n, (value, text) in defaults(kind).items()]

    def opened(context: LaunchContext) -> list[Action]:
        given = {name: LaunchConfiguration(name).perform(context) for name in defaults(kind)}
        return start(options_from_text(given, kind))

    return LaunchDescription([*declared, OpaqueFunction(function=opened)])


def together(processes: Sequence[Process], options: Common) -> list[Action]:
    """Start processes at once; when one ends that the others need, all end."""
    return [_action(p, options, _end_of_all(p) if p.essential else []) for p in processes]


def one_after_another(steps: Sequence[Step], options: Common) -> list[Action]:
    """Start the first step; each next one follows when the check of the one before has passed, else the launch fails."""
    if not steps:
        return []
    return [*together(steps[0].started, options), *_Turn(steps, options).run(steps[0].run)]


@dataclass(frozen=True, slots=True)
class _Turn:
    """The step whose turn it is, and those after it."""

    steps: Sequence[Step]
    options: Common

    def run(self, left: Sequence[Process]) -> list[Action]:
        """Run what is left of the step, then its check."""
        if not left:
            return [_action(self.steps[0].check, self.options, self._judge)]

        def ended(_: Any, context: LaunchContext) -> list[Action] | None:
            return None if context.is_shutdown else self.run(left[1:])

        return [_action(left[0], self.options, ended)]

    def _judge(self, event: Any, context: LaunchContext) -> list[Action] | None:
        if context.is_shutdown:
            return None
        if event.returncode != 0:
            name = self.steps[0].check.parameters['step']
            raise RunError(f'the start failed at "{name}"; bringup_check says why, above')
        return one_after_another(self.steps[1:], self.options)


def _end_of_all(process: Process) -> list[Action]:
    return [EmitEvent(event=Shutdown(reason=f'{process.executable} ended'))]


def _action(process: Process, options: Common, on_exit: OnExit) -> Action:
    if not process.package:
        command = [process.executable, *process.arguments]
        return ExecuteProcess(cmd=command, output='screen', additional_env=dict(process.environment), on_exit=on_exit)
    ours = process.package == PACKAGE
    # a text that looks like a number or like YAML stays a text
    values = {n: ParameterValue(v, value_type=str) if isinstance(v, str) else v for n, v in process.parameters.items()}
    own_file = [options.params_file] if ours and options.params_file else []
    return Node(
        package=process.package,
        executable=process.executable,
        namespace=options.namespace,
        output='screen',
        parameters=[*([values] if values else []), *own_file],
        remappings=list(process.remappings),
        arguments=[*process.arguments, *(['--ros-args', '--log-level', options.log_level] if ours else [])],
        on_exit=on_exit,
    )


def folder(options: Common) -> Path:
    """Return where the files of this start are written, made anew: description, controllers, world, bridge."""
    home = Path(os.environ.get('ROS_HOME', '~/.ros')).expanduser()
    place = home / PACKAGE / (options.namespace.strip('/').replace('/', '_') or Path(options.robot).stem)
    place.mkdir(parents=True, exist_ok=True)
    return place
