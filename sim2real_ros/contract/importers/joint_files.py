# SPDX-License-Identifier: Apache-2.0
"""Joint names of a robot model, MJCF or URDF, in the order of the file: for sources that have none."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from sim2real_ros.errors import FormatError, NotFoundError

MJCF_TYPES = ('hinge', 'slide')
URDF_TYPES = ('revolute', 'continuous', 'prismatic')


def joints_of_model(path: Path) -> tuple[str, ...]:
    """Return the names of all joints that move, in the order of the file.

    Raises:
        NotFoundError: the file cannot be read.
        FormatError: it is neither MJCF nor URDF, or has no such joint.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise NotFoundError(f'--joints-from: cannot read {path}: {error.strerror}') from None
    except (ElementTree.ParseError, UnicodeDecodeError, ValueError) as error:
        raise FormatError(f'--joints-from: {path} is not XML: {error}') from None
    if root.tag not in ('mujoco', 'robot'):
        raise FormatError(f'--joints-from: {path} is neither MJCF (<mujoco>) nor URDF (<robot>), but <{root.tag}>')
    names = _mjcf(root) if root.tag == 'mujoco' else _urdf(root)
    if not names:
        included = ', '.join(str(part.get('file')) for part in root.iter('include'))
        hint = f'; it includes {included}: give that file' if included else ''
        raise FormatError(f'--joints-from: {path} has no joint that moves{hint}')
    return tuple(names)


def _mjcf(root: ElementTree.Element) -> list[str]:
    bodies = [joint for world in root.iter('worldbody') for joint in world.iter('joint')]
    return [str(joint.get('name')) for joint in bodies if joint.get('type', 'hinge') in MJCF_TYPES and joint.get('name')]


def _urdf(root: ElementTree.Element) -> list[str]:
    joints = [joint for joint in root.findall('joint') if joint.get('type') in URDF_TYPES and joint.find('mimic') is None]
    return [str(joint.get('name')) for joint in joints]
