# SPDX-License-Identifier: Apache-2.0
"""Which nodes make up the stack: the same on every backend, and those of the embedded simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim2real_ros.bringup.options import Common, Options

PACKAGE = 'sim2real_ros'
Value = str | bool | int | float | list[str]


@dataclass(frozen=True, slots=True)
class Process:
    """One process to start."""

    executable: str  # console script of a package; for ours, also the module in sim2real_ros.ros
    parameters: Mapping[str, Value] = field(default_factory=dict)
    package: str = PACKAGE  # '': no ROS package, a program on the PATH
    arguments: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # besides that of the launch
    essential: bool = True  # whether all the others end when it does


def simulation(options: Options) -> list[Process]:
    """Return the stack on the embedded simulator, in the order of starting."""
    driver = Process(
        'mujoco_node',
        {
            'robot': options.robot,
            'headless': options.headless,
            'lockstep': options.lockstep,
            'real_time_factor': options.real_time_factor,
            'trace_file': options.trace_file,
            'output': options.output,
            'realtime_priority': options.realtime_priority,
        },
    )
    return [*control(options), driver]


def control(options: Options) -> list[Process]:
    """Return our nodes as the embedded simulator needs them."""
    how: dict[str, Value] = {'sim_time': options.use_sim_time, 'output': options.output}
    lockstep: dict[str, Value] = {'lockstep': options.lockstep}
    return nodes(options, both=how, safety=lockstep, policy={**lockstep, 'backend': 'simulated'})


def nodes(
    options: Common,
    *,
    both: Mapping[str, Value],
    safety: Mapping[str, Value],
    policy: Mapping[str, Value],
    remappings: tuple[tuple[str, str], ...] = (),
) -> list[Process]:
    """Return the nodes that are the same on every backend, recorder and watchdog first.

    Args:
        options: of the backend.
        both: parameters of watchdog_node and safety_node, which command.
        safety: more of safety_node.
        policy: more of policy_node.
        remappings: of all of them.
    """
    robot: dict[str, Value] = {'robot': options.robot, 'realtime_priority': options.realtime_priority}
    profile: dict[str, Value] = {'profile': options.profile}
    own: dict[str, Value] = {'policy': options.policy, 'autostart': options.autostart}
    watching = Process('watchdog_node', {**robot, **both}, remappings=remappings)
    safe = {**robot, **profile, **both, **safety, 'read_only': options.read_only}
    others = [
        Process('safety_node', safe, remappings=remappings),
        Process('policy_node', {**robot, **profile, **policy, **own}, remappings=remappings),
    ]
    # a watchdog would take over from whoever commands the robot while we only read
    return [*_recorder(options, remappings), *([] if options.read_only else [watching]), *others]


def _recorder(options: Common, remappings: tuple[tuple[str, str], ...]) -> list[Process]:
    if options.record.lower() in ('', 'false'):
        return []
    folder = '' if options.record.lower() == 'true' else options.record
    return [Process('recorder_node', {'folder': folder}, remappings=remappings, essential=False)]
