# SPDX-License-Identifier: Apache-2.0
"""`sim2real show POLICY`: the resolved tables: inputs, terms with index ranges, joints, rates, hash. Nothing moves."""

from __future__ import annotations

import argparse

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from sim2real_ros.action.decode import ActionDecoder
from sim2real_ros.contract import Contract, load_contract
from sim2real_ros.contract.schema import Assumption
from sim2real_ros.errors import NotFoundError
from sim2real_ros.observation import ObservationBuilder
from sim2real_ros.observation.slots import Slot
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.statistics import load_statistics
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.safety.adoption import adopt
from sim2real_ros.tools import contract_lines
from sim2real_ros.validation.admission import examine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument('policy', help='shipped name, folder, contract YAML or ONNX file')
    parser.add_argument('--robot', help="hold it against this robot instead of the contract's own")


def main(arguments: argparse.Namespace) -> int:
    """Print the tables; the network is opened and checked on the way."""
    contract = load_contract(arguments.policy)
    robot = load_robot(arguments.robot) if arguments.robot else known_robot(contract.file.robot)
    report(Console(markup=False), contract, robot)
    return 0


def known_robot(name: str) -> Robot | None:
    """Return a robot by name; None where there is no robot file of that name."""
    try:
        return load_robot(name)
    except NotFoundError:
        return None


def report(console: Console, contract: Contract, robot: Robot | None) -> None:
    """Print the tables of a policy, and whether the robot, if it is known, can follow it."""
    runner = PolicyRunner(contract)
    console.print(_head(contract, runner, robot))
    for name, blocks in contract.observations.items():
        for b in range(len(blocks)):
            console.print(_terms(name, b, contract, runner.builder))
    for line in contract_lines.other_inputs(contract):
        console.print(line)
    for name, action in contract.file.outputs.items():
        console.print(contract_lines.action(name, action, contract))
    console.print(_joints(contract, robot))
    if contract.file.assumptions:
        _print_assumptions(console, contract.file.assumptions)
    if robot is None:
        console.print(f'robot {contract.file.robot}: there is no robot file of this name, so joints and limits are not checked')
    else:
        adopt(robot, contract)  # what the safety node will say


def _head(contract: Contract, runner: PolicyRunner, robot: Robot | None) -> Table:
    file = contract.file
    table = Table(title=f'policy {file.name}', show_header=False, title_justify='left')
    rows = {
        'contract': f'{contract.source}  id {contract.id}',
        'network': f'{contract.model_path}  sha256 {str(file.model.sha256)[:16]}...',
        'robot': file.robot,
        'rate': f'{file.rate_hz:g} Hz, network {runner.network.warm_up_ms:.2f} ms on this machine',
        'needs': ', '.join(['joint_states', *runner.builder.needs]),
        'velocity command': 'none' if file.commands.velocity is None else contract_lines.velocity(file.commands.velocity),
        'phase': 'none' if file.phase is None else contract_lines.phase(file.phase),
        **({} if file.commands.pose is None else {'goal pose': contract_lines.goal(file.commands.pose)}),
        **({} if file.motion is None else {'motion': contract_lines.motion(file.motion)}),
        'trained latency': 'not stated' if file.latency is None else f'{file.latency.trained_ms} ms',
        'golden vectors': 'none' if file.golden is None else f'{file.golden}, reproduced',
        'novelty': _novelty(contract),
        'passport': examine(contract, robot).text,
        'provenance': ', '.join(f'{k}: {v}' for k, v in file.provenance.model_dump().items() if v),
    }
    for key, value in rows.items():
        table.add_row(key, value)
    return table


def _novelty(contract: Contract) -> str:
    statistics = load_statistics(contract)
    if statistics is None:
        return 'not watched'
    made = statistics.made
    return f'{contract.file.novelty}, {made["fit"]} + {made["calibration"]} simulated episodes, {made["date"]}'


def _table(title: str, columns: tuple[str, ...], wrapped: tuple[str, ...] = ()) -> Table:
    """Return an empty table that fits into 80 characters; long cells of the columns `wrapped` take several lines."""
    table = Table(title=title, title_justify='left', box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=column not in wrapped)
    return table


def _terms(name: str, b: int, contract: Contract, builder: ObservationBuilder) -> Table:
    blocks = contract.observations[name]
    stack = blocks[b].stack
    history = '' if stack.lags == [0] else f', stacked {stack.layout} with lags {stack.lags}, filled with {stack.fill}'
    part = '' if len(blocks) == 1 else f', block {b + 1} of {len(blocks)}'
    title = f'input {name}: {builder.width(name)} numbers{part}{history}'
    table = _table(title, ('index', 'term', 'unit', 'frame or order', 'scale', 'clip'), ('term', 'frame or order', 'clip'))
    for slot in (slot for slot in builder.slots[name] if slot.block == b):
        lags = '' if list(slot.lags) == stack.lags else f' lags {list(slot.lags)}'
        some = f' of {len(slot.joints)} joints' if 0 < len(slot.joints) < len(contract.joints) else ''
        offset = f' + {_numbers(slot.offset)}' if slot.offset.any() else ''
        clip = [] if slot.clip is None else [f'[{slot.clip[0]:g}, {slot.clip[1]:g}]']
        order = [' then '.join(steps)] if len(steps := _steps(slot)) > 1 else []
        row = (f'{slot.start}:{slot.stop}', slot.name + some + lags, slot.term.unit, slot.term.frame)
        table.add_row(*row, _numbers(slot.scale) + offset, ', '.join([*clip, *order]))
    return table


def _steps(slot: Slot) -> list[str]:
    """Return what is done to a term, in order; `process` holds the idle steps as well."""
    idle = {'scale': bool((slot.scale == 1).all()), 'offset': not slot.offset.any(), 'clip': slot.clip is None}
    return [step for step in slot.process if not idle[step]]


def _numbers(values: np.ndarray) -> str:
    return f'{values[0]:g}' if (values == values[0]).all() else ' '.join(f'{v:g}' for v in values)


def _joints(contract: Contract, robot: Robot | None) -> Table:
    limits_of = f'limits of robot {robot.name}' if robot else 'limits unknown'
    title = f'joints in policy order, {limits_of}; rad, N m/rad, N m s/rad, N m, rad/s'
    table = _table(title, ('#', 'joint', 'scale', 'default', 'range', 'kp', 'kd', 'effort', 'speed'))
    decoder = ActionDecoder(contract)
    for i, joint in enumerate(contract.joints):
        extent, effort, speed = 'missing' if robot else '', '', ''
        if robot and joint in robot.joints:
            r, limits = robot.joints.index(joint), robot.limits
            extent = f'{limits.lower[r]:.2f} {limits.upper[r]:.2f}'
            effort, speed = f'{limits.effort[r]:g}', f'{limits.velocity[r]:g}'
        kp, kd = f'{contract.gains.stiffness[i]:g}', f'{contract.gains.damping[i]:g}'
        table.add_row(
            str(i), joint, f'{decoder.scale_of(joint):g}', f'{contract.default_position[i]:.2f}', extent, kp, kd, effort, speed
        )
    return table


def _print_assumptions(console: Console, assumptions: list[Assumption]) -> None:
    """Print what the importer had to assume, each with its reason below it."""
    console.print('assumptions: what the source does not say')
    for one in assumptions:
        console.print(Padding(f'{one.field} = {one.value}', (0, 0, 0, 2)))
        console.print(Padding(one.source, (0, 0, 0, 6)))
