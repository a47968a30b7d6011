# SPDX-License-Identifier: Apache-2.0
"""Promises of the MJCF of a robot: it is the plant of the embedded simulator, and begins on the floor."""

import struct
from dataclasses import replace

import numpy as np
import pytest

mujoco = pytest.importorskip('mujoco', reason='needs the extra `sim`')

from sim2real_ros.description.mujoco import for_mujoco, start_height  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.sim.model import build_model  # noqa: E402


@pytest.fixture(scope='module')
def go2():
    return load_robot('go2')


def test_it_is_the_plant_of_the_embedded_simulator(go2):
    ours, theirs = build_model(go2), mujoco.MjModel.from_xml_string(for_mujoco(go2).text)
    for field in (
        'body_mass',
        'jnt_range',
        'jnt_actfrcrange',
        'dof_damping',
        'dof_armature',
        'dof_frictionloss',
        'geom_friction',
    ):
        assert np.allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-5), field
    assert [theirs.actuator(i).name for i in range(theirs.nu)] == list(go2.joints)


@pytest.mark.parametrize('pose', ['', 'stand'])
def test_its_keyframe_stands_or_lies_on_the_floor_in_the_pose(go2, pose):
    model = mujoco.MjModel.from_xml_string(for_mujoco(go2, start=pose).text)
    qpos = model.key('start').qpos
    assert np.allclose(qpos[7:], go2.pose(pose or 'lying'))
    assert qpos[2] == pytest.approx(start_height(go2, pose), abs=1e-4)
    assert (qpos[2] > 0.3) == (pose == 'stand')


def tetrahedron() -> bytes:
    """Return a binary STL file."""
    a, b, c, d = (0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)
    faces = [(a, c, b), (a, b, d), (a, d, c), (b, c, d)]
    facets = [struct.pack('<12fH', 0, 0, 0, *x, *y, *z, 0) for x, y, z in faces]
    return b'\0' * 80 + struct.pack('<I', len(facets)) + b''.join(facets)


def test_meshes_are_found_from_wherever_it_is_read(go2, tmp_path, monkeypatch):
    theirs, elsewhere = tmp_path / 'robot', tmp_path / 'elsewhere'
    theirs.mkdir()
    elsewhere.mkdir()
    (theirs / 'shape.stl').write_bytes(tetrahedron())
    mesh = '<collision name="m"><geometry><mesh filename="shape.stl"/></geometry></collision>'
    (theirs / 'go2.urdf').write_text(go2.urdf.read_text().replace('</link>', f'{mesh}</link>', 1))
    monkeypatch.chdir(elsewhere)
    (elsewhere / 'go2.xml').write_text(for_mujoco(replace(go2, urdf=theirs / 'go2.urdf')).text)
    assert mujoco.MjModel.from_xml_path('go2.xml').nmesh == 1
