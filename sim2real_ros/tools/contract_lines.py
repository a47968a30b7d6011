# SPDX-License-Identifier: Apache-2.0
"""Parts of a contract in one line each, for `sim2real show`."""

from __future__ import annotations

from collections.abc import Iterator

from sim2real_ros.contract import Contract
from sim2real_ros.contract.schema import Action, Counter, Motion, Phase, PoseCommand, VelocityCommand

BASES = {'last_target': 'last target', 'measured': 'measured position', 'motion': 'reference position'}


def velocity(command: VelocityCommand) -> str:
    """Tell the range of a velocity command."""
    ranges = f'x {command.x} m/s, y {command.y} m/s, yaw {command.yaw} rad/s'
    return f'{ranges}, zero below {command.deadband:g}, zero after {command.timeout_s:g} s of silence'


def goal(pose: PoseCommand) -> str:
    """Tell what a goal pose is."""
    initial = ' '.join(f'{number:g}' for number in pose.initial)
    return f'in the frame {pose.frame}, quaternion {pose.quaternion}, before the first goal {initial}'


def phase(clock: Phase) -> str:
    """Tell how a gait clock runs and rests."""
    rest = ''
    if clock.stop_at_zero_command:
        at = '0 in every number' if clock.standing_phase is None else f'{clock.standing_phase:g} periods'
        rest = f', rests at {at} while the command is {f"below {clock.standing_below:g}" if clock.standing_below else "zero"}'
    first = ', begins at tick 1' if clock.first_tick else ''
    return f'{clock.period_s:g} s, {clock.encoding} of offsets {clock.offsets}{first}{rest}'


def motion(reference: Motion) -> str:
    """Tell where a reference motion comes from."""
    told = ', '.join(f'{quantity} from {name}' for quantity, name in reference.quantities.items())
    if reference.source == 'network':
        source = 'played by the network'
    else:
        source = f'{reference.file} at {reference.rate_hz:g} Hz, then {reference.end}'
    if reference.anchor is None:
        return f'{source}: {told}'
    chain = ', '.join(f'{joint} about {axis}' for joint, axis in reference.anchor.chain) or 'the base itself'
    heading = ', headings from their start' if reference.align_heading else ''
    return f'{source}: {told}; quaternions {reference.quaternion}; anchor {reference.anchor.body}: {chain}{heading}'


def other_inputs(contract: Contract) -> Iterator[str]:
    """Tell the inputs that are not made of terms."""
    for name, state in contract.states.items():
        initial = state.initial if isinstance(state.initial, str) else f'{len(state.initial)} numbers of the contract'
        yield f'recurrent state: {name} <- {state.state} (initial {initial})'
    for name, counter in contract.counters.items():
        yield f'input {name}: number of the tick, from {counter.start}{_end(counter)}'
    for name in contract.flags:
        yield f'input {name}: 1 in the first tick, then 0'


def _end(counter: Counter) -> str:
    return '' if counter.last is None else f' to {counter.last}, then {counter.end}'


def action(name: str, part: Action, contract: Contract) -> str:
    """Tell how targets are made of an output."""
    source = contract.tensors[name]
    where = f'output {name}' if source == name else f'output {name} (tensor {source})'
    columns = '' if part.columns is None else f', columns {part.columns}'
    base = [BASES[part.relative_to]] if part.relative_to is not None else []
    offset = 'its own offsets' if isinstance(part.offset, dict) else part.offset
    terms = ' + '.join([*base, *([] if base and offset == 'zeros' else [offset]), 'scale * action'])
    clip = 'no clip' if part.clip is None else f'clip {part.clip}'
    low_pass = '' if part.filter is None else f', first-order filter of share {part.filter.share:g}'
    bounds = '' if part.target_clip is None else f', targets of {", ".join(part.target_clip)} clipped'
    return f'{where}{columns}: {part.type}, target = {terms}, {clip}{low_pass}{bounds}'
