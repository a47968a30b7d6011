# SPDX-License-Identifier: Apache-2.0
"""`sim2real train go2_velocity`: train the shipped policy again, or go on where an earlier run stopped."""

from __future__ import annotations

import argparse
import datetime
import os
from pathlib import Path

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import DependencyError, NotFoundError
from sim2real_ros.paths import writable_folder
from sim2real_ros.tools.arguments import not_negative, positive

TASKS = ('go2_velocity',)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('task', help=f'what to train: {", ".join(TASKS)}')
    parser.add_argument('-o', '--output', type=Path, help='policy folder to write (default runs/TASK/policy)')
    parser.add_argument('--run', type=Path, help='folder of checkpoints and logs (default runs/TASK)')
    parser.add_argument('--iterations', type=positive, help='updates in all, 12,288 control steps each')
    parser.add_argument('--environments', type=positive, default=512, help='robots simulated at once')
    parser.add_argument('--seed', type=not_negative, default=1)
    parser.add_argument('--terrain', action='store_true', help='slopes, bumps and steps instead of a flat floor')
    parser.add_argument(
        '--start',
        help='policy of an earlier training to begin from, where the run has no checkpoint: name, folder or ONNX file',
    )
    parser.add_argument('--export-only', action='store_true', help='write the policy of the newest checkpoint, train nothing')


def main(arguments: argparse.Namespace) -> int:
    """Train and export."""
    if arguments.task not in TASKS:
        raise NotFoundError(f'there is no training task "{arguments.task}"; tasks are {", ".join(TASKS)}')
    os.environ.setdefault('OMP_NUM_THREADS', str(min(os.cpu_count() or 1, 4)))  # spinning threads starve the physics
    try:
        from sim2real_ros.training import export, go2_velocity  # noqa: PLC0415 - torch only where one trains
    except ImportError as error:
        raise DependencyError(f'training needs more packages ({error}): pip install "sim2real_ros[train]"') from None
    run = arguments.run or Path('runs') / arguments.task
    output = arguments.output or run / 'policy'
    if arguments.export_only:
        if not go2_velocity.checkpoints(run):
            raise NotFoundError(f'{run} holds no checkpoint (model_*.pt) to export')
        writable_folder(output, '--output')
        env = go2_velocity.make_environment(arguments.environments, arguments.seed, terrain=arguments.terrain)
        runner = go2_velocity.make_runner(env, run)
    else:
        start = load_contract(arguments.start).model_path if arguments.start is not None else None
        writable_folder(run, '--run')
        writable_folder(output, '--output')
        usual = go2_velocity.TERRAIN_ITERATIONS if arguments.terrain else go2_velocity.ITERATIONS
        runner = go2_velocity.train(
            run, arguments.iterations or usual, arguments.seed, arguments.environments, terrain=arguments.terrain, start=start
        )
    done = runner.current_learning_iteration
    options = ' --terrain' * arguments.terrain + f' --start {arguments.start}' * (arguments.start is not None)
    provenance = {
        'trainer': f'sim2real train {arguments.task}{options}',
        'date': datetime.date.today().isoformat(),
        'notes': f'{done} iterations of {arguments.environments} robots x {go2_velocity.STEPS} ticks, seed {arguments.seed}',
    }
    env = go2_velocity.make_environment(64, arguments.seed + 1000)
    export.export_policy(runner, env, output, provenance)
    print(f'wrote {output}; try it: sim2real evaluate {output}')
    return 0
