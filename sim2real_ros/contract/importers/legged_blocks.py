# SPDX-License-Identifier: Apache-2.0
"""Observation of legged_rl_deploy: terms, and how their frames are put together: stack, layout.blocks or assemble."""

from __future__ import annotations

from typing import Any

from sim2real_ros.contract.importers.draft import Imported
from sim2real_ros.contract.importers.legged_steps import Steps
from sim2real_ros.contract.importers.parts import clock
from sim2real_ros.contract.importers.sources import Keys, to_number

TERMS: dict[str, dict[str, str]] = {
    'base_ang_vel_B': {'term': 'base_ang_vel'},
    'projected_gravity': {'term': 'projected_gravity'},
    'velocity_commands': {'term': 'velocity_command'},
    'joint_pos': {'term': 'joint_pos'},
    'joint_vel': {'term': 'joint_vel'},
    'last_action': {'term': 'last_action', 'value': 'raw'},
    'gait_phase_2': {'term': 'phase'},
    'eulerZYX_rpy': {'term': 'base_rpy'},
    'roll_pitch': {'term': 'base_roll_pitch'},
}
WARMUPS = {'repeat_first': 'first', 'zero': 'zeros'}


def observation_input(keys: Keys, imported: Imported, pose: list[float]) -> dict[str, Any]:
    """Return the observation of a draft: one, or several blocks side by side."""
    observations = keys.below('observations')
    uses = _uses(observations.below('terms'), imported, pose)
    if observations.data.get('layout') is not None:
        blocks = [_block(observations, block, uses, imported) for block in _list(observations.below('layout'), 'blocks')]
    elif observations.data.get('assemble') is not None:
        blocks = [_assembled(observations, block, uses) for block in _list(observations, 'assemble')]
    else:
        blocks = [_stacked(observations, uses)]
    return blocks[0] if len(blocks) == 1 else {'blocks': blocks}


def _uses(terms: Keys, imported: Imported, pose: list[float]) -> dict[str, dict[str, Any]]:
    uses = {}
    for name, entry in terms.data.items():
        term = Keys(entry or {}, terms.source, f'{terms.where}.{name}', terms.faults)
        if name not in TERMS:
            term.fault('', f'this observation is not known here; known are {", ".join(TERMS)}')
            continue
        if name == 'gait_phase_2':
            _phase(term, imported)
        steps = Steps.read(term, None)
        use: dict[str, Any] = dict(TERMS[name])
        if name == 'joint_pos' and steps.order[:1] == ['offset']:
            if steps.offset == [-value for value in pose]:  # the pose stands twice in the file: here negated, and in the action
                use, steps.order = {'term': 'joint_pos_rel'}, steps.order[1:]
            else:
                imported.notes.append('The offset of joint_pos is not minus the offset of the action: two poses in one file.')
        uses[name] = steps.put(use, term)
    return uses


def _phase(term: Keys, imported: Imported) -> None:
    period = to_number((term.data.get('params') or {}).get('cycle_time'))
    if period is None or period <= 0:
        term.fault('params.cycle_time', 'a gait_phase_2 needs its period in s')
        return
    imported.contract['phase'] = clock(period)
    why = 'policy_slot.cpp counts from the start of the program, not of the policy; here the clock starts with the policy'
    imported.assume('phase.first_tick', 0, why, put=False)


def _stacked(observations: Keys, uses: dict[str, dict[str, Any]]) -> dict[str, Any]:
    stack = Keys(observations.data.get('stack') or {}, observations.source, 'policy.observations.stack', observations.faults)
    length = max(1, stack.whole('length', 1))
    return _frames(observations, list(uses.values()), _ordered(stack, range(length)), 'first')


def _block(observations: Keys, data: Any, uses: dict[str, dict[str, Any]], imported: Imported) -> dict[str, Any]:
    block = Keys(data, observations.source, 'policy.observations.layout.blocks', observations.faults)
    kind = block.data.get('kind')
    fill = _warmup(observations)
    if kind == 'current_frame':
        return _frames(observations, list(uses.values()), [0], fill)
    if kind == 'current_terms':
        return _frames(observations, _chosen(block, uses), [0], fill)
    if kind != 'history_frame':
        block.fault('kind', f'current_frame, history_frame or current_terms is expected, not {kind!r}')
        return {}
    length, now = block.whole('length'), bool(block.data.get('include_current', False))
    if fill == 'first' and not now:
        why = 'repeat_first without the current frame: upstream feeds zeros in the very first tick, here the first frame'
        imported.assume('inputs', 'first', why, put=False)
    return _frames(observations, list(uses.values()), _ordered(block, range(0 if now else 1, length + (0 if now else 1))), fill)


def _assembled(observations: Keys, data: Any, uses: dict[str, dict[str, Any]]) -> dict[str, Any]:
    block = Keys(data, observations.source, 'policy.observations.assemble', observations.faults)
    lags = block.indices('order', 1000, (0,))
    own = block if 'history_warmup' in block else observations
    return _frames(observations, _chosen(block, uses), lags, _warmup(own))


def _chosen(block: Keys, uses: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    names = block.names('terms')
    unknown = [name for name in names if name not in uses]
    if unknown:
        block.fault('terms', f'{", ".join(unknown)} not among observations.terms, which are {", ".join(uses)}')
    return [dict(uses[name]) for name in names if name in uses]


def _frames(observations: Keys, terms: list[dict[str, Any]], lags: list[int], fill: str) -> dict[str, Any]:
    if not lags or not terms:
        observations.fault('', 'a part of the observation is empty')
    return {'stack': {'lags': lags, 'layout': 'frame_major', 'fill': fill}, 'terms': [dict(use) for use in terms]}


def _ordered(keys: Keys, lags: range) -> list[int]:
    order = keys.data.get('order', 'oldest_first')
    if order not in ('oldest_first', 'newest_first'):
        keys.fault('order', f'oldest_first or newest_first is expected, not {order!r}')
    return list(lags) if order == 'newest_first' else list(reversed(lags))


def _warmup(keys: Keys) -> str:
    value = keys.data.get('history_warmup', 'repeat_first')
    if value not in WARMUPS:
        keys.fault('history_warmup', f'{" or ".join(WARMUPS)} is expected, not {value!r}')
    return WARMUPS.get(value, 'first')


def _list(keys: Keys, key: str) -> list[Any]:
    value = keys.data.get(key)
    if not isinstance(value, list) or not value:
        keys.fault(key, 'a list of blocks is expected')
        return [{}]
    return value
