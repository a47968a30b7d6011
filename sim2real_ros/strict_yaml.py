# SPDX-License-Identifier: Apache-2.0
"""`StrictLoader`: YAML's safe loader without the surprises of YAML 1.1, and without documents that never end."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import yaml

MAX_NODES = 1_000_000  # of a document with every alias written out; the largest contract has a few thousand
PREFIX = 'tag:yaml.org,2002:'
SURPRISES = {f'{PREFIX}{name}' for name in ('int', 'float', 'timestamp')}  # 1:30 is 90, 010 is 8, 1e5 is text, dates


class StrictLoader(yaml.SafeLoader):
    """Refuses keys that occur twice, anchors that contain themselves and documents that aliases blow up.

    Numbers are those of YAML 1.2: 1e5 is one, 1:30 and dates are text.
    """

    yaml_implicit_resolvers = {
        first: [(tag, expression) for tag, expression in resolvers if tag not in SURPRISES]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._open: list[str] = []  # anchors whose node is being read
        self._sizes: dict[int, int] = {}  # of each node, every alias written out

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; raises ComposerError on one that never ends."""
        event: Any = self.peek_event()
        mark: Any = event.start_mark
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if isinstance(event, yaml.AliasEvent):
            if anchor in self._open:
                raise yaml.composer.ComposerError(None, None, f'the anchor {anchor} contains itself', mark)
            return super().compose_node(parent, index)
        if anchor is not None:
            self._open.append(anchor)
        node: Any = super().compose_node(parent, index)
        if anchor is not None:
            self._open.pop()
        size = 1 + sum(self._sizes[id(child)] for child in _children(node))
        self._sizes[id(node)] = size
        if size > MAX_NODES:
            raise yaml.composer.ComposerError(None, None, f'aliases make more than {MAX_NODES} nodes of this', mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raises ConstructorError on a key that occurs twice."""
        count = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice = sorted(key for key, times in count.items() if times > 1)
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f'the key {", ".join(twice)} occurs twice', node.start_mark)
        return super().construct_mapping(node, deep)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


DIGITS, SIGNS = '0123456789', '-+'
StrictLoader.add_implicit_resolver(f'{PREFIX}int', re.compile(r'^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$'), list(DIGITS + SIGNS))
StrictLoader.add_implicit_resolver(
    f'{PREFIX}float',
    re.compile(r'^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$'),
    list(DIGITS + SIGNS + '.'),
)
