# SPDX-License-Identifier: Apache-2.0
"""Whether a policy may go on a robot: it has a passport, and the passport fits the policy, the robot and this software."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sim2real_ros
from sim2real_ros.contract.contract import Contract
from sim2real_ros.contract.load import read_model
from sim2real_ros.errors import Sim2RealError
from sim2real_ros.policy.identity import network_identity
from sim2real_ros.robot import Robot
from sim2real_ros.validation.passport import Passport, contract_fields, read_passport, robot_section

SHOWN = 3  # fields of a document that are told one by one
GET_ONE = 'sim2real validate makes one when the policy has proven itself'
AGAIN = 'validate it again, or undo the change'


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of a look at a policy's papers.

    Attributes:
        passport: that was found and can be read.
        faults: why the policy must not go on this robot, one sentence each.
        text: the same for people, in one line.
        missing: whether there is none at all.
    """

    passport: Passport | None
    faults: tuple[str, ...]
    text: str
    missing: bool = False

    @property
    def granted(self) -> bool:
        """Whether the policy may go on the robot."""
        return not self.faults


def examine(contract: Contract, robot: Robot | None) -> Admission:
    """Look at the passport of a policy; never raises for what is wrong with it.

    Args:
        contract: from a file.
        robot: it shall go on; None for one that is not known, which is no fault.
    """
    try:
        passport = read_passport(contract)
        if passport is None:
            return Admission(
                None, (_plain(f'{contract.file.name} has no passport: {GET_ONE}'),), f'none: {GET_ONE}', missing=True
            )
        faults = policy_faults(passport, contract) if robot is None else fits(passport, contract, robot)
    except (Sim2RealError, OSError) as error:
        text = _plain(str(error))
        return Admission(None, (text,), f'cannot be read: {text}')
    if faults:
        return Admission(passport, tuple(map(_plain, faults)), _plain(f'does not fit: {"; ".join(faults)}'))
    return Admission(passport, (), _plain(passport.sentence))


def valid_passport(contract: Contract) -> Passport | None:
    """Return the passport of a policy if it fits the policy, whatever the robot; else None."""
    admission = examine(contract, None)
    return admission.passport if admission.granted else None


def fits(passport: Passport, contract: Contract, robot: Robot) -> list[str]:
    """Return what does not fit, one sentence per field: what it was, what it is, what to do."""
    return [*policy_faults(passport, contract), *robot_faults(passport, robot)]


def policy_faults(passport: Passport, contract: Contract) -> list[str]:
    """Return what does not fit the policy or this software."""
    faults = []
    assert contract.model_path is not None
    network = network_identity(contract.model_path)
    if hashlib.sha256(read_model(contract.model_path)).hexdigest() != contract.file.model.sha256:
        faults.append(f'network: {contract.model_path.name} is not the file any more that was loaded: load the policy again')
    if network != passport.network:
        faults.append(
            f'network: {passport.network[:12]} was validated, {contract.model_path.name} is {network[:12]}: '
            'validate it, or put the other file back'
        )
    faults += _different('contract', passport.contract, contract_fields(contract))
    if passport.version != sim2real_ros.__version__:
        own = sim2real_ros.__version__
        faults.append(f'version: sim2real_ros {passport.version} validated it, this is {own}: validate it again')
    return faults


def robot_faults(passport: Passport, robot: Robot) -> list[str]:
    """Return what does not fit the robot. A profile, which makes a robot milder, may be chosen on top of what was validated."""
    was = passport.robot
    if was.name != robot.name:
        return [f'robot: it was validated on {was.name}, this is {robot.name}: validate it on {robot.name}']
    faults = []
    if was.profile and was.profile != robot.profile:
        chosen = robot.profile or 'none'
        faults.append(f'profile: it was validated in the profile {was.profile} alone, chosen is {chosen}: {AGAIN}')
    now = robot_section(robot, was.profile)
    faults += _different('robot', was.file, now.file)
    if was.urdf != now.urdf:
        faults.append(f'urdf: {robot.urdf.name} has changed, {was.urdf[:12]} was validated, it is {now.urdf[:12]}: {AGAIN}')
    return faults


def _different(what: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each of the first fields that differ, and one for the rest."""
    before, after = dict(_leaves(was)), dict(_leaves(now))
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name, _NOTHING) != after.get(name, _NOTHING)]
    told = [
        f'{what}.{name}: {_text(before, name)} was validated, it is {_text(after, name)}: {AGAIN}' for name in names[:SHOWN]
    ]
    return [*told, f'{what}: {len(names) - SHOWN} more fields have changed: {AGAIN}'] if len(names) > SHOWN else told


def _plain(text: str) -> str:
    """Return a text as one line that terminals and ROS strings can take, whatever stands in the files."""
    return str(Sim2RealError(' '.join(text.split())))


_NOTHING = object()


def _leaves(value: Any, path: str = '') -> Iterator[tuple[str, Any]]:
    """Yield every field of a document with its path; empty tables and lists are fields."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    if not value or not isinstance(value, (Mapping, list)):
        yield path, value
        return
    for key, inner in items:
        yield from _leaves(inner, f'{path}.{key}' if path else str(key))


def _text(leaves: Mapping[str, Any], name: str) -> str:
    return json.dumps(leaves[name]) if name in leaves else 'nothing'
