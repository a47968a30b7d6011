# SPDX-License-Identifier: Apache-2.0
"""Promises of policy_node on hardware: no policy without a passport that fits, and a word about the field that does not."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

pytest.importorskip('mujoco')

from sim2real_ros import bringup  # noqa: E402
from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.paths import find_policy  # noqa: E402
from sim2real_ros.preflight.checks import CHECKS  # noqa: E402
from sim2real_ros.preflight.finding import Level  # noqa: E402
from sim2real_ros.preflight.observed import Papers  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.ros.preflight import Look  # noqa: E402
from sim2real_ros.tools.processes import command_line  # noqa: E402
from sim2real_ros.validation.episode import Episode  # noqa: E402
from sim2real_ros.validation.passport import Passport, write_passport  # noqa: E402
from sim2real_ros.validation.plan import plan  # noqa: E402
from sim2real_ros.validation.schema import load_validation  # noqa: E402
from sim2real_ros.validation.verdict import Verdict  # noqa: E402

ROBOT = load_robot('go2')


def stack(options: bringup.Options, **parameters: object) -> list[bringup.Process]:
    """Return the stack on the simulator, with other parameters of policy_node."""
    return [
        replace(p, parameters={**p.parameters, **parameters}) if p.executable == 'policy_node' else p
        for p in bringup.simulation(options)
    ]


def copy(folder: Path, *, validated: bool, **changes: object) -> Path:
    """Copy the shipped policy, change its contract, and give it a passport or none; returns the folder."""
    shutil.copytree(find_policy('go2_velocity').parent, folder)
    (folder / 'passport.json').unlink(missing_ok=True)
    document = yaml.safe_load((folder / 'policy.yaml').read_text())
    (folder / 'policy.yaml').write_text(yaml.safe_dump(document | changes))
    if validated:
        level, contract = load_validation('standard')[0], load_contract(folder)
        verdict = Verdict.of(level, [Episode(str(name), '', 20.0, 0.5, {}, {}, '') for name in plan(level, 1000)])
        tolerances = {'command_delay_s': 0.010}
        write_passport(Passport.issue(verdict, level, contract, ROBOT, 1, tolerances=tolerances), contract)
    return folder


def node(**parameters: str) -> tuple[int, list[str]]:
    """Start policy_node as on hardware; returns its exit code and its messages."""
    process = bringup.Process('policy_node', {'robot': 'go2', **parameters})
    line = command_line(process, bringup.Options(log_level='warn'))
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    return done.returncode, [text for text in done.stderr.splitlines() if '[rcl]' not in text]


def test_without_a_passport_the_node_ends_and_says_how_to_get_one(tmp_path: Path):
    code, (message,) = node(policy=str(copy(tmp_path / 'new', validated=False)))
    assert code == 1
    assert message.startswith(
        'policy_node: go2_velocity may not go on hardware: go2_velocity has no passport: sim2real validate makes one'
    )
    assert 'require_passport:=false' in message


def test_a_passport_that_does_not_fit_is_refused_by_its_field(tmp_path: Path):
    folder = copy(tmp_path / 'changed', validated=True)
    document = yaml.safe_load((folder / 'policy.yaml').read_text())
    (folder / 'policy.yaml').write_text(yaml.safe_dump(document | {'stiffness': {'.*': 60.0}}))
    code, (message,) = node(policy=str(folder))
    assert code == 1
    assert 'contract.stiffness.FL_hip_joint: 25.0 was validated, it is 60.0' in message


def test_a_backend_that_does_not_exist_is_refused():
    code, (message,) = node(policy='go2_velocity', backend='gazebo')
    assert code == 1
    assert message == 'policy_node: parameter backend: "gazebo" given, hardware or simulated possible'


def test_only_policies_with_a_passport_come_to_the_controls_of_a_robot(start, tmp_path: Path):
    first, other, new = (
        copy(tmp_path / name, validated=name != 'new', damping={'.*': 0.6 + 0.01 * k})
        for k, name in enumerate(('first', 'other', 'new'))
    )
    with start(lambda options: stack(options, backend='hardware'), policy=str(first)) as running:
        operator = running.operator
        operator.wait(lambda: operator.time > 0, 60, 'no clock')
        operator.insist('damp', 30)
        refusal = operator.set_parameter('policy_node', 'policy', str(new))
        assert 'may not go on hardware: go2_velocity has no passport' in str(refusal)
        assert operator.set_parameter('policy_node', 'shadow_policy', str(new)) is None, 'nobody follows it'
        assert operator.set_parameter('policy_node', 'policy', str(other)) is None
        assert operator.call('policy_node/rollback', 60) is None
        with Look() as looking:
            seen = looking.watch(ROBOT, 0.5)
        assert seen.passport == Papers(True, True, True, seen.passport.text, {'command_delay_s': 0.010})
        assert CHECKS['passport'](seen) == (Level.OK, seen.passport.text)
        assert seen.passport.text.startswith('level standard on go2: at least 98.8 % success')


def test_who_asks_for_it_gets_a_policy_without_a_passport(start, tmp_path: Path):
    """In simulation nobody has to ask: every other test of the stack runs without."""
    policy = str(copy(tmp_path / 'new', validated=False))
    own_risk = {'backend': 'hardware', 'require_passport': False}
    with start(lambda options: stack(options, **own_risk), policy=policy, real_time_factor=0.0) as running:
        running.stand_up()
        assert running.operator.mode == 'active'
