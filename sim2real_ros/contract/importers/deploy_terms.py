# SPDX-License-Identifier: Apache-2.0
"""Observations of a `deploy.yaml`: one flat mapping of terms, or a mapping of groups, each an input of the network.

Upstream tells the two apart by whether the first entry has `params`; a term without it makes it read terms as groups. Here
every entry is looked at, and a mixture is refused.
"""

from __future__ import annotations

from typing import Any

from sim2real_ros.contract.importers.draft import Imported
from sim2real_ros.contract.importers.network import Tensors
from sim2real_ros.contract.importers.parts import bounds_of, clock, processed
from sim2real_ros.contract.importers.sources import Keys, to_number

FLAGS = ('use_gym_history', 'scale_first')
OF_TERM = {'params', 'clip', 'scale', 'history_length', 'size'}
TERMS: dict[str, dict[str, str]] = {
    'base_ang_vel': {'term': 'base_ang_vel'},
    'base_lin_vel': {'term': 'base_lin_vel'},
    'projected_gravity': {'term': 'projected_gravity'},
    'velocity_commands': {'term': 'velocity_command'},
    'joint_pos': {'term': 'joint_pos'},
    'joint_pos_rel': {'term': 'joint_pos_rel'},
    'joint_vel': {'term': 'joint_vel'},
    'joint_vel_rel': {'term': 'joint_vel'},
    'last_action': {'term': 'last_action', 'value': 'raw'},
    'gait_phase': {'term': 'phase'},
    'base_height': {'term': 'base_height'},
    'motion_command': {'term': 'motion_command'},  # of a motion that the user names: --set motion=...
    'motion_anchor_pos_b': {'term': 'motion_anchor_pos_b'},
    'motion_anchor_ori_b': {'term': 'motion_anchor_ori_b'},
}
ADVICE = 'Your own can be added under its name through the entry point sim2real_ros.observation_terms'


def observation_inputs(keys: Keys, imported: Imported, io: Tensors, joints: list[str]) -> dict[str, Any]:
    """Return the `inputs` of a draft; faults go to `keys`."""
    observations = keys.below('observations')
    flags = {flag: bool(observations.data.get(flag, False)) for flag in FLAGS}
    entries = {name: entry for name, entry in observations.data.items() if name not in FLAGS}
    kinds = {name: _is_group(entry) for name, entry in entries.items()}
    if len(set(kinds.values())) > 1:
        groups = ', '.join(name for name, group in kinds.items() if group)
        observations.fault('', f'terms and groups are mixed: {groups} hold terms of their own, the other entries are terms')
        return {}
    states = io.state_inputs()
    if not any(kinds.values()):
        if entries and not _has_params(next(iter(entries.values()))):
            imported.notes.append(
                f'The first term, {next(iter(entries))}, has no "params": unitree_rl_lab would take the terms for groups.'
            )
        return {io.observation().name: _observation(observations, entries, flags, imported, joints)} | states
    parts = {name: observations.below(name) for name in entries}
    gym = flags['use_gym_history'] or any(group.data.get('use_gym_history') for group in parts.values())  # one flag upstream
    names = _input_names(observations, list(parts), io)
    inputs = {}
    for name, group in parts.items():
        own = {'use_gym_history': gym, 'scale_first': bool(group.data.get('scale_first', flags['scale_first']))}
        terms = {term: entry for term, entry in group.data.items() if term not in FLAGS}
        inputs[names[name]] = _observation(group, terms, own, imported, joints)
    return inputs | states


def _is_group(entry: Any) -> bool:
    """Return whether an entry holds terms: mappings under keys that are none of a term's own."""
    if not isinstance(entry, dict) or set(entry) & (OF_TERM - {'size'}):
        return False
    inner = [value for key, value in entry.items() if key not in FLAGS]
    return bool(inner) and all(value is None or isinstance(value, dict) for value in inner)


def _has_params(entry: Any) -> bool:
    return isinstance(entry, dict) and 'params' in entry


def _input_names(observations: Keys, groups: list[str], io: Tensors) -> dict[str, str]:
    """Return the input tensor of each group: that of its name, or the only one."""
    free = [tensor.name for tensor in io.inputs if tensor.name not in io.states()]
    if len(groups) == len(free) == 1:
        return {groups[0]: free[0]}
    for name in groups:
        if name not in free:
            observations.fault(name, f'no input of the network has the name of this group; its inputs are {", ".join(free)}')
    return {name: name for name in groups}


def _observation(
    keys: Keys, entries: dict[str, Any], flags: dict[str, bool], imported: Imported, joints: list[str]
) -> dict[str, Any]:
    uses, lengths = [], []
    order = ('scale', 'clip') if flags['scale_first'] else ('clip', 'scale')
    for name, entry in entries.items():
        term = Keys(entry if entry is not None else {}, keys.source, f'{keys.where}.{name}', keys.faults)
        use = _use(term, name, joints, imported)
        if use is not None:
            uses.append(processed(use, _scale(term), _clip(term), order))
            lengths.append(max(1, term.whole('history_length', 1)))
    if not uses:
        keys.fault('', 'holds no observation term')
        return {}
    if flags['use_gym_history'] and len(set(lengths)) > 1:
        keys.fault(
            '', f'use_gym_history interleaves frames, so that all terms need one history_length, not {sorted(set(lengths))}'
        )
    stack = {'lags': _lags(lengths[0]), 'layout': 'term_major', 'fill': 'first'}
    if flags['use_gym_history']:
        stack['layout'] = 'frame_major'
    for use, length in zip(uses, lengths, strict=True):
        if length != lengths[0]:
            use['lags'] = _lags(length)
    return {'stack': stack, 'terms': uses}


def _use(term: Keys, name: str, joints: list[str], imported: Imported) -> dict[str, Any] | None:
    if name not in TERMS:
        from sim2real_ros.observation.terms import registered_terms  # noqa: PLC0415 - terms take a contract

        if name not in registered_terms():
            term.fault('', f'this observation is not known; known are {", ".join(sorted(TERMS))}. {ADVICE}')
            return None
        return {'term': name}
    use: dict[str, Any] = dict(TERMS[name])
    params = term.data.get('params') or {}
    if name == 'gait_phase':
        _phase(term, params, imported)
    asset = params.get('asset_cfg') if isinstance(params, dict) else None
    part = asset.get('joint_ids') if isinstance(asset, dict) else None
    if isinstance(part, list) and part != list(range(len(joints))) and use['term'].startswith('joint_'):
        use['joints'] = [joints[i] for i in Keys(asset, term.source, term.where, term.faults).indices('joint_ids', len(joints))]
    return use


def _phase(term: Keys, params: Any, imported: Imported) -> None:
    period = to_number(params.get('period')) if isinstance(params, dict) else None
    if period is None or period <= 0:
        term.fault('params.period', 'a gait_phase needs its period in s')
        return
    imported.contract['phase'] = clock(period)
    why = 'gait_phase of unitree_rl_lab: the clock starts at 0 with the episode and does not look at the command'
    imported.assume('phase.stop_at_zero_command', False, why, put=False)


def _scale(term: Keys) -> Any:
    value = term.data.get('scale')
    if value is None or to_number(value) is not None:
        return 1.0 if value is None else to_number(value)
    return term.numbers('scale') or 1.0


def _clip(term: Keys) -> list[float] | None:
    value = term.data.get('clip')
    if value is None:
        return None
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        term.fault('clip', f'null or [low, high] is expected, not {value!r}')
        return None
    return bounds_of([low, high])


def _lags(length: int) -> list[int]:
    return list(range(length - 1, -1, -1))
