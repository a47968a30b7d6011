# SPDX-License-Identifier: Apache-2.0
"""Files that belong to a contract: beside it, or inside its network's metadata."""

from __future__ import annotations

import base64

from sim2real_ros.contract.contract import Contract
from sim2real_ros.paths import read_file

METADATA_KEY, GOLDEN_KEY, MOTION_KEY = 'sim2real.contract', 'sim2real.golden', 'sim2real.motion'
PASSPORT_KEY = 'sim2real.passport'
EMBEDDED = 'embedded'  # in place of a file name: the file is in the network's metadata


def attached_bytes(contract: Contract, file: str, key: str) -> bytes:
    """Return a file that a contract names.

    Args:
        contract: with a folder.
        file: its name, or `embedded`.
        key: of the metadata that holds it then, base64.

    Raises:
        OSError, ValueError: it is not there or not base64.
    """
    from sim2real_ros.policy.session import read_metadata  # noqa: PLC0415 - onnxruntime only where a network is read

    assert contract.folder is not None
    if file != EMBEDDED:
        return read_file(contract.folder / file)
    assert contract.model_path is not None
    text = read_metadata(contract.model_path).get(key)
    if text is None:
        raise ValueError(f'the network has no metadata {key}')
    return base64.b64decode(text, validate=True)


def attached_text(contract: Contract, file: str, key: str) -> str:
    """Return the same as text for the metadata."""
    return base64.b64encode(attached_bytes(contract, file, key)).decode('ascii')
