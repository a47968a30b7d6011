# SPDX-License-Identifier: Apache-2.0
"""`sim2real evaluate POLICY`: how it follows commands in the nominal simulator, and how often randomised robots fall."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sim2real_ros.contract import Contract, load_contract
from sim2real_ros.paths import writable_file, write_text
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.sim.fleet_stack import FleetStack
from sim2real_ros.sim.randomization import Ranges, nominal
from sim2real_ros.sim.verdict import SETTLE_S, follows
from sim2real_ros.tools.arguments import not_negative, positive
from sim2real_ros.tools.progress import ticks

COMMANDS = ((0.5, 0.0, 0.0), (1.0, 0.0, 0.0), (-0.5, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
NOMINAL_S = 10.0
EPISODE_S, COMMAND_S = 20.0, 5.0
DRIFT, FOOT_DOWN = 0.1, 0.005  # m
SURVIVAL = 0.95


@dataclass(frozen=True, slots=True)
class Followed:
    """How one command was followed in the nominal simulator."""

    command: tuple[float, ...]
    measured: tuple[float, ...]
    drift: float  # m, distance from the start
    feet_lifted: float  # m, 95 % quantile over all feet
    feet_down: bool  # at the end
    fell: bool

    @property
    def good(self) -> bool:
        """Whether it meets the bar: within 15 %, and at zero command no drift and all feet down."""
        within = follows(np.array(self.measured), np.array(self.command))
        return within and not self.fell and (any(self.command) or (self.drift < DRIFT and self.feet_down))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--episodes', type=positive, default=200, help='randomised episodes of 20 s (default 200)')
    parser.add_argument('--seed', type=not_negative, default=20000, help='of the randomised episodes; training used small ones')
    parser.add_argument('--json', type=Path, help='also write the figures here')


def main(arguments: argparse.Namespace) -> int:
    """Evaluate; returns 0 when every bar is met."""
    contract = load_contract(arguments.policy)
    robot = load_robot(contract.file.robot)
    if arguments.json is not None:
        writable_file(arguments.json, '--json')
    followed = follow(robot, contract)
    fallen, limited = survive(robot, contract, arguments.episodes, arguments.seed)
    good = all(f.good for f in followed) and np.mean(~fallen) >= SURVIVAL
    _print(contract, followed, fallen, limited)
    if arguments.json is not None:
        figures = {
            'policy': contract.file.name, 'id': contract.id, 'nominal': [_figures(f) for f in followed],
            'episodes': len(fallen), 'fallen': int(fallen.sum()), 'limited_share': limited,
        }  # fmt: skip
        write_text(arguments.json, json.dumps(figures, indent=2) + '\n', '--json')
    return 0 if good else 1


def follow(robot: Robot, contract: Contract) -> list[Followed]:
    """Follow each of the commands for 10 s in the nominal simulator."""
    stack = FleetStack(robot, contract, len(COMMANDS), nominal(robot), 0)
    stack.command[:] = COMMANDS
    start = stack.fleet.qpos[:, :2].copy()
    speeds, feet = [], []
    for tick in ticks(NOMINAL_S, contract.period_s, 'nominal'):
        stack.policy_tick()
        if tick * contract.period_s >= SETTLE_S:
            speeds.append(np.column_stack((stack.fleet.lin_vel[:, :2], stack.fleet.ang_vel[:, 2])))
        feet.append(stack.fleet.foot_pos[..., 2])
    measured, drift = np.mean(speeds, axis=0), np.linalg.norm(stack.fleet.qpos[:, :2] - start, axis=1)
    lifted = np.quantile(np.array(feet), 0.95, axis=(0, 2))
    return [
        Followed(
            c,
            tuple(measured[i]),
            float(drift[i]),
            float(lifted[i]),
            bool((feet[-1][i] < FOOT_DOWN).all()),
            bool(stack.fallen[i]),
        )
        for i, c in enumerate(COMMANDS)
    ]


def survive(robot: Robot, contract: Contract, episodes: int, seed: int) -> tuple[np.ndarray, float]:
    """Run randomised episodes with changing commands and pushes; returns who fell (episodes,) and the limiter's share."""
    stack = FleetStack(robot, contract, episodes, Ranges(), seed)
    for _ in wander(stack, contract):
        pass
    return stack.fallen, stack.limited


def wander(stack: FleetStack, contract: Contract) -> Iterator[int]:
    """Run an episode of 20 s with a random command every 5 s, one in ten of them zero, and pushes; yields after each tick."""
    fleet, velocity, size = stack.fleet, contract.file.commands.velocity, len(stack.command)
    limits = np.zeros((3, 2)) if velocity is None else np.array([velocity.x, velocity.y, velocity.yaw])
    pushed = contract.period_s / fleet.ranges.push_interval_s
    for tick in ticks(EPISODE_S, contract.period_s, f'{size} randomised robots'):
        if tick % round(COMMAND_S / contract.period_s) == 0:
            stack.command[:] = fleet.rng.uniform(limits[:, 0], limits[:, 1], (size, 3))
            stack.command[fleet.rng.uniform(size=size) < 0.1] = 0
        stack.policy_tick()
        yield tick
        fleet.push(np.flatnonzero(fleet.rng.uniform(size=size) < pushed))


def _figures(followed: Followed) -> dict[str, object]:
    names = ('command', 'measured', 'drift', 'feet_lifted', 'feet_down', 'fell', 'good')
    return {name: getattr(followed, name) for name in names}


def _print(contract: Contract, followed: list[Followed], fallen: np.ndarray, limited: float) -> None:
    console = Console(markup=False)
    table = Table(title=f'{contract.file.name}: {NOMINAL_S:g} s each in the nominal simulator', title_justify='left')
    for column in ('command x, y, yaw', 'measured', 'drift m', 'feet lifted cm', 'meets the bar'):
        table.add_column(column)
    for f in followed:
        numbers = ('  '.join(f'{value:+.2f}' for value in values) for values in (f.command, f.measured))
        drift = '' if any(f.command) else f'{f.drift:.3f}'
        table.add_row(*numbers, drift, f'{100 * f.feet_lifted:.1f}', 'fell' if f.fell else 'yes' if f.good else 'no')
    console.print(table)
    survived = int((~fallen).sum())
    verdict = 'meets the bar' if survived >= SURVIVAL * len(fallen) else 'misses the bar'
    console.print(
        f'{survived} of {len(fallen)} randomised episodes of {EPISODE_S:g} s without a fall, '
        f'pushes of {Ranges().push_speed:g} m/s ({verdict}: {SURVIVAL:.0%}); the limiter altered {limited:.2%} of the torques'
    )
