# SPDX-License-Identifier: Apache-2.0
"""The framework of the importers: detection, settings, networks, what is written and when."""

from __future__ import annotations

import pytest
import yaml
from foreign_yaml import DEPLOY, deploy, fields, gym, sar
from makers import make_onnx, write_yaml

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.importers import import_policy
from sim2real_ros.contract.importers.draft import put_field
from sim2real_ros.contract.importers.formats import FORMATS, format_named
from sim2real_ros.contract.importers.inert_yaml import parse_inert
from sim2real_ros.contract.importers.joint_files import joints_of_model
from sim2real_ros.contract.importers.onnx_files import external_files
from sim2real_ros.contract.importers.tables import rounding_error
from sim2real_ros.errors import DocumentError, FormatError, ModelFileError, NetworkError, NotFoundError, OutputError


def test_what_is_of_no_format_lists_the_formats_and_their_needs(tmp_path):
    write_yaml(tmp_path / 'config.yaml', {'a': 1})
    with pytest.raises(FormatError) as error:
        import_policy(tmp_path, tmp_path / 'out')
    assert all(f'{name}: ' in str(error.value) for name in FORMATS)


def test_every_format_says_what_it_needs_and_detects_nothing_in_an_empty_folder(tmp_path):
    for name in FORMATS:
        module = format_named(name)
        assert module.NEEDS
        assert module.detect(tmp_path) == 0
        assert module.detect(tmp_path / 'nothing') == 0


def test_a_format_that_does_not_exist_lists_those_that_do(tmp_path):
    with pytest.raises(FormatError, match='known are auto, unitree_rl_lab'):
        import_policy(deploy(tmp_path / 'p'), tmp_path / 'out', 'unitree')


def test_a_source_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match='does not exist'):
        import_policy(tmp_path / 'nothing', tmp_path / 'out')


def test_two_policies_in_one_folder_are_listed(tmp_path):
    deploy(tmp_path / 'both' / 'a')
    deploy(tmp_path / 'both' / 'b')
    with pytest.raises(FormatError, match='holds several policies') as error:
        import_policy(tmp_path / 'both', tmp_path / 'out', 'unitree_rl_lab')
    assert 'a/params/deploy.yaml' in str(error.value)


def test_what_is_written_is_clean_and_loads_again(tmp_path):
    contract = import_policy(deploy(tmp_path / 'dog'), tmp_path / 'out')
    text = (tmp_path / 'out' / 'policy.yaml').read_text(encoding='utf-8')
    assert load_contract(tmp_path / 'out').id == contract.id
    assert yaml.safe_load(text)['model']['sha256'] == contract.file.model.sha256
    assert '&' not in text
    assert str(tmp_path) not in text  # leaks no local path


def test_a_setting_changes_a_field_and_removes_its_assumption(tmp_path):
    source = gym(tmp_path / 'gym')
    assert 'phase.period_s' in fields(import_policy(source, tmp_path / 'a'))
    contract = import_policy(
        source, tmp_path / 'b', overrides={'phase.period_s': 0.75, 'inputs.obs.terms.2.scale': [1.0, 1.0, 0.5]}
    )
    assert contract.file.phase.period_s == 0.75
    assert contract.file.inputs['obs'].terms[2].scale == [1.0, 1.0, 0.5]
    assert 'phase.period_s' not in fields(contract)
    assert 'phase.first_tick' in fields(contract)


def test_a_setting_of_a_whole_part_removes_the_assumptions_below_it(tmp_path):
    contract = import_policy(gym(tmp_path / 'gym'), tmp_path / 'a', overrides={
        'commands.velocity': {'x': [-1.0, 1.0], 'y': [-0.1, 0.1], 'yaw': [-1.0, 1.0], 'timeout_s': 1.0}})  # fmt: skip
    assert not [field for field in fields(contract) if field.startswith('commands')]


def test_a_setting_of_an_unknown_field_is_refused_with_the_schema_s_message(tmp_path):
    with pytest.raises(DocumentError, match='phase.periode_s: is not a known key'):
        import_policy(gym(tmp_path / 'gym'), tmp_path / 'a', overrides={'phase.periode_s': 0.75})


def test_settings_reach_patterns_lists_and_new_parts():
    tree = {'stiffness': {'.*_hip': 1.0, '.*_knee.x': 2.0}, 'terms': [{'a': 1}, {'a': 2}]}
    put_field(tree, 'stiffness..*_knee.x', 3.0)
    put_field(tree, 'terms.1.a', 5)
    put_field(tree, 'latency.trained_ms', [0, 20])
    assert tree['stiffness'] == {'.*_hip': 1.0, '.*_knee.x': 3.0}
    assert tree['terms'] == [{'a': 1}, {'a': 5}]
    assert tree['latency'] == {'trained_ms': [0, 20]}
    with pytest.raises(FormatError, match='"7" is not an index of a list of 2'):
        put_field(tree, 'terms.7.a', 0)
    with pytest.raises(FormatError, match='no field "b" below the value'):
        put_field(tree, 'terms.0.a.b', 0)


def test_a_policy_that_is_there_is_replaced_by_force_only(tmp_path):
    source = deploy(tmp_path / 'dog')
    import_policy(source, tmp_path / 'out')
    with pytest.raises(OutputError, match='--force'):
        import_policy(source, tmp_path / 'out')
    import_policy(source, tmp_path / 'out', force=True)


def test_nothing_is_written_when_the_network_does_not_fit(tmp_path):
    with pytest.raises(NetworkError, match="the network has 48 numbers, the contract's terms make 45") as error:
        import_policy(deploy(tmp_path / 'dog', width=48), tmp_path / 'out')
    assert str(tmp_path / 'dog') in str(error.value)
    assert not (tmp_path / 'out').exists()


def test_weights_beside_the_network_are_checked_and_copied(tmp_path):
    source = deploy(tmp_path / 'dog')
    network = source / 'exported' / 'policy.onnx'
    make_onnx(network, {'obs': 45}, {'actions': 12}, external=True)
    assert external_files(network.read_bytes()) == ['policy.onnx.data']
    import_policy(source, tmp_path / 'out')
    assert (tmp_path / 'out' / 'policy.onnx.data').is_file()
    side = source / 'exported' / 'policy.onnx.data'
    side.write_bytes(b'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n')
    with pytest.raises(ModelFileError, match='policy.onnx.data is a Git-LFS pointer'):
        import_policy(source, tmp_path / 'b')
    side.unlink()
    with pytest.raises(ModelFileError, match='its weights lie in policy.onnx.data, which is not beside it'):
        import_policy(source, tmp_path / 'b')


def test_weights_outside_the_folder_are_refused(tmp_path):
    import onnx

    source = deploy(tmp_path / 'dog')
    network = source / 'exported' / 'policy.onnx'
    make_onnx(network, {'obs': 45}, {'actions': 12}, external=True)
    model = onnx.load(network, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == 'location':
                entry.value = '../../secret'
    network.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match='outside its own folder'):
        import_policy(source, tmp_path / 'out')


def test_a_pointer_in_place_of_the_network_is_named(tmp_path):
    source = deploy(tmp_path / 'dog')
    (source / 'exported' / 'policy.onnx').write_bytes(b'version https://git-lfs.github.com/spec/v1\n')
    with pytest.raises(ModelFileError, match='Git-LFS pointer'):
        import_policy(source, tmp_path / 'out')


def test_a_missing_network_can_be_given(tmp_path):
    source = deploy(tmp_path / 'dog')
    (source / 'exported' / 'policy.onnx').rename(tmp_path / 'other.onnx')
    with pytest.raises(DocumentError, match='give it with --network'):
        import_policy(source, tmp_path / 'out')
    import_policy(source, tmp_path / 'out', network=tmp_path / 'other.onnx')


def test_a_field_that_nobody_states_can_be_set(tmp_path):
    data = {key: value for key, value in DEPLOY.items() if key != 'commands'}
    source = deploy(tmp_path / 'dog', data=data)
    with pytest.raises(DocumentError, match='commands.velocity: is missing'):
        import_policy(source, tmp_path / 'out')
    velocity = {'x': [-1.0, 1.0], 'y': [-0.1, 0.1], 'yaw': [-1.0, 1.0], 'timeout_s': 1.0}
    import_policy(source, tmp_path / 'out', overrides={'commands.velocity': velocity})


def test_python_tags_are_data_or_refused():
    text = 'a: !!python/object/apply:builtins.slice [null, 3, null]\nb: !!python/tuple [1, 2]\n'
    assert parse_inert(text, 'x') == {'a': slice(None, 3, None), 'b': [1, 2]}
    scalar = (
        'c: !!python/object/apply:numpy.core.multiarray.scalar\n'
        '- !!python/object/apply:numpy.dtype {args: [f8, false, true], state: !!python/tuple [3, "<", null]}\n'
        '- !!binary |\n  AAAAAAAA0D8=\n'
    )
    assert parse_inert(scalar, 'x') == {'c': 0.25}


@pytest.mark.parametrize(
    'tag', ['object/apply:os.system ["touch x"]', 'name:os.system', 'object/new:os.system ["x"]', 'module:os', 'object:a.B {}']
)
def test_a_tag_that_would_run_code_is_refused_by_its_name(tag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match=f'!!python/{tag.split(" ")[0]} asks to run Python code'):
        parse_inert(f'a: !!python/{tag}\n', 'x')
    assert not (tmp_path / 'x').exists()


def test_rounded_numbers_are_told_from_chosen_ones():
    assert rounding_error([40.2, 99.1, 28.5]) == pytest.approx(0.05 / 28.5)
    assert rounding_error([0.55, 0.35, 0.44, 0.07]) == pytest.approx(0.005 / 0.07)
    assert rounding_error([100.0, 150.0, 40.0]) is None
    assert rounding_error([40.179, 99.098]) is None
    assert rounding_error([]) is None


def test_joints_come_from_a_model_in_the_order_of_the_file(tmp_path):
    mjcf = tmp_path / 'a.xml'
    mjcf.write_text(
        '<mujoco><default><joint name="no"/></default><worldbody><body><freejoint name="free"/><body><joint name="b"/></body>'
        '<body><joint name="a" type="slide"/><joint name="c" type="ball"/></body></body></worldbody></mujoco>'
    )
    assert joints_of_model(mjcf) == ('b', 'a')
    urdf = tmp_path / 'a.urdf'
    urdf.write_text(
        '<robot><joint name="y" type="revolute"/><joint name="f" type="fixed"/><joint name="x" type="continuous"/></robot>'
    )
    assert joints_of_model(urdf) == ('y', 'x')
    mjcf.write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(FormatError, match='it includes robot.xml'):
        joints_of_model(mjcf)


def test_keys_of_a_source_are_told_all_at_once(tmp_path):
    source = sar(tmp_path / 'dog', rl_kp=[1.0], rl_kd='soft', default_dof_pos=None)
    with pytest.raises(DocumentError) as error:
        import_policy(source, tmp_path / 'out')
    assert len(error.value.faults) >= 2
