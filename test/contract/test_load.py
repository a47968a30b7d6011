# SPDX-License-Identifier: Apache-2.0
"""From a name, a folder, a YAML or an ONNX file to a checked contract whose network file exists."""

import hashlib
import json

import numpy as np
import pytest
import yaml
from makers import contract_data, make_onnx, write_policy, write_yaml

from sim2real_ros.contract import load_contract
from sim2real_ros.contract.load import METADATA_KEY
from sim2real_ros.errors import DocumentError, ModelFileError, NotFoundError

LFS_POINTER = (
    'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daa\nsize 12345\n'
)


def test_folder_yaml_and_path_object_give_the_same_contract(tmp_path):
    path = write_policy(tmp_path)
    assert load_contract(path).id == load_contract(str(tmp_path)).id == load_contract(str(path)).id
    assert load_contract(path).model_path == tmp_path / 'policy.onnx'
    assert load_contract(path).source == str(path)


def test_hash_of_the_network_is_filled_in_and_part_of_the_identity(tmp_path):
    one = load_contract(write_policy(tmp_path / 'one', seed=1))
    two = load_contract(write_policy(tmp_path / 'two', seed=2))
    assert one.file.model.sha256 == hashlib.sha256((tmp_path / 'one' / 'policy.onnx').read_bytes()).hexdigest()
    assert one.id != two.id


def test_stated_hash_that_agrees_is_accepted(tmp_path):
    path = write_policy(tmp_path)
    digest = load_contract(path).file.model.sha256
    write_yaml(path, contract_data(model={'file': 'policy.onnx', 'sha256': digest}))
    assert load_contract(path).file.model.sha256 == digest


def test_stated_hash_that_differs_is_refused_with_both(tmp_path):
    path = write_policy(tmp_path, contract_data(model={'file': 'policy.onnx', 'sha256': 'ab' * 32}))
    with pytest.raises(ModelFileError, match=r'policy\.onnx is not the network that .*policy\.yaml describes.*abababababab'):
        load_contract(path)


def test_missing_network_is_named(tmp_path):
    path = write_yaml(tmp_path / 'policy.yaml', contract_data())
    with pytest.raises(ModelFileError, match=r'cannot read the network .*policy\.onnx: No such file'):
        load_contract(path)


def test_empty_network_is_refused(tmp_path):
    path = write_policy(tmp_path)
    (tmp_path / 'policy.onnx').write_bytes(b'')
    with pytest.raises(ModelFileError, match=r'policy\.onnx is empty'):
        load_contract(path)


@pytest.mark.parametrize('entry', ['policy.yaml', 'policy.onnx'])
def test_git_lfs_pointer_is_recognised(tmp_path, entry):
    write_policy(tmp_path)
    (tmp_path / 'policy.onnx').write_text(LFS_POINTER)
    with pytest.raises(ModelFileError, match=r'policy\.onnx is a Git-LFS pointer.*git lfs pull'):
        load_contract(tmp_path / entry)


def test_faults_name_the_contract_file(tmp_path):
    path = write_policy(tmp_path, contract_data(rate_hz=-1, extra=1))
    with pytest.raises(DocumentError, match=r'policy\.yaml: 2 faults') as caught:
        load_contract(path)
    assert {fault.split(':')[0] for fault in caught.value.faults} == {'rate_hz', 'extra'}


def test_unsafe_yaml_tag_is_refused_and_not_run(tmp_path):
    path = write_policy(tmp_path)
    path.write_text(f'name: !!python/object/apply:os.mkdir ["{tmp_path / "made"}"]')
    with pytest.raises(DocumentError, match='not valid YAML'):
        load_contract(path)
    assert not (tmp_path / 'made').exists()


def test_unknown_policy_is_not_found():
    with pytest.raises(NotFoundError, match='policy "no_such_policy"'):
        load_contract('no_such_policy')


@pytest.mark.parametrize('dump', [json.dumps, lambda data: yaml.safe_dump(data, allow_unicode=True)], ids=['json', 'yaml'])
def test_contract_embedded_in_the_onnx_equals_the_one_beside_it(tmp_path, dump):
    """One file is the whole policy; embedded or beside, the identity is the same."""
    data = contract_data()
    data['provenance']['notes'] = 'made on a \U0001f600 day'
    path = write_policy(tmp_path, data, metadata={METADATA_KEY: dump(data)})
    beside, embedded = load_contract(path), load_contract(tmp_path / 'policy.onnx')
    assert embedded.file == beside.file
    assert embedded.id == beside.id
    assert embedded.model_path == beside.model_path
    assert np.array_equal(embedded.default_position, beside.default_position)
    assert METADATA_KEY in embedded.source


def test_embedded_contract_survives_renaming_the_file(tmp_path):
    make_onnx(tmp_path / 'renamed.onnx', metadata={METADATA_KEY: json.dumps(contract_data())})
    contract = load_contract(tmp_path / 'renamed.onnx')
    assert contract.model_path == tmp_path / 'renamed.onnx'
    assert contract.file.model.file == 'renamed.onnx'


def test_folder_with_only_a_self_contained_onnx_is_a_policy(tmp_path):
    make_onnx(tmp_path / 'policy.onnx', metadata={METADATA_KEY: json.dumps(contract_data())})
    assert load_contract(tmp_path).file.name == 'testbot_velocity'


def test_faults_of_an_embedded_contract_name_file_and_key(tmp_path):
    make_onnx(tmp_path / 'policy.onnx', metadata={METADATA_KEY: json.dumps(contract_data(rate_hz=0))})
    with pytest.raises(DocumentError, match=r'policy\.onnx \[sim2real\.contract\]: 1 fault\n.*rate_hz'):
        load_contract(tmp_path)


def test_onnx_without_contract_uses_the_yaml_of_its_name(tmp_path):
    write_policy(tmp_path)
    assert load_contract(tmp_path / 'policy.onnx').id == load_contract(tmp_path / 'policy.yaml').id


def test_onnx_without_any_contract_says_what_is_needed(tmp_path):
    make_onnx(tmp_path / 'alone.onnx')
    with pytest.raises(NotFoundError, match=r'alone\.onnx has no contract: neither the metadata key .* nor alone\.yaml'):
        load_contract(tmp_path / 'alone.onnx')
