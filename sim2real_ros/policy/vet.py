# SPDX-License-Identifier: Apache-2.0
"""Vetting a policy in a process of its own, while another one walks the robot.

A file that somebody hands over may do anything to the process that opens it: take all its memory, never return, or crash
onnxruntime. It must do so somewhere else first.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

from sim2real_ros.errors import Sim2RealError

TIMEOUT_S = 30.0
MEMORY = 4 << 30  # bytes of address space


def vet(policy: str, robot: str, timeout_s: float = TIMEOUT_S) -> str:
    """Load a policy for a robot in another process.

    Returns:
        '' when it is in order, else the whole reason.
    """
    command = [sys.executable, '-m', __name__, policy, robot]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return f'{policy} was not loaded within {timeout_s:g} s'
    except ValueError as error:  # a name with a null character
        return f'{policy!r} is no policy: {error}'
    if done.returncode < 0:
        return f'{policy} crashed the process that checked it ({signal.Signals(-done.returncode).name}): the file is damaged'
    try:
        return str(json.loads(done.stdout.splitlines()[-1])['reason'])
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ['no message'])[-1]
        return f'{policy} could not be checked (exit code {done.returncode}): {last}'


def limit_memory() -> None:
    """Have this process fail, not the machine, when a file asks for too much."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def load(policy: str, robot: str) -> str:
    """Load a policy for a robot in this process; returns the reason against it, '' when it is in order."""
    try:
        from sim2real_ros.policy.pilot import Pilot  # noqa: PLC0415 - after the limits
        from sim2real_ros.robot import load_robot  # noqa: PLC0415

        Pilot.of(load_robot(robot), policy)
    except Sim2RealError as error:
        return str(error)
    except MemoryError:
        return f'{policy} needs more than {MEMORY >> 30} GiB of memory'
    except Exception as error:
        return f'{policy} cannot be loaded: {error!r}'
    return ''


def main() -> int:
    """Load the policy named by the first argument for the robot named by the second; print the reason against it as JSON."""
    os.nice(10)  # the one that walks goes first
    limit_memory()
    reason = load(*sys.argv[1:])
    print(json.dumps({'reason': reason}), flush=True)
    return int(bool(reason))


if __name__ == '__main__':
    raise SystemExit(main())
