# SPDX-License-Identifier: Apache-2.0
"""Promises of the passport: it fits what was validated, names the field that does not, and travels with a packed policy."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import yaml
from makers import write_policy, write_yaml

import sim2real_ros
from sim2real_ros.contract import load_contract
from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import DocumentError, OutputError, RunError
from sim2real_ros.paths import find_policy, find_robot
from sim2real_ros.policy.inspection import inspect
from sim2real_ros.policy.pack import pack
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.tools.cli import main
from sim2real_ros.validation.admission import examine, fits
from sim2real_ros.validation.episode import Episode
from sim2real_ros.validation.passport import Passport, passport_path, read_passport, write_passport
from sim2real_ros.validation.plan import plan
from sim2real_ros.validation.schema import load_validation
from sim2real_ros.validation.verdict import Verdict

LEVEL = load_validation('standard')[0]
PASSED = Verdict.of(LEVEL, [Episode(str(name), '', 20.0, 0.5, {}, {}, '') for name in plan(LEVEL, 250)], 1000)
FAILED = Verdict.of(LEVEL, [Episode(str(name), 'fell', 1.0, -1.0, {}, {}, '') for name in plan(LEVEL, 250)], 1000)


def change(path: Path, *keys: str, to: object) -> None:
    """Change one field of a YAML or JSON file."""
    document = yaml.safe_load(path.read_text())
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    path.write_text(json.dumps(document) if path.suffix == '.json' else yaml.safe_dump(document))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped policy, without a passport it may have."""
    shutil.copytree(find_policy('go2_velocity').parent, tmp_path / 'policy')
    (tmp_path / 'policy' / 'passport.json').unlink(missing_ok=True)
    return tmp_path / 'policy'


@pytest.fixture
def robot_file(tmp_path: Path) -> Path:
    """A copy of the shipped robot."""
    source = find_robot('go2')
    document = yaml.safe_load(source.read_text())
    urdf = tmp_path / 'model.urdf'
    shutil.copy((source.parent / document['urdf']).resolve(), urdf)
    return write_yaml(tmp_path / 'robot.yaml', document | {'urdf': urdf.name})


def issued(folder: Path, robot: Robot, **changes: object) -> Contract:
    """Issue and store a passport; returns the contract."""
    contract = load_contract(folder)
    passport = Passport.issue(PASSED, LEVEL, contract, robot, 7, tolerances={'action_delay_s': 0.02}, made_with={'a': 'b'})
    write_passport(passport.model_copy(update=changes), contract)
    return contract


def only(faults: list[str]) -> str:
    """Return the only fault."""
    assert len(faults) == 1, faults
    return faults[0]


def test_a_policy_that_was_validated_is_admitted(folder: Path, robot_file: Path):
    robot = load_robot(robot_file)
    admission = examine(issued(folder, robot), robot)
    assert admission.granted
    assert (folder / 'passport.json').is_file()
    assert admission.text.startswith('level standard on go2: at least 98.8 % success with 95 % confidence, 250 episodes, ')
    passport = admission.passport
    assert (passport.seed, passport.episodes, passport.failures, passport.bound) == (7, 250, 0, PASSED.bound)
    assert (passport.tolerances, passport.made_with) == ({'action_delay_s': 0.02}, {'a': 'b'})
    assert passport.worlds['ranges']['friction'] == LEVEL.ranges.friction


def test_a_claim_that_does_not_hold_gives_no_passport(folder: Path):
    for verdict in (FAILED, Verdict.of(LEVEL, [])):
        with pytest.raises(RunError, match='no passport for go2_velocity: '):
            Passport.issue(verdict, LEVEL, load_contract(folder), load_robot('go2'), 7)


def test_a_policy_without_one_is_told_how_to_get_it(folder: Path):
    admission = examine(load_contract(folder), load_robot('go2'))
    assert not admission.granted
    assert only(list(admission.faults)) == (
        'go2_velocity has no passport: sim2real validate makes one when the policy has proven itself'
    )


@pytest.mark.parametrize(
    ('keys', 'value', 'sentence'),
    [
        (('rate_hz',), 40.0, 'contract.rate_hz: 50.0 was validated, it is 40.0: validate it again, or undo the change'),
        (('damping',), {'.*': 0.9}, 'contract: 9 more fields have changed'),
        (('outputs', 'actions', 'scale'), 0.5, 'contract.outputs.actions.scale'),
        (('commands', 'velocity', 'x'), [-3.0, 3.0], 'contract.commands.velocity.x.0: -1.0 was validated, it is -3.0'),
    ],
)
def test_a_contract_that_was_changed_is_named_by_its_field(folder: Path, keys: tuple[str, ...], value: object, sentence: str):
    robot = load_robot('go2')
    issued(folder, robot)
    change(folder / 'policy.yaml', *keys, to=value)
    contract = load_contract(folder)
    assert sentence in '\n'.join(fits(read_passport(contract), contract, robot))


def test_what_does_not_move_the_robot_may_change(folder: Path, robot_file: Path):
    issued(folder, load_robot(robot_file))
    change(folder / 'policy.yaml', 'name', to='renamed')
    change(folder / 'policy.yaml', 'provenance', 'trainer', to='somebody else')
    change(folder / 'policy.yaml', 'golden', to=None)
    robot_file.write_text('# a remark\n' + robot_file.read_text())
    model = onnx.load(str(folder / 'policy.onnx'))
    entry = model.metadata_props.add()
    entry.key, entry.value = 'note', 'to whom it may concern'
    (folder / 'policy.onnx').write_bytes(model.SerializeToString())
    document = yaml.safe_load((folder / 'policy.yaml').read_text())
    document['model'].pop('sha256', None)
    write_yaml(folder / 'policy.yaml', document)
    assert examine(load_contract(folder), load_robot(robot_file)).faults == ()


def test_another_network_is_named(folder: Path):
    robot = load_robot('go2')
    issued(folder, robot, network='0' * 64)
    contract = load_contract(folder)
    fault = only(fits(read_passport(contract), contract, robot))
    assert fault.startswith('network: 000000000000 was validated, policy.onnx is ')


def test_another_version_of_this_software_is_named(folder: Path):
    robot = load_robot('go2')
    contract = issued(folder, robot, version='0.0.9')
    own = sim2real_ros.__version__
    assert only(fits(read_passport(contract), contract, robot)) == (
        f'version: sim2real_ros 0.0.9 validated it, this is {own}: validate it again'
    )


def test_a_robot_file_that_was_changed_is_named_by_its_field(folder: Path, robot_file: Path):
    contract = issued(folder, load_robot(robot_file))
    margin = yaml.safe_load(robot_file.read_text())['safety']['position_margin']
    change(robot_file, 'safety', 'position_margin', to=0.01)
    fault = only(list(examine(contract, load_robot(robot_file)).faults))
    assert fault.startswith(f'robot.safety.position_margin: {margin} was validated, it is 0.01: ')


def test_a_urdf_that_was_changed_is_named(folder: Path, robot_file: Path):
    contract = issued(folder, load_robot(robot_file))
    urdf = robot_file.with_name('model.urdf')
    urdf.write_text(urdf.read_text() + '<!-- heavier -->')
    assert only(list(examine(contract, load_robot(robot_file)).faults)).startswith('urdf: model.urdf has changed')


def test_another_robot_is_named(folder: Path):
    robot = load_robot('go2')
    contract = issued(folder, robot)
    fault = only(fits(read_passport(contract), contract, replace(robot, name='spot')))
    assert fault == 'robot: it was validated on go2, this is spot: validate it on spot'


def test_a_milder_profile_may_be_chosen_and_one_that_was_validated_alone_must(folder: Path):
    whole, mild = load_robot('go2'), load_robot('go2', 'first_steps')
    contract = issued(folder, whole)
    assert examine(contract, mild).granted
    issued(folder, mild)
    assert examine(contract, mild).granted
    assert 'in the profile first_steps alone, chosen is none' in only(list(examine(contract, whole).faults))


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        (b'', 'a mapping'),
        (b'{"schema": 1', 'not valid'),
        (b'[1, 2]', 'a mapping'),
        (b'\xff\xfe\x00', 'not a text file'),
        (b'{"schema": 1, "policy": "x"}', 'network: is missing'),
        (b'{"schema": 2}', 'schema'),
        (b'null', 'a mapping'),
        (b'{"contract": ' + b'[' * 400 + b']' * 400 + b'}', 'nested too deeply'),
        (b'{"contract": ' + b'[' * 99999, 'nested too deeply'),
    ],
)
def test_a_damaged_passport_is_one_clear_error(folder: Path, content: bytes, said: str):
    (folder / 'passport.json').write_bytes(content)
    contract = load_contract(folder)
    with pytest.raises(DocumentError, match='remove it, or validate the policy again') as caught:
        read_passport(contract)
    assert said in str(caught.value)
    admission = examine(contract, load_robot('go2'))
    assert not admission.granted
    assert '\n' not in admission.text


def test_a_passport_whose_numbers_were_mended_by_hand_is_refused(folder: Path):
    contract = issued(folder, load_robot('go2'))
    for name, value in (('bound', 1.2), ('bound', 0.9), ('failures', 250)):
        good = (folder / 'passport.json').read_text()
        change(folder / 'passport.json', name, to=value)
        assert f'{name}: ' in examine(contract, load_robot('go2')).text
        (folder / 'passport.json').write_text(good)


def test_what_a_passport_says_cannot_play_with_the_terminal(folder: Path):
    contract = issued(folder, load_robot('go2'), level='\x1b[2Jstandard\r\nlevel hard')
    admission = examine(contract, load_robot('go2'))
    assert not set('\x1b\r\n') & set(admission.text)
    change(folder / 'passport.json', 'contract', '\x1b[2J', to='\x07')
    admission = examine(contract, load_robot('go2'))
    assert not set('\x1b\x07\n') & set(admission.text + ''.join(admission.faults))


def test_a_folder_in_its_place_is_no_passport(folder: Path):
    (folder / 'passport.json').mkdir()
    assert not examine(load_contract(folder), load_robot('go2')).granted
    with pytest.raises(OutputError, match='cannot write the passport'):
        issued(folder, load_robot('go2'))


def test_policies_side_by_side_have_passports_of_their_own(tmp_path: Path):
    write_policy(tmp_path)
    for name in ('walk', 'run'):
        shutil.copy(tmp_path / 'policy.yaml', tmp_path / f'{name}.yaml')
        assert passport_path(load_contract(tmp_path / f'{name}.yaml')) == tmp_path / f'{name}.passport.json'
    assert passport_path(load_contract(tmp_path)) == tmp_path / 'passport.json'


def test_a_packed_policy_carries_its_passport(folder: Path, tmp_path: Path):
    robot = load_robot('go2')
    issued(folder, robot)
    out = tmp_path / 'elsewhere' / 'walk.onnx'
    out.parent.mkdir()
    pack(str(folder), out)
    shutil.rmtree(folder)
    assert [path.name for path in out.parent.iterdir()] == ['walk.onnx']
    packed = load_contract(out)
    admission = examine(packed, robot)
    assert admission.granted, admission.text
    assert admission.passport.bound == PASSED.bound
    assert passport_path(packed) == out.parent / 'walk.passport.json'


def test_a_packed_policy_whose_weights_are_changed_afterwards_is_refused(folder: Path, tmp_path: Path):
    issued(folder, load_robot('go2'))
    out = tmp_path / 'walk.onnx'
    pack(str(folder), out)
    model = onnx.load(str(out))
    model.graph.node[0].name += '_'
    out.write_bytes(model.SerializeToString())
    assert 'network: ' in examine(load_contract(out), load_robot('go2')).text


def test_packing_gives_no_passport_to_a_policy_whose_own_does_not_fit(folder: Path, tmp_path: Path):
    issued(folder, load_robot('go2'), network='0' * 64)
    out = tmp_path / 'walk.onnx'
    pack(str(folder), out)
    assert examine(load_contract(out), load_robot('go2')).text.startswith('none: ')


def checks(folder: Path, *arguments: object) -> dict[str, tuple[str, str]]:
    """Return verdict and detail of the checks of `sim2real check`, by name."""
    return {check.name: (check.verdict, check.detail) for check in inspect(str(folder), *arguments)}


def test_check_tells_the_state_of_the_passport_and_only_a_wrong_one_fails(folder: Path):
    assert checks(folder)['passport'][0] == 'warn'
    issued(folder, load_robot('go2'))
    assert checks(folder)['passport'][0] == 'pass'
    change(folder / 'policy.yaml', 'rate_hz', to=40.0)
    assert checks(folder)['passport'][0] == 'fail'
    (folder / 'passport.json').write_text('{')
    assert checks(folder)['passport'][0] == 'fail'


def test_check_holds_the_age_of_commands_against_the_passport(folder: Path):
    assert checks(folder, None, 0.005)['command age'][0] == 'skip'
    issued(folder, load_robot('go2'), tolerances={'command_delay_s': 0.008})
    assert checks(folder, None, 0.005)['command age'] == (
        'pass', 'commands are 5.0 ms old, the policy bears 8.0 ms: 3.0 ms to spare',
    )  # fmt: skip
    assert checks(folder, None, 0.009)['command age'][0] == 'fail'
    assert 'command age' not in checks(folder)
    change(folder / 'policy.yaml', 'rate_hz', to=40.0)  # what was found out is not of this policy any more
    assert checks(folder, None, 0.005)['command age'][0] == 'skip'


def test_show_prints_it(folder: Path, capsys: pytest.CaptureFixture[str]):
    issued(folder, load_robot('go2'))
    assert main(['show', str(folder)]) == 0
    assert 'level standard on go2: at least 98.8 %' in ' '.join(capsys.readouterr().out.split())


@pytest.mark.parametrize('age', ['-1', 'nan', '1e9', 'slow'])
def test_an_age_that_is_none_is_refused_before_anything_runs(age: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(['check', 'go2_velocity', '--command-age-ms', age])
    assert 'is no number of milliseconds from 0 to 1000' in capsys.readouterr().err


@pytest.mark.parametrize('profile', ['', 'first_steps'])
def test_the_shipped_policy_may_go_on_its_robot(profile):
    """Validate again, and commit the passport, after a change of the policy, the robot file, the URDF or the version."""
    admission = examine(load_contract('go2_velocity'), load_robot('go2', profile))
    assert admission.faults == ()
    assert admission.granted
    assert admission.passport.level == 'standard'
    assert admission.passport.tolerances['command_delay_s'] >= 0.002
