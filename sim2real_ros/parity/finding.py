# SPDX-License-Identifier: Apache-2.0
"""What travels between the searches: the case, and what one of them found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.parity.replay import Replay, replay
from sim2real_ros.parity.trace import Trace


@dataclass(frozen=True, slots=True)
class Change:
    """A contract that says something else."""

    document: dict[str, Any]
    said: list[str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs."""

    where: str  # input.term, output or target
    largest: float
    cause: str  # '' when none was found


@dataclass(frozen=True, slots=True)
class Found:
    """A difference, and what takes it away."""

    difference: Difference
    change: Change | None = None  # of the contract
    trace: Trace | None = None  # without the difference, where it lies in the trace
    harmless: bool = False  # the trace's own affair: the contract agrees all the same


@dataclass(frozen=True, slots=True)
class Case:
    """A contract, as document too, and a trace."""

    contract: Contract
    document: dict[str, Any]
    trace: Trace

    def contract_of(self, document: dict[str, Any]) -> Contract:
        """Return the contract that a changed document says.

        Raises:
            DocumentError: it says nothing that holds.
        """
        source = self.contract.source
        return resolve(validate(ContractFile, document, source), source, self.contract.folder)

    def tried(self, document: dict[str, Any]) -> Replay | None:
        """Return what a changed document makes of the trace, or None where it cannot be run."""
        try:
            return replay(self.contract_of(document), self.trace)
        except Sim2RealError:
            return None


def near(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-3) -> bool:
    """Return whether outputs or targets agree, to `tolerance` of their size."""
    return bool(np.abs(ours - theirs).max(initial=0.0) <= tolerance * max(1.0, float(np.abs(theirs).max(initial=0.0))))


def gained(made: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> int:
    """Return how many more numbers agree in every tick than before a change; 0 where it loses one, or gets no nearer."""
    if made.shape != theirs.shape:
        return 0
    scale = 1e-4 * (1 + np.abs(theirs).max(axis=0))
    before, after = np.abs(ours - theirs).max(axis=0), np.abs(made - theirs).max(axis=0)
    lost = (before <= scale) & (after > scale)
    if lost.any() or after.sum() >= before.sum():
        return 0
    return int(((after <= scale) & (after < before)).sum())
