# SPDX-License-Identifier: Apache-2.0
"""Each term returns what its name says, as wide as it says."""

import importlib
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import contract_data, make_contract, random_state, row

from sim2real_ros.errors import NotFoundError, SignalError
from sim2real_ros.observation import Moment, terms
from sim2real_ros.observation.moment import TOPICS, Reference
from sim2real_ros.observation.terms import TERMS, Term, find_term, registered_terms
from sim2real_ros.rotations import multiply_xyzw
from sim2real_ros.signals import RobotState

PHASE = {
    'period_s': 0.8,
    'encoding': ['cos', 'sin'],
    'offsets': [0.0, 0.5, 0.25],
    'timebase': 'policy_ticks',
    'stop_at_zero_command': False,
}
MOTION = {
    'source': 'network',
    'quantities': {name: name for name in ('joint_pos', 'joint_vel', 'anchor_pos', 'anchor_quat')},
    'anchor': {'body': 'torso', 'chain': []},
}
POSE = {'frame': 'base', 'quaternion': 'wxyz', 'initial': [0.5, 0, 0.3, 1, 0, 0, 0]}


def whole_contract():
    """Return a contract that has what any term may need."""
    data = contract_data(phase=PHASE, motion=MOTION, contacts=['left', 'right'])
    data['commands']['pose'] = POSE
    return make_contract(data)


def unit(quat):
    return quat / np.linalg.norm(quat, axis=-1, keepdims=True)


def moment(batch=(), contract=None, seed=0):
    contract = contract or whole_contract()
    rng = np.random.default_rng(seed)
    n, m = len(contract.joints), contract.action_width
    return Moment(
        state=random_state(rng, n, batch),
        default_joint_pos=contract.default_position,
        velocity_command=rng.normal(size=(*batch, 3)),
        last_action_raw=rng.normal(size=(*batch, m)),
        last_action_clipped=rng.normal(size=(*batch, m)),
        phase=rng.normal(size=(*batch, terms.phase_width(contract))),
        last_action_filtered=rng.normal(size=(*batch, m)),
        phase_columns={'cos': slice(0, 3), 'sin': slice(3, 6)},
        goal_pose=rng.normal(size=(*batch, 7)),
        time=rng.normal(size=(*batch, 1)),
        motion=Reference(*(rng.normal(size=(*batch, k)) for k in (n, n, 3)), unit(rng.normal(size=(*batch, 4)))),
    )


@pytest.mark.parametrize('batch', [(), (1,), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize('name', sorted(registered_terms()))
def test_width_of_a_term_is_the_width_it_computes(name, batch):
    contract = whole_contract()
    term = find_term(name)
    assert term.compute(moment(batch, contract)).shape == (*batch, term.width(contract))


@pytest.mark.parametrize('name', sorted(registered_terms()))
def test_batch_of_one_equals_scalar_bit_for_bit(name):
    compute = find_term(name).compute
    for seed in range(20):
        batch = moment((3,), seed=seed)
        arrays = {field.name: getattr(batch, field.name) for field in fields(batch)}
        for k in range(3):
            own = {name: v[k] for name, v in arrays.items() if isinstance(v, np.ndarray) and name != 'default_joint_pos'}
            motion = Reference(*(getattr(batch.motion, field.name)[k] for field in fields(batch.motion)))
            scalar = replace(batch, state=row(batch.state, k), motion=motion, **own)
            assert np.array_equal(compute(batch)[k], compute(scalar))


def test_width_of_last_action_follows_the_outputs_not_the_joints():
    data = contract_data()
    data['outputs'] = {
        'left': data['outputs']['actions'] | {'joints': ['a_hip_joint', 'a_knee_joint']},
        'right': data['outputs']['actions'] | {'joints': ['b_hip_joint', 'b_knee_joint']},
    }
    assert find_term('last_action').width(make_contract(data)) == 4


@pytest.mark.parametrize('name', sorted(registered_terms()))
def test_every_term_states_unit_frame_and_sensors(name):
    term = find_term(name)
    assert term.unit
    assert term.frame
    assert set(term.needs) <= set(TOPICS)


def test_terms_return_what_their_names_say():
    m = moment()
    compute = {name: term.compute(m) for name, term in TERMS.items()}
    assert np.array_equal(compute['base_ang_vel'], m.state.base_ang_vel)
    assert np.array_equal(compute['base_lin_vel'], m.state.base_lin_vel)
    assert np.array_equal(compute['velocity_command'], m.velocity_command)
    assert np.array_equal(compute['joint_pos'], m.state.joint_pos)
    assert np.array_equal(compute['joint_pos_rel'], m.state.joint_pos - m.default_joint_pos)
    assert np.array_equal(compute['joint_vel'], m.state.joint_vel)
    assert np.array_equal(compute['last_action'], m.last_action_raw)
    assert np.array_equal(compute['phase'], m.phase)
    assert np.array_equal(terms.last_action_clipped(m), m.last_action_clipped)
    assert np.array_equal(terms.last_action_filtered(m), m.last_action_filtered)
    assert np.array_equal(compute['phase_cos'], m.phase[:3])
    assert np.array_equal(compute['phase_sin'], m.phase[3:])
    assert np.array_equal(compute['velocity_command_lin'], m.velocity_command[:2])
    assert np.array_equal(compute['velocity_command_yaw'], m.velocity_command[2:])
    assert np.array_equal(compute['base_accelerometer'], m.state.base_lin_acc)
    assert np.array_equal(compute['base_height'], m.state.base_pos[2:])
    assert np.array_equal(compute['foot_contacts'], m.state.foot_contacts)
    assert np.array_equal(compute['base_quat_xyzw'], m.state.base_quat_xyzw)
    assert np.array_equal(compute['base_quat_wxyz'], np.roll(m.state.base_quat_xyzw, 1))
    assert np.array_equal(compute['pose_command'], m.goal_pose)
    assert np.array_equal(compute['time'], m.time)
    assert np.array_equal(compute['motion_command'], [*m.motion.joint_pos, *m.motion.joint_vel])
    assert np.array_equal(compute['motion_joint_pos'], m.motion.joint_pos)
    assert np.array_equal(compute['motion_joint_vel'], m.motion.joint_vel)
    assert np.array_equal(compute['motion_anchor_pos_b'], m.motion.anchor_pos_b)


@given(angles=st.tuples(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1)))
def test_rotations_agree_with_rotation_matrices(angles):
    """Roll, pitch, yaw: turned about x, then y, then z of the world, as URDF says."""
    roll, pitch, yaw = angles
    matrix = turn('z', yaw) @ turn('y', pitch) @ turn('x', roll)
    m = moment()
    quat = multiply_xyzw(multiply_xyzw(quaternion('z', yaw), quaternion('y', pitch)), quaternion('x', roll))
    seen = replace(m, state=replace(m.state, base_quat_xyzw=quat), motion=Reference(None, None, None, quat))
    compute = {name: find_term(name).compute(seen) for name in ('base_rpy', 'base_roll_pitch', 'motion_anchor_ori_b')}
    np.testing.assert_allclose(compute['base_rpy'], angles, atol=1e-9)
    np.testing.assert_allclose(compute['base_roll_pitch'], angles[:2], atol=1e-9)
    np.testing.assert_allclose(compute['motion_anchor_ori_b'], matrix[:, :2].ravel(), atol=1e-12)
    np.testing.assert_allclose(find_term('projected_gravity').compute(seen), matrix.T @ [0, 0, -1], atol=1e-12)


def turn(axis, angle):
    """Return the rotation matrix about an axis."""
    i, j = {'x': (1, 2), 'y': (2, 0), 'z': (0, 1)}[axis]
    matrix = np.eye(3)
    matrix[[i, j, i, j], [i, j, j, i]] = [np.cos(angle), np.cos(angle), -np.sin(angle), np.sin(angle)]
    return matrix


def quaternion(axis, angle):
    quat = np.array([0.0, 0.0, 0.0, np.cos(angle / 2)])
    quat['xyz'.index(axis)] = np.sin(angle / 2)
    return quat


def test_rest_reads_as_documented():
    m = moment()
    level = RobotState(0.0, m.state.joint_pos, m.state.joint_vel, np.array([0.0, 0.0, 0.0, 1.0]))
    level = replace(m, state=level)
    assert find_term('projected_gravity').compute(level).tolist() == [0.0, 0.0, -1.0]
    assert find_term('base_rpy').compute(level).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ('name', 'topic'),
    [('base_lin_vel', 'odom'), ('base_height', 'odom'), ('base_accelerometer', 'imu/data'), ('foot_contacts', 'foot_contacts')],
)
def test_signal_that_nobody_gave_is_named_with_its_topic(name, topic):
    m = moment()
    bare = replace(m, state=RobotState(0.0, m.state.joint_pos, m.state.joint_vel, m.state.base_quat_xyzw))
    with pytest.raises(SignalError, match=rf'needs .*\({topic}\)'):
        find_term(name).compute(bare)


def test_unknown_term_lists_the_known_ones():
    with pytest.raises(
        NotFoundError,
        match='observation term "gravity" does not exist; terms are base_accelerometer, base_ang_vel, .*velocity_command',
    ):
        find_term('gravity')


def test_another_package_adds_a_term_through_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / 'extra_terms.py').write_text(
        'from sim2real_ros.observation.terms import Term\n'
        "height = Term(lambda m: m.state.joint_pos[..., :1], lambda contract: 1, 'm', 'base')\n"
    )
    info = tmp_path / 'extra_terms-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: extra_terms\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text('[sim2real_ros.observation_terms]\nheight = extra_terms:height\n')
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registered_terms.cache_clear()
    try:
        term = find_term('height')
        assert isinstance(term, Term)
        assert term.compute(moment((2,))).shape == (2, 1)
        assert set(TERMS) < set(registered_terms())
    finally:
        registered_terms.cache_clear()
