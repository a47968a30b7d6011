# SPDX-License-Identifier: Apache-2.0
"""Whether a robot can be what its URDF says: links hang together as one tree, axes point somewhere, what moves has mass."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator

from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.robot.urdf import MOVABLE


def refuse_impossible(root: ElementTree.Element, robot: Robot) -> None:
    """Raise DocumentError, with all that is wrong, unless a robot can be what a URDF says."""
    faults = [*_tree(root), *_axes(root), *_masses(root)]
    if faults:
        raise DocumentError(str(robot.urdf), faults)


def _tree(root: ElementTree.Element) -> Iterator[str]:
    links = [link.get('name', '') for link in root.findall('link')]
    children = Counter[str]()
    for joint in root.findall('joint'):
        name, parent, child = joint.get('name', ''), _link(joint, 'parent'), _link(joint, 'child')
        for role, link in (('parent', parent), ('child', child)):
            if link not in links:
                yield f'joint {name}: its {role} link "{link}" is not there; links are {", ".join(links)}'
        if parent == child != '':
            yield f'joint {name}: its parent is its own child, {child}'
        children[child] += 1
    yield from (f'link {link} is the child of {count} joints; one is possible' for link, count in children.items() if count > 1)
    roots = [link for link in links if link not in children]
    if not roots:
        yield 'every link is the child of a joint: the joints run in a circle, and there is no base'
    elif len(roots) > 1:
        yield f'the links do not hang together: {", ".join(roots)} are children of no joint; only the base may be'


def _axes(root: ElementTree.Element) -> Iterator[str]:
    for joint in root.findall('joint'):
        axis = joint.find('axis')
        if axis is None or joint.get('type') not in MOVABLE:
            continue  # the URDF specification's default is 1 0 0
        text = axis.get('xyz', '')
        numbers = [_number(part) for part in text.split()]
        if len(numbers) != 3 or not all(map(math.isfinite, numbers)) or not any(numbers):
            yield f'joint {joint.get("name")}: axis xyz="{text}" is no direction: it takes three finite numbers, not all 0'


def _masses(root: ElementTree.Element) -> Iterator[str]:
    """Check what is declared; a mass of 0 is for frames, which are counted to the link that they are fixed to."""
    fixed = {_link(joint, end) for joint in root.findall('joint[@type="fixed"]') for end in ('parent', 'child')}
    for link in root.findall('link'):
        mass, name = link.find('inertial/mass'), link.get('name', '')
        if mass is None:
            continue
        text = mass.get('value', '')
        value = _number(text)
        if not (math.isfinite(value) and (value > 0 or (value == 0 and name in fixed))):
            yield f'link {name}: mass value="{text}" is not above 0 kg'


def _link(joint: ElementTree.Element, role: str) -> str:
    element = joint.find(role)
    return '' if element is None else element.get('link', '')


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
