# SPDX-License-Identifier: Apache-2.0
"""The identity of a network: what it computes, and nothing that is written about it.

The hash of the file changes with every note in its metadata, the passport that is packed into it among them, and does not
change with weights that lie in files of their own. So this one is over graph, operator sets, functions and those files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from sim2real_ros.contract.importers.onnx_files import external_files, fields
from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import ModelFileError
from sim2real_ros.paths import read_file

COMPUTES = (7, 8, 25)  # of ModelProto: graph, opset_import, functions


def network_identity(path: Path) -> str:
    """Return the identity of an ONNX file, 64 hex digits.

    Raises:
        ModelFileError: it, or a file of its weights, cannot be read.
    """
    data, digest = read_model(path), hashlib.sha256()
    try:
        for number, value in fields(memoryview(data)):
            if number in COMPUTES:
                digest.update(f'{number}:{len(value)}:'.encode())
                digest.update(value)
        for name in sorted(external_files(data)):
            weights = read_file(path.parent / name)
            digest.update(f'{name}:{len(weights)}:'.encode())
            digest.update(weights)
    except (IndexError, ValueError):
        raise ModelFileError(f'{path} is no ONNX file, or a damaged one') from None
    except OSError as error:
        raise ModelFileError(f'cannot read the weights of {path}: {error.strerror}') from None
    return digest.hexdigest()
