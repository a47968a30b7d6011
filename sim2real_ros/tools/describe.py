# SPDX-License-Identifier: Apache-2.0
"""`sim2real describe ROBOT --for gazebo|ros2_control|mujoco|controllers`: the robot as a backend wants to have it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sim2real_ros.description import Description, controllers, for_gazebo, for_ros2_control, gazebo
from sim2real_ros.description.gazebo_names import GENERATIONS
from sim2real_ros.errors import OutputError
from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.tools.arguments import namespace

BACKENDS = ('gazebo', 'ros2_control', 'mujoco', 'controllers')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('robot', help='shipped name or robot YAML file')
    parser.add_argument('--for', dest='backend', choices=BACKENDS, required=True, help='gazebo and ros2_control: URDF; '
                        'mujoco: MJCF; controllers: parameter file of the ros2_control controllers')  # fmt: skip
    parser.add_argument('-o', '--output', type=Path, help='file to write; without it the document is printed')
    parser.add_argument('--controllers', type=Path, metavar='FILE', help='parameter file that the plug-in in Gazebo reads; '
                        'by default <output>.controllers.yaml, which is then written too')  # fmt: skip
    parser.add_argument('--plugin', default='', metavar='CLASS', help='hardware class for ros2_control, or mock; '
                        "without it the URDF's own <ros2_control> blocks are checked and kept")  # fmt: skip
    generations = f'{", ".join(GENERATIONS)}; by default what is installed (harmonic: and every later one)'
    parser.add_argument('--gazebo', default='', metavar='GENERATION', help=generations)
    parser.add_argument('--pose', default='', help="pose in which it begins; by default the robot file's start_pose")
    parser.add_argument('--namespace', type=namespace, default='', help='of the controller manager')


def main(arguments: argparse.Namespace) -> int:
    """Write or print the document; what was replaced is told on stderr."""
    robot, out = load_robot(arguments.robot), arguments.output
    if out is not None:
        out = writable_file(_no_source(out.expanduser(), robot), '-o')
    if arguments.backend == 'controllers':
        described = Description(controllers(robot, arguments.namespace))
    elif arguments.backend == 'ros2_control':
        described = for_ros2_control(robot, arguments.plugin, start=arguments.pose)
    elif arguments.backend == 'gazebo':
        parameters = _parameters(arguments, out, robot)
        described = for_gazebo(robot, gazebo(arguments.gazebo), parameters, namespace=arguments.namespace, start=arguments.pose)
        if arguments.controllers is None:
            write_text(parameters, controllers(robot, arguments.namespace), '--controllers')
    else:
        from sim2real_ros.description.mujoco import for_mujoco  # noqa: PLC0415 - the others need no MuJoCo

        described = for_mujoco(robot, start=arguments.pose)
    for note in described.notes:
        print(note, file=sys.stderr)
    if out is None:
        print(described.text, end='')
    else:
        write_text(out, described.text, '-o')
    return 0


def _parameters(arguments: argparse.Namespace, out: Path | None, robot: Robot) -> Path:
    """Return where the plug-in finds the controllers' parameters."""
    if arguments.controllers is not None:
        return Path(arguments.controllers).expanduser().resolve()
    if out is None:
        raise OutputError('the plug-in in Gazebo reads a parameter file: give -o FILE, or --controllers FILE with its path')
    return writable_file(_no_source(out.with_suffix('.controllers.yaml'), robot), '-o').resolve()


def _no_source(path: Path, robot: Robot) -> Path:
    """Return a path to write to; raises OutputError where that would replace what the document is made from."""
    if path.exists() and any(path.samefile(source) for source in (robot.path, robot.urdf)):
        raise OutputError(f'-o: {path} is a file that the document is made from; give another name')
    return path
