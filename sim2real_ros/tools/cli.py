# SPDX-License-Identifier: Apache-2.0
"""`sim2real <command>`: dispatches to the files of this folder; every user's mistake ends in one message and code 1."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import Any

import sim2real_ros
from sim2real_ros.errors import Sim2RealError

COMMANDS = {
    'run': 'the whole stack on the embedded simulator',
    'import': 'a policy of another trainer, with every assumption listed',
    'show': 'what the stack understood of a policy',
    'check': 'everything that can be found out about a policy without a robot',
    'parity': "whether a contract builds what the trainer's deployment fed its network, and why not",
    'preflight': 'what must hold of a running stack before the robot is armed, and whether each torque reaches its joint',
    'describe': 'a robot as Gazebo, ros2_control or MuJoCo wants to have it',
    'certify': "what a robot's joints can brake, and which limits the safety node therefore promises",
    'pack': 'a whole policy in one ONNX file',
    'validate': 'whether a policy may go on hardware: randomised worlds, a verdict, where and why it fails',
    'evaluate': 'how well a policy follows commands and survives randomised robots',
    'record': 'record a running stack as a rosbag2 in MCAP',
    'compare': 'two recorded runs of one policy side by side',
    'trips': 'what happened around each stop of the safety node',
    'novelty': 'write the statistics by which the stack notices that a policy sees something new',
    'train': 'train a shipped policy again',
    'schema': 'print the JSON schema of the contract or of the robot file',
}
MODULES = {'import': 'import_policy'}  # where the file has another name than the command


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = argparse.ArgumentParser(prog='sim2real', description='Bring a trained policy to a robot.')
    parser.add_argument('--version', action='version', version=sim2real_ros.__version__)
    commands = parser.add_subparsers(dest='tool', metavar='COMMAND', required=True)
    given = (arguments if arguments is not None else sys.argv[1:])[:1]
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if [name] == given:  # only the chosen command is imported: `show` must not need MuJoCo
            _module(name).add_arguments(command)
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end as on Ctrl-C: what was started is stopped
    try:
        return int(_module(chosen.tool).main(chosen))
    except Sim2RealError as error:
        print(f'sim2real {chosen.tool}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0


def _module(command: str) -> Any:
    return importlib.import_module(f'sim2real_ros.tools.{MODULES.get(command, command)}')


if __name__ == '__main__':
    raise SystemExit(main())
