# SPDX-License-Identifier: Apache-2.0
"""`Passport`: what was proven of a policy, on which robot and with what, stored beside it as JSON.

It names what the proof depends on: the network by its identity, contract and robot file field by field, so that a
passport which does not fit any more can say why. What does not change how the robot moves (names, provenance, golden
vectors) is left out. It guards against mistakes and not against malice: nobody signs it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

import sim2real_ros
from sim2real_ros.contract.attachments import METADATA_KEY, MOTION_KEY, PASSPORT_KEY, attached_bytes
from sim2real_ros.contract.contract import Contract
from sim2real_ros.document import Section, parse_yaml, read_yaml, validate
from sim2real_ros.errors import DocumentError, OutputError, RunError
from sim2real_ros.paths import read_file
from sim2real_ros.policy.identity import network_identity
from sim2real_ros.policy.session import read_metadata
from sim2real_ros.robot import Robot
from sim2real_ros.validation.statistics import percent

if TYPE_CHECKING:  # a robot needs neither engine nor levels
    from sim2real_ros.validation.schema import ValidationFile
    from sim2real_ros.validation.verdict import Verdict

ABOUT = ('name', 'model', 'golden', 'novelty', 'assumptions', 'provenance')  # of a contract; the network has its identity
ELSEWHERE = ('urdf', 'profiles')  # of a robot file
ROUNDING = 1e-9
DEPTH = 30  # of nested tables and lists
DAMAGED = 'remove it, or validate the policy again'

Hash = Annotated[str, Field(pattern='^[0-9a-f]{64}$')]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class RobotSection(Section):
    """The robot that was validated."""

    name: str
    profile: str
    file: dict[str, Any]
    urdf: Hash


class Passport(Section):
    """What was proven."""

    schema_: Literal[1] = Field(alias='schema')
    policy: str
    network: Hash
    contract: dict[str, Any]
    robot: RobotSection
    level: str
    worlds: dict[str, Any]  # the whole file of the level
    seed: int
    episodes: Count
    failures: Count
    bound: Share  # of success, by the claim's confidence
    success: Share
    confidence: Share
    tolerances: dict[
        str, Annotated[float, Field(ge=0)]
    ] = {}  # by name and unit, as action_delay_s: how much of it the policy bears
    version: str  # of this package
    made_with: dict[str, str] = {}  # fingerprint of the study
    date: str

    @model_validator(mode='after')
    def _consistent(self) -> Passport:
        if self.bound < self.success - ROUNDING:
            raise ValueError(f'bound: {self.bound:g} proves less than the claim, {self.success:g}')
        claim = {'success': self.success, 'confidence': self.confidence}
        if (self.worlds.get('name'), self.worlds.get('claim')) != (self.level, claim):
            raise ValueError(f'worlds: is not the level {self.level} with the claim of {self.success:g} at {self.confidence:g}')
        if self.failures >= self.episodes:
            raise ValueError(f'failures: {self.failures} of {self.episodes} episodes prove nothing')
        return self

    @classmethod
    def issue(
        cls,
        verdict: Verdict,
        level: ValidationFile,
        contract: Contract,
        robot: Robot,
        seed: int,
        *,
        tolerances: Mapping[str, float] | None = None,
        made_with: Mapping[str, str] | None = None,
    ) -> Passport:
        """Make one of a verdict.

        Args:
            verdict: of the study.
            level: of the study.
            contract: of the policy, from a file.
            robot: of the study.
            seed: of the study.
            tolerances: see above.
            made_with: fingerprint of the study, for people.

        Raises:
            RunError: the claim does not hold.
        """
        if not verdict.holds or verdict.bound is None:
            raise RunError(f'no passport for {contract.file.name}: {verdict.sentence}')
        assert contract.model_path is not None
        return cls(
            schema=1, policy=contract.file.name, network=network_identity(contract.model_path),
            contract=contract_fields(contract), robot=robot_section(robot, robot.profile),
            level=level.name, worlds=level.model_dump(mode='json', by_alias=True), seed=seed,
            episodes=verdict.n, failures=verdict.failures, bound=verdict.bound,
            success=verdict.success, confidence=verdict.confidence, tolerances=dict(tolerances or {}),
            version=sim2real_ros.__version__, made_with=dict(made_with or {}), date=date.today().isoformat(),
        )  # fmt: skip

    @property
    def sentence(self) -> str:
        """What was proven, for people."""
        proven = f'at least {percent(self.bound)} success with {percent(self.confidence)} confidence'
        profile = f' in the profile {self.robot.profile}' if self.robot.profile else ''
        return f'level {self.level} on {self.robot.name}{profile}: {proven}, {self.episodes} episodes, {self.date}'

    def to_json(self, indent: int | None = 2) -> str:
        """Return it as text."""
        return json.dumps(self.model_dump(mode='json', by_alias=True), indent=indent)


def contract_fields(contract: Contract) -> dict[str, Any]:
    """Return what a contract says about how the policy moves the robot."""
    fields = {k: v for k, v in contract.file.model_dump(mode='json', by_alias=True).items() if k not in ABOUT}
    motion = contract.file.motion
    if motion is not None and motion.file is not None:
        try:
            data = attached_bytes(contract, motion.file, MOTION_KEY)
        except (OSError, ValueError) as error:
            raise DocumentError(contract.source, [f'motion.file: cannot be read: {error}']) from None
        fields['motion'] |= {'file': hashlib.sha256(data).hexdigest()}
    return json.loads(json.dumps(fields))


def robot_section(robot: Robot, profile: str) -> RobotSection:
    """Return what a passport says of a robot in one of its profiles."""
    file = read_yaml(robot.path)
    fields = {name: value for name, value in file.items() if name not in ELSEWHERE}
    if profile:
        fields['profiles'] = {profile: (file.get('profiles') or {}).get(profile)}
    urdf = hashlib.sha256(read_file(robot.urdf)).hexdigest()
    return RobotSection(name=robot.name, profile=profile, file=json.loads(json.dumps(fields)), urdf=urdf)


def passport_path(contract: Contract) -> Path:
    """Return where the passport of a policy lies: beside its contract, `passport.json` for policy.yaml and policy.onnx."""
    assert contract.model_path is not None
    inside = contract.source.endswith(f'[{METADATA_KEY}]')
    file = contract.model_path if inside else Path(contract.source)
    return file.parent / ('passport.json' if file.stem == 'policy' else f'{file.stem}.passport.json')


def write_passport(passport: Passport, contract: Contract) -> Path:
    """Store a passport beside its policy and return the file.

    Raises:
        OutputError: it cannot be written there.
    """
    path = passport_path(contract)
    try:
        path.write_text(passport.to_json() + '\n', encoding='utf-8')
    except OSError as error:
        raise OutputError(f'cannot write the passport {path}: {error.strerror}') from None
    return path


def read_passport(contract: Contract) -> Passport | None:
    """Return the passport beside a policy, else the one packed into its network, else None.

    Raises:
        DocumentError: it is damaged; one message says how.
    """
    path = passport_path(contract)
    text: str | None
    try:
        text, source = read_file(path).decode('utf-8'), str(path)
    except FileNotFoundError:
        assert contract.model_path is not None
        text, source = read_metadata(contract.model_path).get(PASSPORT_KEY), f'{contract.model_path} [{PASSPORT_KEY}]'
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'this is not a text file'
        raise DocumentError(str(path), [f'{reason}; {DAMAGED}']) from None
    if text is None:
        return None
    try:
        return validate(Passport, _shallow(parse_yaml(text, source), source), source)
    except DocumentError as error:
        raise DocumentError(source, [*error.faults, f'this is no passport that can be read: {DAMAGED}']) from None


def _shallow(document: Any, source: str, depth: int = DEPTH) -> Any:
    """Return a document; raises DocumentError where it is nested deeper than any contract or robot file."""
    inner = document.values() if isinstance(document, Mapping) else document if isinstance(document, list) else ()
    if inner and not depth:
        raise DocumentError(source, ['nested too deeply'])
    for value in inner:
        _shallow(value, source, depth - 1)
    return document
