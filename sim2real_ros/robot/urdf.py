# SPDX-License-Identifier: Apache-2.0
"""Movable joints and their limits, read from a URDF. Nothing else of it is needed to run a policy."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transforms3d import euler, quaternions

from sim2real_ros.errors import DocumentError, NotFoundError

MOVABLE = ('revolute', 'continuous', 'prismatic')
TYPES = (*MOVABLE, 'fixed', 'floating', 'planar')
XACRO = 'http://www.ros.org/wiki/xacro'


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A movable joint as the URDF declares it; NaN where it says nothing. Units: rad (m), rad/s (m/s), N m (N)."""

    name: str
    lower: float
    upper: float
    velocity: float
    effort: float


def parse_urdf(path: Path, *, comments: bool = False) -> ElementTree.Element:
    """Return the root of a URDF, with its comments where they are asked for.

    Raises:
        NotFoundError: the file cannot be read.
        DocumentError: it is no URDF, or needs xacro first.
    """
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=comments))
    try:
        root = ElementTree.parse(path, parser).getroot()
    except OSError as error:
        raise NotFoundError(f'cannot read the URDF {path}: {error.strerror}') from None
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the latter two: an encoding that is none
        raise DocumentError(str(path), [f'not valid XML: {error}']) from None
    if root.tag != 'robot':
        raise DocumentError(str(path), [f'a URDF starts with <robot>, this file with <{root.tag}>'])
    if any(_is_xacro(element) for element in root.iter()):
        stem = path.name.split('.')[0]
        name = path.name if path.name != f'{stem}.urdf' else f'{stem}.urdf.xacro'
        reason = f'this is xacro; write a plain URDF first: xacro {name} > {stem}.urdf'
        raise DocumentError(str(path), [reason])
    return root


def _is_xacro(element: ElementTree.Element) -> bool:
    own = isinstance(element.tag, str) and element.tag.startswith(f'{{{XACRO}}}')  # the tag of a comment is a function
    return own or any('${' in value for value in element.attrib.values())


def read_joints(path: Path) -> list[UrdfJoint]:
    """Return the movable joints in document order.

    Raises:
        NotFoundError: the file does not exist.
        DocumentError: it is not a URDF, has no movable joint, a joint that cannot be told from another or driven by itself, or
            a limit that is not a number.
    """
    elements = parse_urdf(path).findall('joint')
    faults = _joint_faults(elements)
    joints = [_joint(element, faults) for element in elements if element.get('type') in MOVABLE]
    if not joints:
        faults.append(f'no movable joint (of type {", ".join(MOVABLE)})')
    if faults:
        raise DocumentError(str(path), faults)
    return joints


def _joint_faults(elements: list[ElementTree.Element]) -> list[str]:
    """Return what is wrong with the names and kinds of the joints."""
    faults = []
    for element in elements:
        name, kind = element.get('name', ''), element.get('type')
        if not name:
            links = (part.get('link', '?') if part is not None else '?' for part in map(element.find, ('parent', 'child')))
            faults.append(f'the joint between the links {" and ".join(links)} has no name; add name="..."')
        if kind not in TYPES:
            faults.append(f'joint {name}: type "{kind or ""}" is none; types are {", ".join(TYPES)}')
        if kind in MOVABLE and element.find('mimic') is not None:
            faults.append(
                f'joint {name} follows another joint (<mimic>), which is not modelled; make it fixed, or drive it by itself '
                'and remove <mimic>'
            )
    for name, count in Counter(element.get('name', '') for element in elements).items():
        if name and count > 1:
            faults.append(f'{"two" if count == 2 else count} joints are called {name}; rename all but one')
    return faults


def _joint(element: ElementTree.Element, faults: list[str]) -> UrdfJoint:
    name = element.get('name', '')
    limit = element.find('limit')
    continuous = element.get('type') == 'continuous'

    def number(attribute: str, otherwise: float) -> float:
        """Return an attribute of <limit>, `otherwise` where it is absent; one that is no finite number is a fault."""
        text = limit.get(attribute) if limit is not None else None
        if text is None:
            return otherwise
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            faults.append(f'joint {name}: limit {attribute}="{text}" is not a finite number')
        return value

    if continuous:
        lower, upper = -math.inf, math.inf
    else:
        lower, upper = number('lower', 0.0), number('upper', 0.0)  # 0 is the URDF specification's default
    return UrdfJoint(name, lower, upper, number('velocity', math.nan), number('effort', math.nan))


def read_mounting(path: Path, frame: str) -> np.ndarray:
    """Return the rotation from a link's frame to the root link's, a quaternion (4,) xyzw.

    Args:
        path: the URDF.
        frame: a link that hangs on the root by fixed joints only, such as the IMU's.

    Raises:
        DocumentError: there is no such link, or it moves against the root.
    """
    root = ElementTree.parse(path).getroot()
    parents = {}
    for joint in root.iter('joint'):
        parent, child = joint.find('parent'), joint.find('child')
        if parent is not None and child is not None:
            parents[child.get('link')] = (joint, parent.get('link'))
    links = [link.get('name', '') for link in root.iter('link')]
    if frame not in links:
        raise DocumentError(str(path), [f'there is no link "{frame}" (sensors.imu_frame); links are {", ".join(links)}'])
    rotation, link = np.eye(3), frame
    while link in parents:
        joint, parent_link = parents.pop(link)  # popped: a cycle of links comes to an end
        if joint.get('type') != 'fixed':
            raise DocumentError(str(path), [f'link "{frame}" moves against the base through the joint {joint.get("name")}'])
        origin = joint.find('origin')
        text = origin.get('rpy', '0 0 0') if origin is not None else '0 0 0'
        try:
            roll, pitch, yaw = (float(part) for part in text.split())
        except ValueError:
            roll = pitch = yaw = math.nan
        if not math.isfinite(roll + pitch + yaw):
            raise DocumentError(str(path), [f'joint {joint.get("name")}: rpy="{text}" is not three finite numbers'])
        rotation = euler.euler2mat(roll, pitch, yaw, 'sxyz') @ rotation
        link = str(parent_link)
    return quaternions.mat2quat(rotation)[[1, 2, 3, 0]]
