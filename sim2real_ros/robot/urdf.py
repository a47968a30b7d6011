# SPDX-License-Identifier: Apache-2.0
"""Movable joints and their limits, read from a URDF. Nothing else of it is needed to run a policy."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from sim2real_ros.errors import DocumentError, NotFoundError

MOVABLE = ('revolute', 'continuous', 'prismatic')


@dataclass(frozen=True, slots=True)
class UrdfJoint:
    """A movable joint as the URDF declares it; NaN where it says nothing. Units: rad (m), rad/s (m/s), N m (N)."""

    name: str
    lower: float
    upper: float
    velocity: float
    effort: float


def read_joints(path: Path) -> list[UrdfJoint]:
    """Return the movable joints in document order.

    Raises:
        NotFoundError: the file does not exist.
        DocumentError: it is not a URDF, has no movable joint or a limit that is not a number.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise NotFoundError(f'cannot read the URDF {path}: {error.strerror}') from None
    except ElementTree.ParseError as error:
        raise DocumentError(str(path), [f'not valid XML: {error}']) from None
    if root.tag != 'robot':
        raise DocumentError(str(path), [f'a URDF starts with <robot>, this file with <{root.tag}>'])
    faults: list[str] = []
    joints = [_joint(element, faults) for element in root.iter('joint') if element.get('type') in MOVABLE]
    if not joints:
        faults.append(f'no movable joint (of type {", ".join(MOVABLE)})')
    if faults:
        raise DocumentError(str(path), faults)
    return joints


def _joint(element: ElementTree.Element, faults: list[str]) -> UrdfJoint:
    name = element.get('name', '')
    limit = element.find('limit')
    continuous = element.get('type') == 'continuous'

    def number(attribute: str, otherwise: float) -> float:
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
