# SPDX-License-Identifier: Apache-2.0
"""`sim2real novelty POLICY`: write the statistics that the novelty monitor needs, of what the policy sees in simulation."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import asdict
from pathlib import Path

import numpy as np

from sim2real_ros.contract import Contract, load_contract
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.paths import writable_file
from sim2real_ros.policy.components import Components
from sim2real_ros.policy.statistics import ALPHA, ObservationStatistics, fit
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.rotations import tilt
from sim2real_ros.sim.fleet_stack import FleetStack
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.sim.verdict import FALL_TILT
from sim2real_ros.tools.arguments import not_negative, positive
from sim2real_ros.tools.evaluate import EPISODE_S, wander

FILE = 'statistics.npz'
FIT_SHARE = 1 / 3  # of the episodes, for ranges and covariance; the others calibrate the thresholds
LEAST = 600  # episodes: with fewer than 399 that calibrate, two scores cannot share 0.5 % of false alarms
LEAN = 0.5 * FALL_TILT  # an episode in which a robot leans further is not what "familiar" should mean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--episodes', type=positive, default=660, help='randomised episodes of 20 s (default 660)')
    parser.add_argument('--seed', type=not_negative, default=30000, help='of the episodes; evaluate has 20000, training 1')
    parser.add_argument('-o', '--output', type=Path, help=f'file to write (default {FILE} beside the network)')


def main(arguments: argparse.Namespace) -> int:
    """Roll the policy out, write the file, say what to do with it."""
    contract = load_contract(arguments.policy)
    assert contract.folder is not None  # it was read from a file
    if arguments.episodes < LEAST:
        raise Sim2RealError(f'--episodes {arguments.episodes}: {ALPHA:.1%} of false alarms need {LEAST} or more')
    path = writable_file(arguments.output or contract.folder / FILE, '--output')
    statistics = measure(load_robot(contract.file.robot), contract, arguments.episodes, arguments.seed)
    statistics.save(path)
    reach, distance = statistics.thresholds
    made = statistics.made
    print(
        f'wrote {path}: {made["fit"]} episodes for the ranges, {made["calibration"]} for the thresholds '
        f'(reach {reach:.2f}, distance {distance:.2f}); {made["left_out"]} left out, '
        f'in which the robot leaned beyond {LEAN:g} rad'
    )
    if contract.file.novelty != path.name:
        print(f'to use it, add this line to {contract.source}:  novelty: {path.name}')
    return 0


def measure(robot: Robot, contract: Contract, episodes: int, seed: int) -> ObservationStatistics:
    """Roll a policy out on randomised robots and make the statistics of what it saw and did.

    Raises:
        Sim2RealError: so many robots fell that too few episodes are left.
    """
    components, ranges = Components(contract), Ranges()
    stack = FleetStack(robot, contract, episodes, ranges, seed)
    ticks, upright = record(stack, contract, components)
    split = round(FIT_SHARE * episodes)
    seen, calibration = ticks[:, :split][:, upright[:split]], ticks[:, split:][:, upright[split:]]
    made = {
        'policy': contract.file.name, 'network': contract.file.model.sha256, 'date': datetime.date.today().isoformat(),
        'seed': seed, 'episode_s': EPISODE_S, 'fit': seen.shape[1], 'calibration': calibration.shape[1],
        'left_out': int((~upright).sum()), 'alpha': ALPHA, 'ranges': asdict(ranges),
    }  # fmt: skip
    try:
        return fit(components.parts, seen.reshape(-1, seen.shape[-1]), calibration, made)
    except ValueError as error:
        raise Sim2RealError(
            f'{made["left_out"]} of {episodes} robots fell or nearly fell ({error}): give more --episodes'
        ) from None


def record(stack: FleetStack, contract: Contract, components: Components) -> tuple[np.ndarray, np.ndarray]:
    """Run an episode on every robot of a stack.

    Returns:
        What each policy saw and did, (ticks, B, d) float32, and which robots stayed upright, (B,).
    """
    runner, upright, seen = stack.runner, ~stack.fallen, []
    for _ in wander(stack, contract):
        seen.append(components.join(runner.observation, runner.action).astype(np.float32))
        upright &= ~stack.fallen & (tilt(stack.fleet.quat_xyzw) < LEAN)
    return np.array(seen), upright
