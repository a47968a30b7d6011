# SPDX-License-Identifier: Apache-2.0
"""Promises of a network's identity: it changes with what is computed and with nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from makers import make_onnx
from onnx import numpy_helper

from sim2real_ros.errors import ModelFileError
from sim2real_ros.policy.identity import network_identity


def test_notes_in_the_file_do_not_change_it(tmp_path: Path):
    bare = make_onnx(tmp_path / 'bare.onnx').path
    noted = make_onnx(tmp_path / 'noted.onnx', metadata={'a': 'b', 'sim2real.passport': 'x' * 5000}).path
    assert bare.read_bytes() != noted.read_bytes()
    assert network_identity(bare) == network_identity(noted)


def test_one_weight_changes_it(tmp_path: Path):
    path = make_onnx(tmp_path / 'policy.onnx').path
    before, model = network_identity(path), onnx.load(str(path))
    weights = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weights.flat[3] = np.nextafter(weights.flat[3], np.float32(9))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, model.graph.initializer[0].name))
    path.write_bytes(model.SerializeToString())
    assert network_identity(path) != before


def test_weights_in_a_file_of_their_own_belong_to_it(tmp_path: Path):
    path = make_onnx(tmp_path / 'policy.onnx', external=True).path
    before, weights = network_identity(path), tmp_path / 'policy.onnx.data'
    data = bytearray(weights.read_bytes())
    data[0] ^= 1
    weights.write_bytes(data)
    assert network_identity(path) != before
    weights.unlink()
    with pytest.raises(ModelFileError, match='cannot read the weights of'):
        network_identity(path)


@pytest.mark.parametrize('content', [b'\xff' * 50, b'\x3a\xff\x01abc', b'plain text, no network'])
def test_what_is_no_network_has_none(tmp_path: Path, content: bytes):
    (tmp_path / 'policy.onnx').write_bytes(content)
    with pytest.raises(ModelFileError, match='is no ONNX file'):
        network_identity(tmp_path / 'policy.onnx')
