# SPDX-License-Identifier: Apache-2.0
"""Walks a launch file on the stand-in for `launch`: its actions, in the order in which they would be executed."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from typing import Any

from fake_launch import EmitEvent, ExecuteProcess, LaunchContext
from makers import REPOSITORY


@dataclass
class Exited:
    """The event of a process that ended."""

    returncode: int


class Walk:
    """One walk through a launch file.

    Attributes:
        context: holds the launch arguments.
        actions: processes, in the order of their start.
        ends: reason of the shutdown that follows when a process ends, by its executable.
    """

    def __init__(self, file: str, codes: dict[str, int], arguments: dict[str, str]) -> None:
        """Walk.

        Args:
            file: in launch/.
            codes: exit code of each `bringup_check`, by its step; 0 where none is given.
            arguments: of the launch.
        """
        self.context, self.actions, self._codes = LaunchContext(), [], codes
        self.ends: dict[str, str] = {}
        self.context.launch_configurations.update(arguments)
        description = runpy.run_path(str(REPOSITORY / 'launch' / file))['generate_launch_description']()
        self._go(description.entities)

    def _go(self, entities: list[Any] | None) -> None:
        for entity in entities or []:
            if isinstance(entity, ExecuteProcess):
                self.actions.append(entity)
            else:
                self._go(entity.execute(self.context))
        for process in entities or []:
            ended = getattr(process, 'on_exit', None)
            if callable(ended):
                self._go(ended(Exited(self._codes.get(parameter(process, 'step'), 0)), self.context))
            elif ended is not None:
                (event,) = ended
                assert isinstance(event, EmitEvent)
                self.ends[executable(process)] = event.event.reason

    @property
    def names(self) -> list[str]:
        """What is started, by name."""
        return [name(action) for action in self.actions]

    def __getitem__(self, wanted: str) -> Any:
        return next(action for action in self.actions if name(action) == wanted)


def executable(action: Any) -> str:
    """Return the executable of an action."""
    return getattr(action, 'node_executable', action.cmd[0])


def name(action: Any) -> str:
    """Return the executable of an action; for a check also its step, for a spawner what it spawns."""
    if executable(action) == 'bringup_check':
        return f'check {parameter(action, "step")}'
    if executable(action) == 'spawner':
        return ' '.join(['spawn', *action.cmd[1 : action.cmd.index('--controller-manager')]])
    return executable(action)


def parameters(action: Any) -> dict[str, Any]:
    """Return the parameters of an action as its node would get them."""
    given = [values for values in getattr(action, 'parameters', []) if isinstance(values, dict)]
    return {key: getattr(value, 'value', value) for values in given for key, value in values.items()}


def parameter(action: Any, key: str) -> Any:
    """Return one parameter, None where it is not given."""
    return parameters(action).get(key)
