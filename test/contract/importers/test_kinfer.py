# SPDX-License-Identifier: Apache-2.0
"""kinfer archives."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest
from foreign import assumed, hints
from foreign_metadata import KINFER_INPUTS, kinfer_archive

from sim2real_ros.contract.importers import import_policy, kinfer
from sim2real_ros.errors import DocumentError, ModelFileError

GAINS = {'stiffness': {'.*': 50.0}, 'damping': {'.*': 2.0}, 'default_position': {'.*': 0.1}}


def test_inputs_are_told_by_their_names(tmp_path):
    contract = import_policy(kinfer_archive(tmp_path), tmp_path / 'out', overrides=GAINS, robot='testbot')
    assert contract.file.inputs['joint_angles'].terms[0].term == 'joint_pos'
    assert contract.file.inputs['carry'].state == 'carry_out'
    assert contract.file.outputs['action'].offset == 'zeros'


def test_gravity_is_in_metres_per_second_squared(tmp_path):
    imported = kinfer.read(kinfer_archive(tmp_path), hints(tmp_path))
    assert imported.contract['inputs']['projected_gravity']['terms'] == [{'term': 'projected_gravity', 'scale': 9.81}]
    assert '-9.81' in assumed(imported)['inputs.projected_gravity.terms.0.scale']


def test_carry_starts_as_the_init_function_says(tmp_path):
    carry = np.arange(8.0).reshape(2, 4)
    imported = kinfer.read(kinfer_archive(tmp_path, carry=carry), hints(tmp_path))
    assert imported.contract['inputs']['carry']['initial'] == list(range(8))


def test_gains_and_pose_are_asked_of_the_user(tmp_path):
    with pytest.raises(DocumentError) as caught:
        import_policy(kinfer_archive(tmp_path), tmp_path / 'out')
    for field in GAINS:
        assert f'--set {field}=' in str(caught.value)


def test_a_command_that_is_no_velocity_is_refused_with_its_names(tmp_path):
    inputs = {**KINFER_INPUTS, 'command': (4,)}
    path = kinfer_archive(tmp_path, inputs, command_names=['xvel', 'yvel', 'yawrate', 'baseheight'])
    with pytest.raises(DocumentError, match='takes xvel, yvel, yawrate, baseheight; this stack gives'):
        kinfer.read(path, hints(tmp_path))


def test_unknown_inputs_and_wrong_widths_come_in_one_message(tmp_path):
    inputs = {'joint_angles': (3,), 'quaternion': (4,), 'carry': (2, 4)}
    with pytest.raises(DocumentError, match='(?s)joint_angles: has 3 numbers, 2.*quaternion: is not known.*action: has 5'):
        kinfer.read(kinfer_archive(tmp_path, inputs, n=5), hints(tmp_path))


def link(name):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, '/etc/passwd'
    return member


@pytest.mark.parametrize(
    ('member', 'skip', 'message'),
    [
        (tarfile.TarInfo('../../evil.txt'), (), "holds '../../evil.txt'"),
        (tarfile.TarInfo('/tmp/evil.txt'), (), "holds '/tmp/evil.txt'"),
        (tarfile.TarInfo('step_fn.onnx'), (), 'holds step_fn.onnx twice'),
        (link('metadata.json'), ('metadata.json',), 'a link or a folder'),
    ],
)
def test_archives_that_reach_elsewhere_are_refused(tmp_path, member, skip, message):
    path = kinfer_archive(tmp_path, extra=[(member, b'x' if member.isreg() else b'')], skip=skip)
    with pytest.raises(ModelFileError, match=message):
        kinfer.read(path, hints(tmp_path))
    assert sorted(file.name for file in (tmp_path / 'workspace').iterdir()) in (
        [],
        sorted(kinfer.MEMBERS),
        ['init_fn.onnx', 'step_fn.onnx'],
    )


def test_a_member_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(kinfer.MAX_BYTES, 'step_fn.onnx', 100)
    with pytest.raises(ModelFileError, match='step_fn.onnx says it has'):
        kinfer.read(kinfer_archive(tmp_path), hints(tmp_path))


def test_a_missing_member_and_a_damaged_archive_are_told(tmp_path):
    with pytest.raises(ModelFileError, match='lacks init_fn.onnx'):
        kinfer.read(kinfer_archive(tmp_path, skip=('init_fn.onnx',)), hints(tmp_path))
    damaged = tmp_path / 'damaged.kinfer'
    damaged.write_bytes(kinfer_archive(tmp_path).read_bytes()[:200])
    with pytest.raises(ModelFileError, match='damaged|lacks'):
        kinfer.read(damaged, hints(tmp_path))
    damaged.write_text('version https://git-lfs.github.com/spec/v1\n')
    with pytest.raises(ModelFileError, match='Git-LFS pointer'):
        kinfer.read(damaged, hints(tmp_path))
