# SPDX-License-Identifier: Apache-2.0
"""Which processes make up the stack, once, as data. `launch/*.launch.py` and `sim2real run` are two front ends to it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class Options:
    """What a user can choose at the start; the names are those of the launch arguments."""

    policy: str = field(default='go2_velocity', metadata={'help': 'shipped policy name, folder, contract YAML or ONNX file'})
    robot: str = field(default='go2', metadata={'help': 'shipped robot name or robot YAML file'})
    namespace: str = field(default='', metadata={'help': 'namespace of all nodes and topics, for more than one robot'})
    profile: str = field(default='', metadata={'help': 'profile of the robot file that makes it milder, as first_steps'})
    read_only: bool = field(default=False, metadata={'help': 'observe and compute, command nothing'})
    use_sim_time: bool = field(default=True, metadata={'help': 'stamps come from a simulated clock'})
    params_file: str = field(default='', metadata={'help': 'ROS 2 parameter file, applied last'})
    autostart: bool = field(default=True, metadata={'help': 'configure and activate policy_node at start'})
    log_level: str = field(default='info', metadata={'help': 'debug, info, warn, error or fatal'})
    headless: bool = field(default=True, metadata={'help': 'no viewer'})
    lockstep: bool = field(default=False, metadata={'help': 'the simulator waits for every answer'})
    real_time_factor: float = field(default=1.0, metadata={'help': 'simulated s per real s; 0: as fast as possible'})
    output: str = field(default='torque', metadata={'help': 'what the driver takes: torque or impedance'})
    trace_file: str = field(default='', metadata={'help': 'npz file for what really happened in the simulator'})


@dataclass(frozen=True, slots=True)
class Process:
    """One node to start."""

    executable: str  # console script, and module in sim2real_ros.ros
    parameters: dict[str, str | bool | float]


def defaults() -> dict[str, tuple[str, str]]:
    """Return (default as text, help) of every option, for launch arguments."""
    return {
        f.name: (str(f.default).lower() if isinstance(f.default, bool) else str(f.default), f.metadata['help'])
        for f in fields(Options)
    }


def options_from_text(values: dict[str, str]) -> Options:
    """Return options from launch arguments, which are text.

    Raises:
        ValueError: a value is not of the option's type; the message names the option.
    """
    typed: dict[str, object] = {}
    for f in fields(Options):
        text = values.get(f.name, str(f.default))
        if isinstance(f.default, bool):
            if text.lower() not in ('true', 'false'):
                raise ValueError(f'{f.name} is "{text}"; true or false is expected')
            typed[f.name] = text.lower() == 'true'
        elif isinstance(f.default, float):
            try:
                typed[f.name] = float(text)
            except ValueError:
                raise ValueError(f'{f.name} is "{text}"; a number is expected') from None
        else:
            typed[f.name] = text
    return Options(**typed)  # type: ignore[arg-type]


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
        },
    )
    return [*control(options), driver]


def control(options: Options) -> list[Process]:
    """Return the nodes that are the same on every backend; the watchdog first, the driver last."""
    robot, clock, lockstep = (
        {'robot': options.robot},
        {'sim_time': options.use_sim_time},
        {'lockstep': options.lockstep},
    )
    profile = {'profile': options.profile}
    watchdog = Process('watchdog_node', {**robot, **clock, 'output': options.output})
    safety = Process(
        'safety_node',
        {**robot, **profile, **clock, **lockstep, 'output': options.output, 'read_only': options.read_only},
    )
    policy = Process(
        'policy_node',
        {**robot, **profile, **lockstep, 'policy': options.policy, 'autostart': options.autostart},
    )
    # a watchdog would take over from whoever commands the robot while we only read
    return [safety, policy] if options.read_only else [watchdog, safety, policy]
