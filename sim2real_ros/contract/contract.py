# SPDX-License-Identifier: Apache-2.0
"""`Contract`: a checked contract with its tables expanded to the policy's joint order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter as Repeated
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real_ros.contract.cross_checks import check_actions, check_inputs, tensor_key
from sim2real_ros.contract.schema import Action, Blocks, ContractFile, Counter, First, Observation, State
from sim2real_ros.contract.tables import action_joints, expand
from sim2real_ros.document import validate
from sim2real_ros.errors import DocumentError
from sim2real_ros.joints import by_name
from sim2real_ros.signals import Gains


@dataclass(frozen=True, slots=True)
class Contract:
    """What a policy needs and gives. Arrays are (n,) in the policy's joint order."""

    file: ContractFile
    source: str  # where it was read, for messages
    folder: Path | None  # that its paths are relative to; None when it came over the wire
    joints: tuple[str, ...]
    default_position: np.ndarray  # rad
    gains: Gains
    id: str  # 12 hex digits; changes with any field and with the weights

    @property
    def model_path(self) -> Path | None:
        """The network file; None when the contract came over the wire."""
        return None if self.folder is None else self.folder / self.file.model.file

    @property
    def period_s(self) -> float:
        """Policy period in s."""
        return 1.0 / self.file.rate_hz

    @property
    def observations(self) -> dict[str, list[Observation]]:
        """Input tensors made of observation terms, by tensor name: the blocks that lie in each side by side, most often one."""
        return {
            name: part.blocks if isinstance(part, Blocks) else [part]
            for name, part in self.file.inputs.items()
            if isinstance(part, (Observation, Blocks))
        }

    @property
    def states(self) -> dict[str, State]:
        """Recurrent input tensors, by tensor name."""
        return {name: part for name, part in self.file.inputs.items() if isinstance(part, State)}

    @property
    def counters(self) -> dict[str, Counter]:
        """Input tensors that count ticks, by tensor name."""
        return {name: part for name, part in self.file.inputs.items() if isinstance(part, Counter)}

    @property
    def flags(self) -> list[str]:
        """Names of the input tensors that tell the first tick."""
        return [name for name, part in self.file.inputs.items() if isinstance(part, First)]

    @property
    def tensors(self) -> dict[str, str]:
        """The output tensor that each action reads, by action: its name, or `#3` where the contract counts the outputs."""
        return {name: tensor_key(name, action) for name, action in self.file.outputs.items()}

    def action_joints(self, action: Action) -> tuple[str, ...]:
        """Return the joints that an output drives, in the output's order."""
        return action_joints(action, self.joints)

    @property
    def action_width(self) -> int:
        """Length of all the actions side by side, in the order of `outputs`."""
        return sum(len(self.action_joints(action)) for action in self.file.outputs.values())

    def to_json(self) -> str:
        """Return the contract as canonical JSON, the form that travels between nodes and in ONNX metadata."""
        return _canonical(self.file)

    @staticmethod
    def from_json(text: str, source: str) -> Contract:
        """Read a contract that another process sent.

        Raises:
            DocumentError: it has faults; all are listed.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DocumentError(source, [f'not valid JSON: {error}']) from None
        return resolve(validate(ContractFile, data, source), source, None, literal=True)


def _canonical(file: ContractFile) -> str:
    return json.dumps(file.model_dump(mode='json', by_alias=True, exclude_none=False), sort_keys=True, separators=(',', ':'))


def resolve(file: ContractFile, source: str, folder: Path | None, *, literal: bool = False) -> Contract:
    """Expand a contract's tables and check what one field says against another.

    A `literal` contract comes from another process: its tables are taken by name alone, and its observation terms are the
    sender's business, so that no pattern and no plug-in of a policy runs in the process that stops it.

    Raises:
        DocumentError: it has faults; all are listed.
    """
    joints = tuple(file.joints)
    faults = [f'joints: {name} occurs {count} times' for name, count in Repeated(joints).items() if count > 1]
    tables = {
        field: by_name(getattr(file, field), joints, faults, field, literal=literal)
        for field in ('default_position', 'stiffness', 'damping')
    }
    check_actions(file, tables['stiffness'], faults, literal)
    check_inputs(file, faults)
    file = expand(file, joints, tables)
    identity = hashlib.sha256(_canonical(file).encode()).hexdigest()[:12]
    gains = Gains(tables['stiffness'], tables['damping'])
    contract = Contract(file, source, folder, joints, tables['default_position'], gains, identity)
    if not literal:
        _check_terms(contract, faults)
    if faults:
        raise DocumentError(source, faults)
    return contract


def _check_terms(contract: Contract, faults: list[str]) -> None:
    from sim2real_ros.observation.slots import resolve_slots  # noqa: PLC0415 - terms take a contract

    for name, blocks in contract.observations.items():
        resolve_slots(name, blocks, contract, faults)
