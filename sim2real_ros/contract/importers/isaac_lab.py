# SPDX-License-Identifier: Apache-2.0
"""What `IO_descriptors.yaml` and `env.yaml` of Isaac Lab share: actions, commands and gains in our words.

Isaac Lab clips an observation before its scale, but an action AFTER scale and offset: that is our `target_clip`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sim2real_ros.contract.importers.draft import Hints, Imported
from sim2real_ros.contract.importers.sources import Keys, to_number

ACTIONS = {  # class of Isaac Lab: type of ours, and what it is relative to
    'JointPositionAction': ('joint_position', None),
    'RelativeJointPositionAction': ('joint_position', 'measured'),
    'JointVelocityAction': ('joint_velocity', None),
    'JointEffortAction': ('joint_torque', None),
}
CHOICE = 'give --set commands.pose.quaternion=wxyz (Isaac Lab before 3.0) or =xyzw (from 3.0 on)'
QUATERNIONS = ('root_quat_w', 'base_quat')  # functions that give the orientation of the base
EXPLICIT = (
    'an explicit actuator computes torque in Python and leaves 0 in the simulator; its own gains stand in the training code'
)


def class_name(path: Any) -> str:
    """Return the last part of `module.submodule:Class` or `module.Class`."""
    return re.split(r'[.:]', str(path))[-1]


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping; {} for whatever else the file has in its place."""
    return value if isinstance(value, dict) else {}


def history_length(term: Keys, key: str = 'history_length') -> int:
    """Return a whole number of ticks; 0 where the file has none."""
    number = term.number(key, 0)
    if not 0 <= number <= 1000 or number != int(number):
        term.fault(key, f'a whole number from 0 to 1000 is expected, not {number:g}')
        return 0
    return int(number)


def per_joint(value: Any, joints: Sequence[str], default: float) -> list[float] | None:
    """Return numbers in the order of `joints` from a number, a list, or a table by name or expression; None for others."""
    if value is None:
        return [default] * len(joints)
    if (number := to_number(value)) is not None:
        return [number] * len(joints)
    if isinstance(value, dict):
        table = {joint: next((to_number(v) for k, v in value.items() if _matches(str(k), joint)), default) for joint in joints}
        return None if None in table.values() else [table[joint] for joint in joints]  # type: ignore[misc]
    numbers = [to_number(part) for part in value] if isinstance(value, list) else []
    return numbers if len(numbers) == len(joints) and None not in numbers else None  # type: ignore[return-value]


def pairs(value: Any, joints: Sequence[str]) -> dict[str, list[float]] | None:
    """Return [low, high] by joint from a pair, a list of pairs or a table; {} for none, None for others. Infinity is none."""
    if value is None:
        return {}
    if isinstance(value, dict):
        by_name = {joint: next((v for k, v in value.items() if _matches(str(k), joint)), None) for joint in joints}
    elif isinstance(value, list) and len(value) == 2 and not isinstance(value[0], list):
        by_name = dict.fromkeys(joints, value)
    elif isinstance(value, list) and len(value) == len(joints):
        by_name = dict(zip(joints, value, strict=True))
    else:
        return None
    bounds = {joint: _pair(pair) for joint, pair in by_name.items() if pair is not None}
    return None if None in bounds.values() else {joint: pair for joint, pair in bounds.items() if pair}  # type: ignore[misc]


def action_entry(
    keys: Keys, kind: str, joints: Sequence[str], own_offset: Any, default: Sequence[float] | None
) -> dict[str, Any]:
    """Return an action of the contract.

    Args:
        keys: the action in the source, with scale and clip.
        kind: class of the action in Isaac Lab.
        joints: joints that it drives, in order.
        own_offset: number, list or table, or None where the default position is the offset.
        default: default position of these joints, where known; an equal offset is written `default`.
    """
    if kind not in ACTIONS:
        keys.fault('', f'the action {kind} is not known here; known are {", ".join(ACTIONS)}')
        return {}
    form, relative = ACTIONS[kind]
    scale = per_joint(keys.data.get('scale'), joints, 1.0)
    clip = pairs(keys.data.get('clip'), joints)
    offset = None if own_offset is None else per_joint(own_offset, joints, 0.0)
    if scale is None:
        keys.fault('scale', f'a number, or one for each of {len(joints)} joints, is expected')
    if clip is None:
        keys.fault('clip', f'null, or [low, high] for each of {len(joints)} joints, is expected')
    if own_offset is not None and offset is None:
        keys.fault('offset', f'a number, or one for each of {len(joints)} joints, is expected')
    entry: dict[str, Any] = {'type': form, 'clip': None, 'joints': list(joints)}
    entry['scale'] = _one_or_table(joints, scale or [1.0] * len(joints))
    entry['offset'] = _offset(form, relative, joints, offset, default)
    if relative:
        entry['relative_to'] = relative
    return entry | ({'target_clip': clip} if clip else {})


def place_actions(tensor: str, entries: dict[str, dict[str, Any]], n: int) -> dict[str, Any]:
    """Return the outputs of a contract: one tensor, whose columns the actions share in order."""
    if len(entries) == 1:
        entry = next(iter(entries.values()))
        if len(entry.get('joints', [])) == n:
            entry = {key: value for key, value in entry.items() if key != 'joints'}
        return {tensor: entry}
    outputs, start = {}, 0
    for name, entry in entries.items():
        stop = start + len(entry.get('joints', []))
        outputs[name] = entry | {'tensor': tensor, 'columns': list(range(start, stop))}
        start = stop
    return outputs


def check_gains(keys: Keys, joints: Sequence[str], stiffness: Sequence[float], hints: Hints, stiff: set[str]) -> None:
    """Refuse a stiffness of 0 on joints that position actions drive, unless the user sets it."""
    idle = [joint for joint, value in zip(joints, stiffness, strict=True) if value <= 0 and joint in stiff]
    if idle and not hints.sets('stiffness'):
        keys.fault(
            'stiffness', f'is 0 for {", ".join(idle)}: {EXPLICIT}. Give them with --set stiffness=\'{{".*": KP}}\' and damping'
        )


def put_pose_command(imported: Imported, keys: Keys, initial: list[float], order: str | None, told: str, hints: Hints) -> None:
    """Put a goal pose into the draft; the order of its quaternion must be told by the source or by the user."""
    if order is None and not hints.sets('commands.pose.quaternion'):
        keys.fault('commands', f'the goal pose holds a quaternion, and nothing tells its order: {CHOICE}')
        return
    if order is None:
        order = str(hints.overrides.get('commands.pose.quaternion', 'wxyz'))
    else:
        imported.assume('commands.pose.quaternion', order, told)
    turned = initial if order == 'wxyz' else [*initial[:3], *initial[4:], initial[3]]
    imported.contract.setdefault('commands', {})['pose'] = {'frame': 'base', 'quaternion': order, 'initial': turned}
    imported.assume('commands.pose.frame', 'base', 'UniformPoseCommand gives the goal in the frame of the root', put=False)


def told_quaternion(term: Keys, name: str, place: str, hints: Hints) -> list[dict[str, Any]]:
    """Return the term of a base quaternion as the user tells it, or collect a fault that says how to tell it."""
    told = hints.overrides.get(place)
    if told in ('base_quat_wxyz', 'base_quat_xyzw'):
        return [{'term': told}]
    term.fault(
        '',
        f'{name} is a quaternion, and nothing tells its order: give --set {place}=base_quat_wxyz (Isaac Lab before 3.0) or '
        'base_quat_xyzw (from 3.0 on)',
    )
    return []


def _offset(
    form: str, relative: str | None, joints: Sequence[str], offset: list[float] | None, default: Sequence[float] | None
) -> Any:
    if offset is None:
        return 'default' if form == 'joint_position' and relative is None else 'zeros'
    if not any(offset):
        return 'zeros'
    equal = default is not None and all(abs(a - b) < 1e-6 for a, b in zip(offset, default, strict=True))
    return 'default' if equal and form == 'joint_position' and relative is None else dict(zip(joints, offset, strict=True))


def _one_or_table(joints: Sequence[str], values: list[float]) -> Any:
    return values[0] if len(set(values)) == 1 else dict(zip(joints, values, strict=True))


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def _pair(value: Any) -> list[float] | None:
    """Return [low, high] with bounds that a contract can hold, [] where both are infinite, None for what is no pair."""
    try:
        low, high = (float(part) for part in value)
    except (TypeError, ValueError):
        return None
    return [] if low < -1e6 and high > 1e6 else [max(low, -1e6), min(high, 1e6)]
