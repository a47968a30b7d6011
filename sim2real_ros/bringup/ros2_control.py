# SPDX-License-Identifier: Apache-2.0
"""The start of a robot behind ros2_control, step by step: our nodes first, armed before the effort controller is activated.

An active effort controller without commands lets the robot collapse, and a deactivated one leaves it limp. So the controller
is loaded inactive, the safety node damps, and only then it is activated. After each step a check must pass, or the launch ends
with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from sim2real_ros.bringup.options import GazeboOptions, RobotOptions, Ros2ControlOptions
from sim2real_ros.bringup.processes import Process, Value, nodes
from sim2real_ros.description import Description, controllers, for_gazebo, for_ros2_control, gazebo
from sim2real_ros.description.controllers import EFFORT, broadcasters
from sim2real_ros.description.gazebo import bridge
from sim2real_ros.description.gazebo_names import Gazebo, mesh_folders, plugin_folders
from sim2real_ros.description.world import world
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot, load_robot

IMU = 'imu_sensor_broadcaster/imu'
ABOVE_GROUND_M = 0.01  # at the spawn
LOAD_S = 20.0  # that a spawner waits for the controller manager


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the start."""

    check: Process  # ends with code 0 when what the next step needs is there, else says why not
    started: tuple[Process, ...] = ()  # at once; they run on
    run: tuple[Process, ...] = ()  # then, one after another; each ends by itself, and the check judges what came of it


def gazebo_steps(options: GazeboOptions, folder: Path, environment: Mapping[str, str] = os.environ) -> list[Step]:
    """Return the start of Gazebo with a robot; writes what Gazebo reads into a folder.

    Raises:
        Sim2RealError: robot, pose, world or generation of Gazebo cannot be used.
    """
    robot, names = load_robot(options.robot), gazebo(options.gazebo, environment)
    space = options.namespace.strip('/')
    scene = world(options.world, names, robot)
    files = {name: folder / name for name in ('controllers.yaml', 'bridge.yaml', 'world.sdf', 'robot.urdf')}
    described = for_gazebo(robot, names, files['controllers.yaml'], namespace=space, start=options.pose)
    files['controllers.yaml'].write_text(_controllers(robot, options), encoding='utf-8')
    files['bridge.yaml'].write_text(yaml.safe_dump(bridge(names, robot, space), sort_keys=False), encoding='utf-8')
    files['world.sdf'].write_text(scene.text, encoding='utf-8')
    files['robot.urdf'].write_text(described.text, encoding='utf-8')
    simulator = [
        _state_publisher(described, sim_time=True),
        Process('parameter_bridge', {'config_file': str(files['bridge.yaml'])}, 'ros_gz_bridge'),
        *_servers(names, files['world.sdf'], options.headless, environment),
    ]
    spawn = ('-world', scene.name, '-topic', 'robot_description', '-name', space or robot.name)
    place = ('-x', str(options.x), '-y', str(options.y), '-z', f'{_height(robot, options):.4f}')
    start = _Start(options, robot, files['controllers.yaml'], IMU, 'gazebo', noise='imu', policy={'backend': 'simulated'})
    return [
        Step(start.check('simulator'), started=(*start.nodes(), *simulator)),
        Step(start.check('controller_manager'), run=(Process('create', package='ros_gz_sim', arguments=spawn + place),)),
        *start.controllers(),
    ]


def robot_steps(options: RobotOptions, folder: Path, environment: Mapping[str, str] = os.environ) -> list[Step]:
    """Return the start of ros2_control hardware; writes the controllers' parameter file into a folder.

    Raises:
        Sim2RealError: the robot, or its URDF for this hardware, cannot be used.
    """
    robot, parameters = load_robot(options.robot), folder / 'controllers.yaml'
    mock = options.hardware == 'mock'
    needed = options.require_passport and not options.read_only  # what commands nothing needs none
    policy: dict[str, Value] = {'backend': 'simulated' if mock else 'hardware', 'require_passport': needed}
    start = _Start(options, robot, parameters, options.imu, 'hardware', noise='none' if mock else 'all', policy=policy)
    manager: tuple[Process, ...] = ()
    if options.hardware != 'running':
        described = for_ros2_control(robot, '' if options.hardware == 'urdf' else options.hardware)
        # Humble's controller manager reads a parameter, later ones the topic, under one of two names
        text: dict[str, Value] = {'robot_description': described.text} if environment.get('ROS_DISTRO') == 'humble' else {}
        manager = (
            _state_publisher(described, sim_time=False),
            Process(
                'ros2_control_node', text, 'controller_manager', ('--ros-args', '--params-file', str(parameters)),
                remappings=(('~/robot_description', 'robot_description'),),
            ),
        )  # fmt: skip
    parameters.write_text(_controllers(robot, options), encoding='utf-8')
    return [Step(start.check('controller_manager'), started=(*start.nodes(), *manager)), *start.controllers()]


@dataclass(frozen=True, slots=True)
class _Start:
    """What Gazebo and hardware have in common."""

    options: Ros2ControlOptions
    robot: Robot
    parameters: Path  # of the controllers
    imu: str
    backend: str
    noise: str
    policy: Mapping[str, Value]  # parameters of policy_node

    @property
    def sim_time(self) -> bool:
        return self.backend == 'gazebo'

    @property
    def remappings(self) -> tuple[tuple[str, str], ...]:
        named = self.options.controller
        commands = (('effort_controller/commands', f'{named}/commands'),) if named != EFFORT else ()
        return (('imu/data', self.imu), *commands)

    def nodes(self) -> list[Process]:
        """Return our nodes."""
        safety: dict[str, Value] = {'controller': self.options.controller, 'sensor_noise': self.noise}
        return nodes(
            self.options, both={'sim_time': self.sim_time}, safety=safety, policy=self.policy, remappings=self.remappings
        )  # fmt: skip

    def controllers(self) -> list[Step]:
        """Return the steps that are the same for every controller manager."""
        named = self.options.controller
        steps = [
            Step(self.check('sensors'), run=tuple(self._spawner(name) for name in broadcasters(self.robot))),
            Step(self.check('armed'), run=(self._spawner(named, '--inactive'),)),
        ]
        if self.options.arm and not self.options.read_only:
            steps.append(Step(self.check('active'), run=(self._spawner(named),)))
        return steps

    def check(self, step: str) -> Process:
        """Return the check at the end of a step."""
        options = self.options
        parameters: dict[str, Value] = {
            'step': step, 'robot': options.robot, 'profile': options.profile, 'backend': self.backend,
            'controller': options.controller, 'timeout_s': options.timeout_s, 'arm': options.arm and not options.read_only,
        }  # fmt: skip
        return Process('bringup_check', parameters, remappings=self.remappings)

    def _spawner(self, name: str, *more: str) -> Process:
        # one for each controller: Humble's takes no second name
        arguments = (name, *more, '--controller-manager', 'controller_manager', '--param-file', str(self.parameters))
        timeout = ('--controller-manager-timeout', f'{LOAD_S:g}')
        return Process('spawner', package='controller_manager', arguments=arguments + timeout)


def _controllers(robot: Robot, options: Ros2ControlOptions) -> str:
    return controllers(robot, options.namespace.strip('/'), options.controller)


def _state_publisher(described: Description, *, sim_time: bool) -> Process:
    parameters: dict[str, Value] = {'robot_description': described.text, 'use_sim_time': sim_time}
    return Process('robot_state_publisher', parameters, 'robot_state_publisher')


def _servers(names: Gazebo, scene: Path, headless: bool, environment: Mapping[str, str]) -> list[Process]:
    """Return server and, unless headless, window, each a process of its own: they end cleanly then."""
    program, *words = names.command
    folders = {names.search_path: plugin_folders(names, environment), names.mesh_path: mesh_folders(names, environment)}
    paths = {variable: os.pathsep.join(map(str, places)) for variable, places in folders.items()}
    server = Process(program, package='', arguments=(*words, '-s', '-r', '-v2', str(scene)), environment=paths)
    window = Process(program, package='', arguments=(*words, '-g'), environment=paths)
    return [server] if headless else [server, window]


def _height(robot: Robot, options: GazeboOptions) -> float:
    if options.z:
        try:
            return float(options.z)
        except ValueError:
            raise DocumentError('launch arguments', [f'z is "{options.z}"; a number in m is expected']) from None
    if not robot.floating:
        return 0.0
    from sim2real_ros.description.mujoco import start_height  # noqa: PLC0415 - z:= works without MuJoCo

    return start_height(robot, options.pose) + ABOVE_GROUND_M
