# SPDX-License-Identifier: Apache-2.0
"""Observations and commands of an `env.yaml` of Isaac Lab."""

from __future__ import annotations

import math
import re
from typing import Any

from transforms3d import euler

from sim2real_ros.contract.importers import isaac_lab, isaac_terms
from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.parts import put_velocity
from sim2real_ros.contract.importers.sources import Keys
from sim2real_ros.errors import NotFoundError

GROUPS = ('policy', 'actor')
OF_GROUP = {
    'concatenate_terms', 'concatenate_dim', 'enable_corruption', 'history_length', 'flatten_history_dim', 'class_type',
    'nan_policy', 'nan_check_per_term',
}  # fmt: skip
VELOCITY = {'x': 'lin_vel_x', 'y': 'lin_vel_y', 'yaw': 'ang_vel_z'}
Order = tuple[str | None, str]


def observation(keys: Keys, tensor: str, joints: list[str], imported: Imported, order: Order, hints: Hints) -> dict[str, Any]:
    """Return the observation of the policy's group; faults go to `keys`."""
    groups = keys.below('observations')
    name = next((group for group in GROUPS if group in groups), None)
    if name is None:
        groups.fault('', f'none of the groups is called {" or ".join(GROUPS)}; there are {", ".join(map(str, groups.data))}')
        return {'stack': {'lags': [0], 'layout': 'term_major', 'fill': 'first'}, 'terms': []}
    group = groups.below(name)
    whole = isaac_lab.history_length(group)
    terms: list[dict[str, Any]] = []
    lengths: list[int] = []
    for key in group.data:
        if key in OF_GROUP or group.data[key] is None:
            continue
        term = group.below(key)
        length = whole or isaac_lab.history_length(term)
        if length > 1 and term.data.get('flatten_history_dim') is False:
            term.fault('flatten_history_dim', 'a history that is not flattened is no vector; export it flattened')
        if term.data.get('modifiers'):
            term.fault('modifiers', 'a modified observation is not known here; add it as a term of your own')
        place = f'inputs.{tensor}.terms.{len(terms)}.term'
        for use in _uses(term, place, keys, joints, imported, order, hints):
            _put_steps(use, term)
            terms.append(use)
            lengths.append(length)
    return {'stack': isaac_terms.put_histories(terms, lengths or [0]), 'terms': terms}


def _put_steps(use: dict[str, Any], term: Keys) -> None:
    clip = isaac_lab.pairs(term.data.get('clip'), ['all'])
    if clip is None:
        term.fault('clip', f'null or [low, high] is expected, not {term.data.get("clip")!r}')
    scale = term.data.get('scale')
    if isinstance(scale, list):
        scale = term.numbers('scale')
    elif scale is not None:
        scale = term.number('scale')
    isaac_terms.put_clip_scale(use, (clip or {}).get('all'), scale)


def _uses(
    term: Keys, place: str, keys: Keys, joints: list[str], imported: Imported, order: Order, hints: Hints
) -> list[dict[str, Any]]:
    name = isaac_lab.class_name(term.data.get('func', ''))
    params = isaac_lab.mapping(term.data.get('params'))
    if name == 'generated_commands':
        return _command(term, str(params.get('command_name')), keys, imported, order, hints)
    if name in isaac_lab.QUATERNIONS:
        return [{'term': f'base_quat_{order[0]}'}] if order[0] else isaac_lab.told_quaternion(term, name, place, hints)
    try:
        uses = isaac_terms.by_function(name)
    except NotFoundError as error:
        term.fault('func', str(error))
        return []
    patterns = isaac_lab.mapping(params.get('asset_cfg')).get('joint_names')
    if uses[0]['term'] in isaac_terms.JOINT_TERMS and patterns is not None:
        own = _selected(term, patterns, joints)
        if own != joints:
            uses[0]['joints'] = own
    return uses


def _selected(term: Keys, patterns: Any, joints: list[str]) -> list[str]:
    listed = patterns if isinstance(patterns, list) else [patterns]
    try:
        own = [joint for joint in joints if any(re.fullmatch(str(pattern), joint) for pattern in listed)]
    except re.error as error:
        term.fault('params.asset_cfg.joint_names', f'is no expression: {error}')
        return joints
    if not own:
        term.fault('params.asset_cfg.joint_names', f'{listed} matches none of {", ".join(joints)}')
    return own or joints


def _command(term: Keys, name: str, keys: Keys, imported: Imported, order: Order, hints: Hints) -> list[dict[str, Any]]:
    """Return the term of a command, whose ranges come from the commands of the file."""
    commands = keys.below('commands')
    command = commands.below(name)
    kind = isaac_lab.class_name(command.data.get('class_type', ''))
    ranges = command.below('ranges')
    if 'Velocity' in kind:
        put_velocity(imported, {axis: ranges.numbers(key, 2) or [0.0, 0.0] for axis, key in VELOCITY.items()})
        return [{'term': 'velocity_command'}]
    if 'Pose' in kind and '2d' not in kind:
        isaac_lab.put_pose_command(imported, command, _middle(ranges), order[0], order[1], hints)
        if 'pose' in imported.contract.get('commands', {}):
            why = 'the middle of the ranges of the training; until the first goal arrives'
            imported.assume('commands.pose.initial', imported.contract['commands']['pose']['initial'], why, put=False)
        body = command.data.get('body_name')
        imported.notes.append(f'The goal is that of the body {body}; its ranges in training: {_told(ranges)}.')
        return [{'term': 'pose_command'}]
    term.fault('params.command_name', f'{name} is a {kind or "command without a class"}, which is not known here; known: '
               'UniformVelocityCommand and its kin, UniformPoseCommand')  # fmt: skip
    return []


def _middle(ranges: Keys) -> list[float]:
    """Return the pose in the middle of the ranges, x, y, z and quaternion wxyz."""
    keys = ('pos_x', 'pos_y', 'pos_z', 'roll', 'pitch', 'yaw')
    x, y, z, roll, pitch, yaw = (sum(ranges.numbers(key, 2) or [0.0]) / 2 for key in keys)
    quat = euler.euler2quat(roll, pitch, yaw, 'sxyz') if math.isfinite(roll + pitch + yaw) else (1.0, 0.0, 0.0, 0.0)
    return [round(float(value), 6) for value in (x, y, z, *quat)]


def _told(ranges: Keys) -> str:
    pairs = {key: ranges.numbers(key, 2) for key in ranges.data if ranges.data[key] is not None}
    return ', '.join(f'{key} {pair[0]:g} to {pair[-1]:g}' for key, pair in pairs.items() if pair)
