# SPDX-License-Identifier: Apache-2.0
"""Observation terms of Isaac Lab, mjlab and whole_body_tracking in our words, and their histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim2real_ros.errors import NotFoundError

LAST_ACTION = {'term': 'last_action', 'value': 'raw'}
MOTION = [{'term': 'motion_command'}]
TERMS: dict[str, list[dict[str, Any]]] = {  # name of the upstream function: our terms, side by side
    'base_lin_vel': [{'term': 'base_lin_vel'}],
    'base_ang_vel': [{'term': 'base_ang_vel'}],
    'projected_gravity': [{'term': 'projected_gravity'}],
    'joint_pos': [{'term': 'joint_pos'}],
    'joint_pos_rel': [{'term': 'joint_pos_rel'}],
    'joint_vel': [{'term': 'joint_vel'}],
    'joint_vel_rel': [{'term': 'joint_vel'}],
    'last_action': [LAST_ACTION],
    'base_pos_z': [{'term': 'base_height'}],
    'motion_anchor_pos_b': [{'term': 'motion_anchor_pos_b'}],
    'motion_anchor_ori_b': [{'term': 'motion_anchor_ori_b'}],
}
KEYS = {  # usual keys of such terms in a configuration: name of the upstream function
    'joint_pos': 'joint_pos_rel',
    'joint_vel': 'joint_vel_rel',
    'actions': 'last_action',
    'action': 'last_action',
    'gyro': 'base_ang_vel',
    'imu_ang_vel': 'base_ang_vel',
    'imu_lin_vel': 'base_lin_vel',
}
COMMAND_KEYS = ('command', 'commands', 'velocity_command', 'velocity_commands', 'generated_commands')
JOINT_TERMS = ('joint_pos', 'joint_pos_rel', 'joint_vel')


def by_function(name: str) -> list[dict[str, Any]]:
    """Return our terms for an upstream function.

    Raises:
        NotFoundError: it is neither one that is known nor a term that an installed package adds.
    """
    if name in TERMS:
        return [dict(use) for use in TERMS[name]]
    from sim2real_ros.observation.terms import registered_terms  # noqa: PLC0415 - terms take a contract

    if name in registered_terms():
        return [{'term': name}]
    raise NotFoundError(
        f'the term {name} is not known here; known are {", ".join(sorted(TERMS))} and commands. If it is your own, add it '
        'through the entry point sim2real_ros.observation_terms under the same name'
    )


def by_key(name: str) -> list[dict[str, Any]]:
    """Return our terms for a term that is known by its key in the configuration alone.

    Raises:
        NotFoundError: as `by_function`.
    """
    return by_function(KEYS.get(name, name))


def newest_last(length: int) -> list[int]:
    """Return the lags of a history of Isaac Lab: oldest first; lengths 0 and 1 are the present alone."""
    return list(range(max(length, 1) - 1, -1, -1))


def put_histories(terms: Sequence[dict[str, Any]], lengths: Sequence[int]) -> dict[str, Any]:
    """Return the stack of terms with these history lengths; where they differ the terms get lags of their own."""
    if len(set(lengths)) > 1:
        for use, length in zip(terms, lengths, strict=True):
            use['lags'] = newest_last(length)
        return {'lags': [0], 'layout': 'term_major', 'fill': 'first'}
    return {'lags': newest_last(lengths[0]), 'layout': 'term_major', 'fill': 'first'}


def put_clip_scale(use: dict[str, Any], clip: list[float] | None, scale: Any) -> None:
    """Put clip and scale into a term, in the order of Isaac Lab: clip, then scale."""
    if clip is not None:
        use['clip'] = clip
    if scale is not None and scale != 1.0:
        use['scale'] = scale
    if 'clip' in use and 'scale' in use:
        use['process'] = ['clip', 'scale']
