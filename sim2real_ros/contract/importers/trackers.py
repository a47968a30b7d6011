# SPDX-License-Identifier: Apache-2.0
"""Motion trackers that play their reference motion themselves: length of the motion, and the way to the anchor body."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sim2real_ros.contract.importers.network import Tensors
from sim2real_ros.errors import FormatError

LONGEST = 1 << 22  # ticks; a day at 50 Hz
BASES = ('pelvis', 'base', 'base_link', 'trunk', 'Trunk', 'root', 'torso')
WAISTS = {'torso_link': [('waist_yaw_joint', 'z'), ('waist_roll_joint', 'x'), ('waist_pitch_joint', 'y')]}
Chain = list[tuple[str, str]]


def last_tick(path: Path, tensors: Tensors, counter: str, outputs: Sequence[str]) -> int | None:
    """Return the last tick of the motion inside a network: the first after which its reference stays as at the end.

    The network is asked at many ticks, by bisection; None when it never comes to rest.
    """
    from sim2real_ros.policy.network import open_session  # noqa: PLC0415 - onnxruntime only where a network is run

    session = open_session(path)
    feed = {t.name: np.zeros([d or 1 for d in t.shape], np.float32) for t in tensors.inputs}
    kind = np.int64 if 'int64' in next(t.type for t in tensors.inputs if t.name == counter) else np.float32

    def reference(tick: int) -> np.ndarray | None:
        feed[counter] = np.full_like(feed[counter], tick, dtype=kind)
        try:
            return np.concatenate([output.ravel() for output in session.run(list(outputs), feed)])
        except Exception:  # past the end of a table without a clip
            return None

    def at_end(tick: int) -> bool:
        now = reference(tick)
        return now is None if end is None else now is not None and np.array_equal(now, end)

    end, before = reference(LONGEST), reference(LONGEST // 2)
    if end is not None and (before is None or not np.array_equal(before, end)):
        return None
    low, high = -1, LONGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at_end(middle) else (middle, high)
    return max(high - (1 if end is None else 0), 1)


def chain_by_name(body: str, joints: Sequence[str]) -> Chain | None:
    """Return the joints from the base to a body whose way is known by its name; None for other bodies."""
    if body in BASES:
        return []
    chain = WAISTS.get(body)
    return list(chain) if chain is not None and all(joint in joints for joint, _ in chain) else None


def chain_of_urdf(text: str, body: str) -> Chain:
    """Return the joints from the root of a URDF to a body, each with its axis.

    Raises:
        FormatError: the URDF cannot be read, lacks the body, or the way has a turned mounting or a slanted axis.
    """
    parents = _parents(text, body)
    chain: Chain = []
    seen: set[str] = set()
    link = body
    while link in parents:
        if link in seen:
            raise FormatError(f'the URDF in the metadata is cyclic at {link}')
        seen.add(link)
        joint = parents[link]
        if any(abs(angle) > 1e-6 for angle in _numbers(joint.find('origin'), 'rpy', [0.0, 0.0, 0.0])):
            raise FormatError(f'the joint {joint.get("name")} on the way to {body} is mounted at an angle; set motion.anchor')
        if joint.get('type') in ('revolute', 'continuous'):
            chain.append((str(joint.get('name')), _axis(joint)))
        elif joint.get('type') != 'fixed':
            raise FormatError(f'the joint {joint.get("name")} on the way to {body} is {joint.get("type")}; set motion.anchor')
        link = str(joint.find('parent').get('link'))  # type: ignore[union-attr]
    return chain[::-1]


def _parents(text: str, body: str) -> dict[str, ElementTree.Element]:
    if '<!ENTITY' in text or '<!DOCTYPE' in text:
        raise FormatError('the URDF in the metadata declares entities: refused')
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise FormatError(f'the URDF in the metadata is not valid XML: {error}') from None
    joints = [j for j in root.iter('joint') if j.find('child') is not None and j.find('parent') is not None]
    parents = {str(j.find('child').get('link')): j for j in joints}  # type: ignore[union-attr]
    if body not in parents and all(link.get('name') != body for link in root.iter('link')):
        raise FormatError(f'the URDF in the metadata has no link {body}')
    return parents


def _axis(joint: ElementTree.Element) -> str:
    axis = _numbers(joint.find('axis'), 'xyz', [1.0, 0.0, 0.0])
    for i, name in enumerate('xyz'):
        rest = [value for k, value in enumerate(axis) if k != i]
        if max(map(abs, rest)) < 1e-6 and abs(abs(axis[i]) - 1) < 1e-6:
            return name if axis[i] > 0 else f'-{name}'
    raise FormatError(f'the joint {joint.get("name")} turns about {axis}, which is no axis of its frame; set motion.anchor')


def _numbers(element: ElementTree.Element | None, attribute: str, default: list[float]) -> list[float]:
    text = '' if element is None else element.get(attribute, '')
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        raise FormatError(f'the URDF in the metadata has an {attribute} that is no number: {text}') from None
    return values if len(values) == len(default) else default


def json_value(text: str) -> object:
    """Return a JSON value of the metadata; text that is not JSON stays text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
