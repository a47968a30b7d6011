# SPDX-License-Identifier: Apache-2.0
"""`Contract`: a checked contract with its tables expanded to the policy's joint order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real_ros.contract.schema import Action, ContractFile, Observation, State
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
        return None if self.folder is None else (self.folder / self.file.model.file).resolve()

    @property
    def period_s(self) -> float:
        """Policy period in s."""
        return 1.0 / self.file.rate_hz

    @property
    def observations(self) -> dict[str, Observation]:
        """Input tensors made of observation terms, by tensor name."""
        return {name: part for name, part in self.file.inputs.items() if isinstance(part, Observation)}

    @property
    def states(self) -> dict[str, State]:
        """Recurrent input tensors, by tensor name."""
        return {name: part for name, part in self.file.inputs.items() if isinstance(part, State)}

    def action_joints(self, action: Action) -> tuple[str, ...]:
        """Return the joints that an output drives, in the output's order."""
        return tuple(action.joints) if action.joints is not None else self.joints

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
    faults: list[str] = []
    joints = tuple(file.joints)
    for name, count in Counter(joints).items():
        if count > 1:
            faults.append(f'joints: {name} occurs {count} times')
    tables = {
        field: by_name(getattr(file, field), joints, faults, field, literal=literal)
        for field in ('default_position', 'stiffness', 'damping')
    }
    stiffness = tables['stiffness']
    _check_actions(file, joints, stiffness, faults, literal)
    _check_inputs(file, faults)
    file = _expanded(file, joints, tables)
    identity = hashlib.sha256(_canonical(file).encode()).hexdigest()[:12]
    contract = Contract(file, source, folder, joints, tables['default_position'], Gains(stiffness, tables['damping']), identity)
    if not literal:
        _check_terms(contract, faults)
    if faults:
        raise DocumentError(source, faults)
    return contract


def _check_terms(contract: Contract, faults: list[str]) -> None:
    from sim2real_ros.observation.builder import resolve_slots  # noqa: PLC0415 - terms take a contract

    for name, part in contract.observations.items():
        resolve_slots(name, part, contract, faults)


def _expanded(file: ContractFile, joints: tuple[str, ...], tables: dict[str, np.ndarray]) -> ContractFile:
    """Return the file with every table written out joint by joint: patterns do not travel."""
    update: dict[str, object] = {field: dict(zip(joints, values.tolist(), strict=True)) for field, values in tables.items()}
    outputs = {}
    for name, action in file.outputs.items():
        if isinstance(action.scale, dict):
            own = action.joints if action.joints is not None else list(joints)
            scale = dict(zip(own, by_name(action.scale, own, [], '').tolist(), strict=True))
            action = action.model_copy(update={'scale': scale})
        outputs[name] = action
    return file.model_copy(update=update | {'outputs': outputs})


def _check_actions(
    file: ContractFile, joints: tuple[str, ...], stiffness: np.ndarray, faults: list[str], literal: bool
) -> None:
    driven: Counter[str] = Counter()
    for name, action in file.outputs.items():
        own = action.joints if action.joints is not None else list(joints)
        where = f'outputs.{name}'
        unknown = [joint for joint in own if joint not in joints]
        if unknown:
            faults.append(f"{where}.joints: {', '.join(unknown)} not among the contract's joints {', '.join(joints)}")
        driven.update(own)
        if isinstance(action.scale, dict):
            by_name(action.scale, own, faults, f'{where}.scale', literal=literal)
        stiff = [j for j in own if j in joints and stiffness[joints.index(j)] > 0]
        if action.type != 'joint_position' and stiff:
            faults.append(f'{where}: a {action.type} action needs stiffness 0 on its joints, not so on {", ".join(stiff)}')
    for joint, count in driven.items():
        if count > 1:
            faults.append(f'outputs: {joint} is driven by {count} actions')
    idle = [joint for joint in joints if joint not in driven]
    if idle:
        faults.append(f'outputs: no action drives {", ".join(idle)}')


def _check_inputs(file: ContractFile, faults: list[str]) -> None:
    observations = {name: part for name, part in file.inputs.items() if isinstance(part, Observation)}
    if not observations:
        faults.append('inputs: none of them is made of observation terms')
    used = {use.term for part in observations.values() for use in part.terms}
    if 'velocity_command' in used and file.commands.velocity is None:
        faults.append('commands.velocity: is missing, but the term velocity_command is used')
    if 'phase' in used and file.phase is None:
        faults.append('phase: is missing, but the term phase is used')
    if file.phase is not None and file.phase.stop_at_zero_command and file.commands.velocity is None:
        faults.append('phase.stop_at_zero_command: there is no velocity command to be zero')
