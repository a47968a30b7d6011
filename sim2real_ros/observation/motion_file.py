# SPDX-License-Identifier: Apache-2.0
"""`MotionFile`: a reference motion in an npz, one row per 1/rate_hz, and what comes after its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim2real_ros.contract.attachments import MOTION_KEY, attached_bytes
from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.schema import Motion, tensor_and_row
from sim2real_ros.errors import ModelFileError
from sim2real_ros.npz import read_npz

RETURN_S = 2.0  # from the last row to the default pose, with `end: return`
WIDTHS = {'anchor_pos': 3, 'anchor_quat': 4}  # of what is not per joint


class MotionFile:
    """Rows by time. Between two rows the earlier one counts, as in the trainers that index by frame.

    After the last row: `hold` keeps it, at rest; `loop` begins again; `return` moves the joints to the default pose within
    2 s, with the velocity that belongs to it, and keeps the anchor.
    """

    def __init__(self, contract: Contract, motion: Motion) -> None:
        assert motion.rate_hz is not None
        self._rows = _read(contract, motion)
        self._count = len(next(iter(self._rows.values())))
        self._rate, self._end, self._default = motion.rate_hz, motion.end, contract.default_position

    def at(self, time: np.ndarray) -> dict[str, np.ndarray]:
        """Return what the motion tells, (..., width) by quantity.

        Args:
            time: (...) s since the start.
        """
        row = np.floor(time * self._rate + 1e-6).astype(np.int64)
        if self._end == 'loop':
            row = row % self._count
        told = {name: values[np.minimum(row, self._count - 1)] for name, values in self._rows.items()}
        over = time - (self._count - 1) / self._rate
        if self._end != 'loop' and (row >= self._count).any():
            self._after(told, np.where(row >= self._count, over, 0.0)[..., None])
        return told

    def _after(self, told: dict[str, np.ndarray], over: np.ndarray) -> None:
        """Put what comes `over` (..., 1) s after the last row into what is told; 0 is before its end."""
        share = np.minimum(over / RETURN_S, 1.0) if self._end == 'return' else np.zeros_like(over)
        smooth, slope = share**3 * (10 - 15 * share + 6 * share**2), 30 * (share * (1 - share)) ** 2 / RETURN_S
        last = self._rows.get('joint_pos')
        way = 0.0 if last is None else self._default - last[-1]
        if 'joint_pos' in told:
            told['joint_pos'] = told['joint_pos'] + smooth * way
        if 'joint_vel' in told:
            told['joint_vel'] = np.where(over > 0, slope * way, told['joint_vel'])


def _read(contract: Contract, motion: Motion) -> dict[str, np.ndarray]:
    """Return the arrays of a motion, (rows, width) by quantity.

    Raises:
        ModelFileError: the file is missing, damaged, or lacks what the contract says.
    """
    assert contract.folder is not None
    assert motion.file is not None
    path, joints = contract.folder / motion.file, len(contract.joints)
    try:
        data = read_npz(attached_bytes(contract, motion.file, MOTION_KEY))
    except (OSError, ValueError) as error:
        raise ModelFileError(f'cannot read the motion {path}: {error}; motion.file names an npz') from None
    rows: dict[str, np.ndarray] = {}
    for quantity, text in motion.quantities.items():
        name, body = tensor_and_row(text)
        if name not in data:
            raise ModelFileError(f'the motion {path} has no array {name}; it has {", ".join(sorted(data))}')
        rows[quantity] = values = _rows(path, name, data[name], body, WIDTHS.get(quantity, joints))
        if quantity == 'anchor_quat' and not np.allclose(np.linalg.norm(values, axis=1), 1.0, atol=1e-2):
            raise ModelFileError(f'the motion {path} has quaternions in {name} that are not of length 1')
    if len({len(values) for values in rows.values()}) != 1:
        lengths = ', '.join(f'{name} {len(values)}' for name, values in rows.items())
        raise ModelFileError(f'the motion {path} has arrays of different lengths: {lengths}')
    return rows


def _rows(path: Path, name: str, values: np.ndarray, body: int | None, width: int) -> np.ndarray:
    shape = values.shape
    if body is not None and values.ndim == 3 and body < shape[1]:
        values = values[:, body]
    if values.ndim != 2 or values.shape[1] != width or not len(values) or values.dtype.kind not in 'fiu':
        asked = '' if body is None else f' of body {body}'
        raise ModelFileError(f'the motion {path} has {name} of shape {shape}{asked}; (rows, {width}) numbers are expected')
    if not np.isfinite(values).all():
        raise ModelFileError(f'the motion {path} has numbers in {name} that are not finite')
    return values.astype(float)
