# SPDX-License-Identifier: Apache-2.0
"""Which files hold the weights of an ONNX file: read from the protocol buffer itself, without the package `onnx`.

`ModelProto.graph` (7) holds `initializer` (5) and `node` (1), whose attributes (5) hold tensors (5, 10) and graphs (6, 11). A
`TensorProto` names its file in `external_data` (13), pairs of key (1) and value (2).
"""

from __future__ import annotations

from collections.abc import Iterator

TENSORS_OF_ATTRIBUTE, GRAPHS_OF_ATTRIBUTE = (5, 10), (6, 11)
FUNCTIONS = 25  # of ModelProto; their nodes stand in field 7
MAX_DEPTH = 20


def external_files(data: bytes) -> list[str]:
    """Return the names of the files that hold weights, each once; none for what is not ONNX, which others report."""
    names: dict[str, None] = {}
    try:
        for field, value in fields(memoryview(data)):
            if field == 7:
                names.update(dict.fromkeys(_of_graph(value, 0)))
            elif field == FUNCTIONS:
                for inner, node in fields(value):
                    if inner == 7:
                        names.update(dict.fromkeys(_of_node(node, 0)))
    except (IndexError, ValueError):
        return []
    return list(names)


def _of_graph(graph: memoryview, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    for field, value in fields(graph):
        if field == 5:
            yield from _of_tensor(value)
        elif field == 1:
            yield from _of_node(value, depth)


def _of_node(node: memoryview, depth: int) -> Iterator[str]:
    for field, attribute in fields(node):
        if field != 5:
            continue
        for inner, value in fields(attribute):
            if inner in TENSORS_OF_ATTRIBUTE:
                yield from _of_tensor(value)
            elif inner in GRAPHS_OF_ATTRIBUTE:
                yield from _of_graph(value, depth + 1)


def _of_tensor(tensor: memoryview) -> Iterator[str]:
    for field, entry in fields(tensor):
        if field == 13:
            pair = dict(fields(entry))
            if bytes(pair.get(1, b'')) == b'location':
                yield bytes(pair.get(2, b'')).decode('utf-8')


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and the bytes of every length-delimited field; numbers are skipped."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire = key & 7
        if wire == 0:
            _, position = _varint(message, position)
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        elif wire == 2:
            size, position = _varint(message, position)
            if position + size > len(message):
                raise ValueError('a field is longer than its message')
            yield key >> 3, message[position : position + size]
            position += size
        else:
            raise ValueError(f'wire type {wire}')


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
        if shift > 63:
            raise ValueError('a number is too long')
