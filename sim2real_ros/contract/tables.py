# SPDX-License-Identifier: Apache-2.0
"""Tables of a contract written out joint by joint: patterns do not travel between processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim2real_ros.contract.schema import Action, ContractFile
from sim2real_ros.joints import by_name

LIMITLESS = (-np.inf, np.inf)


def action_joints(action: Action, joints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the joints that an action drives, in its order."""
    return tuple(action.joints) if action.joints is not None else joints


def check_tables(name: str, action: Action, joints: tuple[str, ...], faults: list[str], literal: bool) -> None:
    """Note what is wrong in the tables of an action."""
    own = action_joints(action, joints)
    for field in ('scale', 'offset'):
        table = getattr(action, field)
        if isinstance(table, dict):
            by_name(table, own, faults, f'outputs.{name}.{field}', literal=literal)
    if action.target_clip is not None:
        low = {key: pair[0] for key, pair in action.target_clip.items()}
        by_name(low, own, faults, f'outputs.{name}.target_clip', literal=literal, partial=True)


def scale_of(action: Action, own: tuple[str, ...]) -> np.ndarray:
    """Return the scale of an action, (joints,) in rad, rad/s or N m per unit."""
    return by_name(action.scale, own, [], '') if isinstance(action.scale, dict) else np.full(len(own), action.scale)


def target_limits(action: Action, own: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return low and high of the targets of an action, (joints,) each; infinite where nothing is said."""
    low, high = (
        by_name({key: pair[side] for key, pair in (action.target_clip or {}).items()}, own, [], '', partial=True)
        for side in (0, 1)
    )
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def expand(file: ContractFile, joints: tuple[str, ...], tables: dict[str, np.ndarray]) -> ContractFile:
    """Return the file with every table written out."""
    update: dict[str, Any] = {field: dict(zip(joints, values.tolist(), strict=True)) for field, values in tables.items()}
    update['outputs'] = {name: _expanded(action, action_joints(action, joints)) for name, action in file.outputs.items()}
    return file.model_copy(update=update)


def _expanded(action: Action, own: tuple[str, ...]) -> Action:
    update: dict[str, Any] = {}
    for field in ('scale', 'offset'):
        table = getattr(action, field)
        if isinstance(table, dict):
            update[field] = dict(zip(own, by_name(table, own, [], '').tolist(), strict=True))
    if action.target_clip is not None:
        limits = zip(own, *(side.tolist() for side in target_limits(action, own)), strict=True)
        update['target_clip'] = {joint: [low, high] for joint, low, high in limits if (low, high) != LIMITLESS}
    return action.model_copy(update=update) if update else action
