# SPDX-License-Identifier: Apache-2.0
"""`sim2real run`: start the real nodes as child processes, operate them as a person would, and say what happened.

The summary comes from the simulator's own trace, not from what any node believes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim2real_ros import bringup
from sim2real_ros.contract import load_contract
from sim2real_ros.document import read_yaml
from sim2real_ros.errors import DocumentError
from sim2real_ros.paths import writable_file
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.recording.writer import METADATA, new_folder, require_rosbags
from sim2real_ros.robot import load_robot
from sim2real_ros.safety.adoption import adopt
from sim2real_ros.tools.arguments import namespace
from sim2real_ros.tools.processes import Stack, require_ros
from sim2real_ros.tools.summary import Segment, summarise

if TYPE_CHECKING:
    from sim2real_ros.ros.operator import Operator

LOG_LEVELS = ('debug', 'info', 'warn', 'error', 'fatal')
STOP_S = 1.5  # of zero command before the pose move
TOUR = (  # share of the time, command x y yaw
    (0.30, (0.5, 0.0, 0.0)),
    (0.20, (1.0, 0.0, 0.0)),
    (0.20, (0.0, 0.0, 1.0)),
    (0.15, (0.0, 0.3, 0.0)),
    (0.15, (0.0, 0.0, 0.0)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('--policy', default='go2_velocity', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--robot', default='go2', help='shipped name or robot YAML file')
    parser.add_argument('--seconds', type=float, default=20.0, help='simulated time to walk (default 20)')
    parser.add_argument(
        '--command',
        type=float,
        nargs=3,
        metavar=('X', 'Y', 'YAW'),
        help='one command (m/s, m/s, rad/s) instead of a tour',
    )
    parser.add_argument('--namespace', type=namespace, default='', help='namespace of nodes and topics')
    parser.add_argument('--view', action='store_true', help="open MuJoCo's viewer")
    parser.add_argument('--free', action='store_true', help='free running in real time, as hardware; default is lockstep')
    parser.add_argument('--real-time-factor', type=float, default=1.0, help='simulated s per real s; 0: as fast as possible')
    parser.add_argument(
        '--realtime-priority', type=int, default=0, metavar='N', help='SCHED_FIFO priority of the nodes, 1 to 98'
    )
    parser.add_argument('--output', choices=('torque', 'impedance'), default='torque', help='what the simulated drives take')
    parser.add_argument('--params-file', default='', help='ROS 2 parameter file')
    parser.add_argument('--trace', type=Path, help="keep the simulator's trace in this npz file")
    parser.add_argument(
        '--record', type=Path, metavar='FOLDER', help='record every topic into this new folder, see docs/recording.md'
    )
    parser.add_argument('--log-level', default='warn', choices=LOG_LEVELS, help='of the nodes')


def main(arguments: argparse.Namespace) -> int:
    """Run the stack; returns 0 only if the robot really walked."""
    contract = load_contract(arguments.policy)
    adopt(load_robot(arguments.robot), contract)
    PolicyRunner(contract)  # opens and checks the network: a wrong file starts no process
    _check(arguments)
    # a simulated robot must never meet a real one on the network
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    require_ros()
    from sim2real_ros.ros.operator import Operator  # noqa: PLC0415 - rclpy only where ROS is used

    with tempfile.TemporaryDirectory() as folder:
        trace = arguments.trace or Path(folder) / 'trace.npz'
        options = bringup.Options(
            policy=arguments.policy, robot=arguments.robot, namespace=arguments.namespace, headless=not arguments.view,
            lockstep=not arguments.free, real_time_factor=arguments.real_time_factor, params_file=arguments.params_file,
            log_level=arguments.log_level, trace_file=str(trace), output=arguments.output,
            record='false' if arguments.record is None else str(arguments.record),
            realtime_priority=arguments.realtime_priority,
        )  # fmt: skip
        print(f'starting {contract.file.name} on {arguments.robot}: policy, safety, watchdog and simulator, four processes')
        with Stack(bringup.simulation(options), options) as stack, Operator(options.namespace, stack.check) as operator:
            segments, whole = _operate(operator, arguments)
            mode = operator.mode
        code = summarise(trace, segments, mode, contract, whole=whole)
    if arguments.record is not None:
        _say_recording(arguments.record)
    return code


def _say_recording(folder: Path) -> None:
    if (folder / METADATA).is_file():
        print(f'the recording is in {folder}; beside another run: sim2real compare {folder} OTHER --html report.html')
    else:
        print(f'the recording in {folder} is not whole; the message of recorder_node is above')


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what the nodes would only answer with a traceback."""
    faults = []
    if not 1 <= arguments.seconds <= 3600:
        faults.append(f'--seconds is {arguments.seconds:g}; 1 to 3600 are possible')
    if not 0 <= arguments.real_time_factor <= 100:
        faults.append(f'--real-time-factor is {arguments.real_time_factor:g}; 0 (as fast as possible) to 100 are possible')
    if arguments.command is not None and not np.isfinite(arguments.command).all():
        faults.append('--command: three finite numbers are expected')
    if arguments.params_file:
        read_yaml(Path(arguments.params_file))
    if arguments.trace is not None:
        writable_file(arguments.trace, '--trace')
    if arguments.record is not None:
        require_rosbags()
        arguments.record = new_folder(arguments.record, '--record')
    if faults:
        raise DocumentError('arguments', faults)


def _operate(operator: Operator, arguments: argparse.Namespace) -> tuple[list[Segment], bool]:
    """Stand up, walk, lie down; returns when each command was given, in simulated time, and whether all were to their ends."""
    operator.wait(lambda: operator.time > 0, 30, 'the simulator sent no clock')
    if arguments.record is not None:
        operator.wait(lambda: operator.listeners > 1, 30, 'the recorder did not start')
    operator.insist('damp', 20)
    operator.insist('pose', 60)
    print('standing up')
    operator.insist('activate', 60)
    operator.wait(lambda: operator.mode == 'active', 5, 'the mode active was granted but not announced')
    print('walking')
    segments = []
    tour = [(1.0, tuple(arguments.command))] if arguments.command else TOUR
    for share, command in tour:
        if operator.mode != 'active':
            break
        begin, seconds = operator.time, share * arguments.seconds
        factor = arguments.real_time_factor or 1.0
        operator.walk(np.array(command), seconds, 30 + 20 * seconds / factor)
        segments.append(Segment(begin, operator.time, command))
    whole = operator.mode == 'active'
    if whole:
        print('stopping')
        operator.walk(np.zeros(3), STOP_S, 60)
        operator.insist('pose', 5)
        end = operator.time + STOP_S
        operator.wait(lambda: operator.time >= end or operator.mode != 'pose', 60, 'simulated time stood still')
        operator.insist('damp', 5)
        operator.wait(lambda: operator.mode == 'damping', 5, 'the mode damping was granted but not announced')
    return segments, whole
