# SPDX-License-Identifier: Apache-2.0
"""A URDF as an element tree that can be added to: comments stay, and meshes are found wherever the result is read."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from sim2real_ros.robot.urdf import parse_urdf


def read_urdf(path: Path) -> ElementTree.Element:
    """Return the root of a URDF.

    A mesh path without a scheme is relative to the file; it becomes a `file://` URI, since a description travels as text.
    `package://` and other URIs stay as they are.

    Raises:
        NotFoundError: the file cannot be read.
        DocumentError: it is no URDF, or needs xacro first.
    """
    root = parse_urdf(path, comments=True)
    for mesh in root.iter('mesh'):
        name = mesh.get('filename', '')
        if name and '://' not in name:
            mesh.set('filename', (path.parent / os.path.expanduser(name)).resolve().as_uri())
    return root


def to_text(root: ElementTree.Element) -> str:
    """Return the tree as an XML document, indented."""
    ElementTree.indent(root)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def add(parent: ElementTree.Element, tag: str, text: str | float | None = None, **attributes: str) -> ElementTree.Element:
    """Append an element with attributes and text to another, and return it; numbers are written as briefly as is exact."""
    element = ElementTree.SubElement(parent, tag, attributes)
    if text is not None:
        element.text = f'{text:.12g}' if isinstance(text, float) else text
    return element


def parents(root: ElementTree.Element) -> dict[str, tuple[ElementTree.Element, str]]:
    """Return, by child link, the joint that it hangs on and the parent link."""
    found = {}
    for joint in root.findall('joint'):
        parent, child = joint.find('parent'), joint.find('child')
        if parent is not None and child is not None:
            found[child.get('link', '')] = (joint, parent.get('link', ''))
    return found


def root_link(root: ElementTree.Element) -> str:
    """Return the link that hangs on no other."""
    hanging = parents(root)
    return next(name for link in root.findall('link') if (name := link.get('name', '')) not in hanging)
