# SPDX-License-Identifier: Apache-2.0
"""What a user can choose at the start, by backend. The names are those of the launch arguments."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from sim2real_ros.description.gazebo_names import GENERATIONS


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={'help': text})


@dataclass(frozen=True, slots=True)
class Common:
    """Options of every backend."""

    policy: str = _option('go2_velocity', 'shipped policy name, folder, contract YAML or ONNX file')
    robot: str = _option('go2', 'shipped robot name or robot YAML file')
    namespace: str = _option('', 'namespace of all nodes and topics, for more than one robot')
    profile: str = _option('', 'profile of the robot file that makes it milder, as first_steps')
    read_only: bool = _option(False, 'observe and compute, command nothing')
    params_file: str = _option('', 'ROS 2 parameter file, applied last')
    autostart: bool = _option(True, 'configure and activate policy_node at start')
    log_level: str = _option('info', 'debug, info, warn, error or fatal')
    realtime_priority: int = _option(0, 'SCHED_FIFO priority of the nodes that control, 1 to 98; 0: ordinary processes')
    record: str = _option('false', 'true, or a folder that does not exist yet: record the run as a rosbag2 in MCAP')


@dataclass(frozen=True, slots=True)
class Options(Common):
    """Options of the embedded simulator."""

    use_sim_time: bool = _option(True, 'stamps come from a simulated clock')
    headless: bool = _option(True, 'no viewer')
    lockstep: bool = _option(False, 'the simulator waits for every answer')
    real_time_factor: float = _option(1.0, 'simulated s per real s; 0: as fast as possible')
    output: str = _option('torque', 'what the driver takes: torque or impedance')
    trace_file: str = _option('', 'npz file for what really happened in the simulator')


@dataclass(frozen=True, slots=True)
class Ros2ControlOptions(Common):
    """Options of every robot that is driven through ros2_control."""

    controller: str = _option('effort_controller', 'name of the effort controller that takes our commands')
    arm: bool = _option(True, 'damp, then activate the effort controller; false: leave it inactive')
    timeout_s: float = _option(30.0, 'longest wait for each step of the start, s')


@dataclass(frozen=True, slots=True)
class GazeboOptions(Ros2ControlOptions):
    """Options of Gazebo."""

    world: str = _option('flat', 'shipped world or SDF file')
    headless: bool = _option(True, 'the server alone, without window')
    gazebo: str = _option('', f'generation: {", ".join(GENERATIONS)}; empty: what is installed (harmonic: and every later one)')
    pose: str = _option('', "pose in which the robot begins; empty: the robot file's start_pose")
    x: float = _option(0.0, 'place of the base, m')
    y: float = _option(0.0, 'place of the base, m')
    z: str = _option('', 'height of the base, m; empty: so that the robot touches the ground, which needs MuJoCo to find out')


@dataclass(frozen=True, slots=True)
class RobotOptions(Ros2ControlOptions):
    """Options of ros2_control hardware."""

    hardware: str = _option(
        'running', "running: your controller_manager runs already; urdf: the URDF's own <ros2_control>; mock; or a class"
    )
    imu: str = _option('imu_sensor_broadcaster/imu', 'topic of the IMU')
    require_passport: bool = _option(True, 'refuse policies without a passport that fits, as sim2real validate makes it')


Chosen = TypeVar('Chosen', bound=Common)


def defaults(kind: type[Common] = Options) -> dict[str, tuple[str, str]]:
    """Return (default as text, help) of every option of a backend, for launch arguments."""
    return {f.name: (_text(f.default), f.metadata['help']) for f in fields(kind)}


def options_from_text(values: dict[str, str], kind: type[Chosen] = Options) -> Chosen:  # type: ignore[assignment]
    """Return the options of a backend from launch arguments, which are text.

    Raises:
        ValueError: a value is not of the option's type; the message names the option.
    """
    return kind(**{f.name: _typed(f, values.get(f.name, _text(f.default))) for f in fields(kind)})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(option: Field[Any], text: str) -> Any:
    if isinstance(option.default, bool):
        if text.lower() not in ('true', 'false'):
            raise ValueError(f'{option.name} is "{text}"; true or false is expected')
        return text.lower() == 'true'
    if isinstance(option.default, int | float):
        try:
            return type(option.default)(text)
        except ValueError:
            kind = 'whole number' if isinstance(option.default, int) else 'number'
            raise ValueError(f'{option.name} is "{text}"; a {kind} is expected') from None
    return text
