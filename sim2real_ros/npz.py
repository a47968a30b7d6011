# SPDX-License-Identifier: Apache-2.0
"""Reading npz archives that somebody hands over: no pickles, nothing that inflates, one kind of error."""

from __future__ import annotations

import io
import zipfile

import numpy as np

MAX_BYTES = 1 << 30  # of all arrays together, unpacked


def read_npz(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an archive by name.

    Raises:
        ValueError: it is no such archive, damaged, holds Python objects or is too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise ValueError(f'it unpacks to {size >> 20} MiB, at most {MAX_BYTES >> 20} MiB are read')
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)
    except zipfile.BadZipFile:
        raise ValueError('it is no npz archive, or damaged') from None
    except MemoryError:
        raise ValueError('an array in it says that it is larger than the memory') from None
    except Exception as error:  # numpy raises what it comes across, zlib its own
        reason = 'it holds Python objects, not numbers' if 'allow_pickle' in str(error) else str(error) or type(error).__name__
        raise ValueError(reason) from None


def numbers(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return an array of real numbers as float; raises ValueError if it is not there or of another kind."""
    if name not in arrays:
        raise ValueError(f'there is no {name} in it')
    if arrays[name].dtype.kind not in 'fiu':
        raise ValueError(f'{name} is of type {arrays[name].dtype}; numbers are expected')
    return arrays[name].astype(float)
