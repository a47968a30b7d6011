# SPDX-License-Identifier: Apache-2.0
"""What Gazebo calls the collision shapes of a URDF, which a contact sensor must name.

Gazebo merges links that hang on fixed joints into the link that moves, unless a `<gazebo>` element of the joint preserves it,
and renames their shapes: `<link>_fixed_joint_lump__<shape>_collision_<number>`. The rule is that of sdformat's URDF parser
(CreateCollisions, ReduceFixedJoints), the same from Fortress to Jetty.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

WORLD = 'world'  # nothing is merged into it
KEEPS = ('preserveFixedJoint', 'disableFixedJointLumping')


def collision_names(root: ElementTree.Element) -> dict[str, list[str]]:
    """Return, by link of the URDF, the names of its collision shapes in Gazebo, in document order."""
    kept = {element.get('reference') for element in root.findall('gazebo') if any(_says(element, tag) for tag in KEEPS)}
    children: dict[str, list[str]] = {}  # merged into their parent
    for joint in sorted(root.findall('joint'), key=lambda joint: joint.get('name', '')):  # a std::map of them
        parent, child = joint.find('parent'), joint.find('child')
        if joint.get('type') != 'fixed' or joint.get('name') in kept or parent is None or child is None:
            continue
        if parent.get('link') != WORLD:
            children.setdefault(parent.get('link', ''), []).append(child.get('link', ''))
    merged = {link for links in children.values() for link in links}
    shapes = {link.get('name', ''): [c.get('name') for c in link.findall('collision')] for link in root.findall('link')}
    names: dict[str, list[str]] = {link: [] for link in shapes}
    for link in shapes:
        if link not in merged:
            for number, (owner, shape) in enumerate(_merge(link, shapes, children)):
                names[owner].append(_name(link, shape, number))
    return names


def _merge(link: str, shapes: dict[str, list[str | None]], children: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return (link of the URDF, name) of each shape of a link in Gazebo: its own, then those merged into it, depth first."""
    found = [(link, shape or link) for shape in shapes.get(link, [])]
    for child in children.get(link, []):
        found += _merge(child, shapes, children)
    return found


def _name(link: str, shape: str, number: int) -> str:
    name = f'{shape}_collision{f"_{number}" if number else ""}'
    return name if name.startswith(link) else f'{link}_fixed_joint_lump__{name}'


def _says(element: ElementTree.Element, tag: str) -> bool:
    text = element.findtext(tag)
    return text is not None and text.strip().lower() in ('true', 'yes', '1', '')
