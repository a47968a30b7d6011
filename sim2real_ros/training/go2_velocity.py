# SPDX-License-Identifier: Apache-2.0
"""The training run `go2_velocity`: PPO by rsl_rl, its settings, and how it is resumed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from sim2real_ros.contract import Contract
from sim2real_ros.contract.contract import resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import read_yaml, validate
from sim2real_ros.errors import NotFoundError
from sim2real_ros.paths import share_directory
from sim2real_ros.robot import load_robot
from sim2real_ros.sim.ground import Field
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.training.velocity_env import VelocityEnv
from sim2real_ros.training.warm_start import warm_start

NAME = 'go2_velocity'
ENVIRONMENTS, STEPS = 512, 24  # robots, and ticks of each between two updates
ITERATIONS, TERRAIN_ITERATIONS = 950, 1000  # from scratch on the flat; from that policy on terrain
FIRST_STD, WARM_STD = 0.8, 0.25  # of the actions
PUSH_SPEED = 0.7  # m/s, harder than what the policy is judged by
SLOPE = 0.26  # rad; of every robot its own, from level to this
BUMPS, STEPS_UP = 0.045, 0.08  # m; see `Field.mixed`
NETWORK = {'class_name': 'MLPModel', 'hidden_dims': [256, 128, 64], 'activation': 'elu', 'obs_normalization': True}


def training_contract() -> Contract:
    """Return the contract to train for; it names no network file yet."""
    path = share_directory() / 'config' / 'training' / f'{NAME}.yaml'
    return resolve(validate(ContractFile, read_yaml(path), str(path)), str(path), None)


def make_environment(size: int = ENVIRONMENTS, seed: int = 1, threads: int = 0, *, terrain: bool = False) -> VelocityEnv:
    """Return the training environment: the flat one, or slopes, bumps and steps."""
    contract = training_contract()
    ranges = Ranges(push_speed=PUSH_SPEED)
    if terrain:
        ranges = replace(ranges, slope=(0.0, SLOPE), centre_of_mass=0.05, imu_mount=0.025, gyro_bias=0.025, armature=(0.5, 2.0))
    return VelocityEnv(
        load_robot(contract.file.robot), contract, size, ranges=ranges, seed=seed, threads=threads,
        ground=Field.mixed(BUMPS, STEPS_UP) if terrain else None,
    )  # fmt: skip


def settings(env: VelocityEnv, save_interval: int, std: float, entropy: float) -> dict[str, Any]:
    """Return rsl_rl's configuration; `std` is that of the first actions, `entropy` the weight of its growth."""
    distribution = {'class_name': 'GaussianDistribution', 'init_std': std, 'std_type': 'scalar'}
    return {
        'num_steps_per_env': STEPS,
        'save_interval': save_interval,
        'obs_groups': {'actor': ['actor'], 'critic': ['critic']},
        'actor': {**NETWORK, 'distribution_cfg': distribution},
        'critic': dict(NETWORK),
        'logger': 'tensorboard',
        'algorithm': {
            'class_name': 'PPO',
            'num_learning_epochs': 4,
            'num_mini_batches': 4,
            'gamma': 0.99,
            'lam': 0.95,
            'entropy_coef': entropy,
            'learning_rate': 1e-3,
            'schedule': 'adaptive',
            'desired_kl': 0.01,
            'symmetry_cfg': {'data_augmentation_func': env.mirror(), 'use_data_augmentation': True},
        },
    }


def checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first."""
    numbered = [
        (int(match[1]), path) for path in folder.glob('model_*.pt') if (match := re.fullmatch(r'model_(\d+)', path.stem))
    ]
    return [path for _, path in sorted(numbered)]


def make_runner(env: VelocityEnv, folder: Path | None, save_interval: int = 50, start: Path | None = None) -> OnPolicyRunner:
    """Return a runner that continues from the newest checkpoint of a folder, where there is one.

    Args:
        env: to train in.
        folder: of checkpoints and logs.
        save_interval: iterations between checkpoints.
        start: exported policy to begin from where there is no checkpoint; see `warm_start`.
    """
    std, entropy = (FIRST_STD, 0.006) if start is None else (WARM_STD, 0.001)  # a policy that walks need not search any more
    runner = OnPolicyRunner(
        env, settings(env, save_interval, std, entropy), log_dir=None if folder is None else str(folder), device='cpu'
    )
    existing = checkpoints(folder) if folder is not None else []
    if existing:
        runner.load(str(existing[-1]))
    elif start is not None:
        warm_start(runner, start)
    return runner


def train(
    folder: Path,
    iterations: int,
    seed: int = 1,
    size: int = ENVIRONMENTS,
    save_interval: int = 50,
    *,
    terrain: bool = False,
    start: Path | None = None,
) -> OnPolicyRunner:
    """Train until a number of iterations is reached, the ones of earlier sessions included.

    Args:
        folder: for checkpoints and logs; an interrupted run goes on from there.
        iterations: in all.
        seed: of weights and worlds.
        size: number of robots.
        save_interval: iterations between checkpoints.
        terrain: slopes, bumps and steps instead of a flat floor.
        start: exported policy to begin from; None for random weights.
    """
    torch.manual_seed(seed)
    env = make_environment(size, seed, terrain=terrain)
    folder.mkdir(parents=True, exist_ok=True)
    runner = make_runner(env, folder, save_interval, start)
    left = iterations - runner.current_learning_iteration
    if left <= 0:
        raise NotFoundError(f'{folder} already holds {runner.current_learning_iteration} iterations; ask for more than that')
    runner.learn(left)
    return runner
