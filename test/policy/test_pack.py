# SPDX-License-Identifier: Apache-2.0
"""Promises of `pack`: one file is the whole policy, computes the same, and tells nothing about the machine it was made on."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')

from makers import make_onnx, random_state, write_policy, write_yaml  # noqa: E402
from whole import WIDTH, data_of_everything, write_motion  # noqa: E402

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.contract.load import GOLDEN_KEY  # noqa: E402
from sim2real_ros.errors import ModelFileError  # noqa: E402
from sim2real_ros.paths import find_policy  # noqa: E402
from sim2real_ros.policy import PolicyRunner  # noqa: E402
from sim2real_ros.policy.pack import pack  # noqa: E402
from sim2real_ros.signals import RobotState  # noqa: E402

LEVEL = np.array([0.0, 0, 0, 1])


def targets(policy: object) -> np.ndarray:
    """Return the targets of one tick."""
    contract = load_contract(str(policy))
    n = len(contract.joints)
    state = RobotState(0.0, contract.default_position + 0.1, np.full(n, 0.2), LEVEL, np.array([0.1, 0.2, 0.3]))
    return PolicyRunner(contract).step(state, np.array([0.5, 0, 0])).position


def test_the_packed_file_alone_computes_what_the_folder_does(tmp_path: Path):
    pack('go2_velocity', tmp_path / 'one.onnx')
    assert [path.name for path in tmp_path.iterdir()] == ['one.onnx']
    np.testing.assert_array_equal(targets(tmp_path / 'one.onnx'), targets('go2_velocity'))


def test_the_golden_vectors_travel_along_and_are_checked(tmp_path: Path):
    """A packed file whose vectors are not its own is refused when it is loaded."""
    out = tmp_path / 'one.onnx'
    pack('go2_velocity', out)
    model = onnx.load(str(out))
    entry = next(entry for entry in model.metadata_props if entry.key == GOLDEN_KEY)
    entry.value = entry.value[:-400]
    out.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match='cannot read the golden vectors'):
        PolicyRunner(load_contract(out))


def test_paths_and_notes_of_the_exporter_are_dropped(tmp_path: Path):
    folder = tmp_path / 'policy'
    folder.mkdir()
    model = onnx.load(str(find_policy('go2_velocity').parent / 'policy.onnx'))
    entry = model.metadata_props.add()
    entry.key, entry.value = 'run_path', '/home/somebody/secret'
    model.graph.node[0].doc_string = 'File "/home/somebody/train.py"'
    (folder / 'policy.onnx').write_bytes(model.SerializeToString())
    out = tmp_path / 'one.onnx'
    pack(str(folder), out)
    data = out.read_bytes()
    assert b'somebody' not in data
    assert str(tmp_path).encode() not in data


def test_a_reference_motion_travels_along(tmp_path: Path):
    folder = tmp_path / 'policy'
    folder.mkdir()
    write_motion(folder)
    made = make_onnx(folder / 'policy.onnx', {'obs': WIDTH}, {'mu': 4})
    write_yaml(folder / 'policy.yaml', data_of_everything())
    out = tmp_path / 'alone' / 'one.onnx'
    out.parent.mkdir()
    pack(str(folder), out)
    made.path.unlink()
    (folder / 'motion.npz').rename(folder / 'moved.npz')
    state = random_state(np.random.default_rng(0))
    assert np.isfinite(PolicyRunner(load_contract(out)).step(state, np.zeros(3)).position).all()


def test_a_field_that_says_none_stays_one(tmp_path: Path):
    """`clip: null` must be stated, so it must not be lost on the way."""
    write_policy(tmp_path / 'policy')
    assert pack(str(tmp_path / 'policy'), tmp_path / 'one.onnx').file.outputs['actions'].clip is None
