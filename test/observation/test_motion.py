# SPDX-License-Identifier: Apache-2.0
"""The reference motion at every tick: from a network or a file, its anchor seen from the robot's."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from makers import JOINTS, contract_data, make_contract, random_state, row

from sim2real_ros.errors import ModelFileError
from sim2real_ros.observation.motion import MotionTracker
from sim2real_ros.rotations import columns_of_matrix, multiply_xyzw

N = len(JOINTS)
CHAIN = [['a_hip_joint', 'z'], ['b_knee_joint', '-x'], ['b_hip_joint', 'y']]
ALL = {name: name for name in ('joint_pos', 'joint_vel', 'anchor_pos', 'anchor_quat')}


def matrix(quat):
    """Return the rotation matrix of a quaternion xyzw."""
    first, second = columns_of_matrix(quat).reshape(3, 2).T
    return np.stack([first, second, np.cross(first, second)], axis=1)


def about(axis, angle):
    quat = np.array([0.0, 0.0, 0.0, np.cos(angle / 2)])
    quat['xyz'.index(axis)] = np.sin(angle / 2)
    return quat


def contract_of(folder=None, **motion):
    data = contract_data(motion={'quantities': ALL, 'anchor': {'body': 'torso', 'chain': CHAIN}} | motion)
    contract = make_contract(data)
    return contract if folder is None else make_contract(data, folder / 'policy.onnx')


def told(rng, batch=()):
    quat = rng.normal(size=(*batch, 4))
    return {
        'joint_pos': rng.normal(size=(*batch, N)),
        'joint_vel': rng.normal(size=(*batch, N)),
        'anchor_pos': rng.normal(size=(*batch, 3)),
        'anchor_quat': quat / np.linalg.norm(quat, axis=-1, keepdims=True),
    }


def tracker(contract, query, batch=()):
    return MotionTracker(contract, contract.file.motion, query, batch)


def zeros(batch=()):
    return np.zeros((*batch, 1))


# --- where the reference comes from -------------------------------------------------------------------------------


def test_network_is_asked_once_and_then_heard():
    rng = np.random.default_rng(0)
    first, second = told(rng), told(rng)
    asked = []
    motion = tracker(contract_of(source='network'), lambda: asked.append(1) or first)
    state = random_state(rng)
    for _ in range(2):
        assert np.array_equal(motion.tick(state, zeros()).joint_pos, first['joint_pos'])
    motion.hear(second)
    assert np.array_equal(motion.tick(state, zeros()).joint_vel, second['joint_vel'])
    assert len(asked) == 1
    motion.reset()
    assert np.array_equal(motion.tick(state, zeros()).joint_pos, first['joint_pos'])
    assert len(asked) == 2


def test_robot_that_starts_again_asks_for_itself_alone():
    rng = np.random.default_rng(0)
    first, second = told(rng, (3,)), told(rng, (3,))
    motion = tracker(contract_of(source='network'), lambda: first, (3,))
    state = random_state(rng, batch=(3,))
    motion.tick(state, zeros((3,)))
    motion.hear(second)
    motion.reset(np.array([False, True, False]))
    seen = motion.tick(state, zeros((3,))).joint_pos
    assert np.array_equal(seen[1], first['joint_pos'][1])
    assert np.array_equal(seen[[0, 2]], second['joint_pos'][[0, 2]])


# --- the anchor ---------------------------------------------------------------------------------------------------


def anchor_of(state):
    """Return the orientation of the chain's end in the world, as a matrix, by rotation matrices."""
    turned = matrix(state.base_quat_xyzw)
    for joint, axis in CHAIN:
        angle = state.joint_pos[JOINTS.index(joint)] * (-1 if axis.startswith('-') else 1)
        turned = turned @ matrix(about(axis[-1], angle))
    return turned


def yaw_of(turned):
    """Return the rotation about z by the yaw of a rotation matrix."""
    return matrix(about('z', np.arctan2(turned[1, 0], turned[0, 0])))


@pytest.mark.parametrize('order', ['xyzw', 'wxyz'])
@given(seed=st.integers(0, 10_000))
def test_anchor_in_the_world_as_it_is(order, seed):
    rng = np.random.default_rng(seed)
    given_, state = told(rng), random_state(rng)
    contract = contract_of(source='network', quaternion=order, align_heading=False)
    sent = given_ | {'anchor_quat': np.roll(given_['anchor_quat'], 1)} if order == 'wxyz' else given_
    seen = tracker(contract, lambda: sent).tick(state, zeros())
    ours, theirs = anchor_of(state), matrix(given_['anchor_quat'])
    np.testing.assert_allclose(matrix(seen.anchor_quat_b_xyzw), ours.T @ theirs, atol=1e-12)
    np.testing.assert_allclose(seen.anchor_pos_b, ours.T @ (given_['anchor_pos'] - state.base_pos), atol=1e-12)


@given(seed=st.integers(0, 10_000))
def test_anchor_with_each_heading_counted_from_its_start(seed):
    rng = np.random.default_rng(seed)
    starts, now = (told(rng), random_state(rng)), (told(rng), random_state(rng))
    motion = tracker(contract_of(source='network', quaternion='xyzw'), lambda: starts[0])
    motion.tick(starts[1], zeros())
    motion.hear(now[0])
    seen = motion.tick(now[1], zeros())
    ours, theirs = (yaw_of(anchor_of(starts[1])), yaw_of(matrix(starts[0]['anchor_quat'])))
    expected = (ours.T @ anchor_of(now[1])).T @ (theirs.T @ matrix(now[0]['anchor_quat']))
    np.testing.assert_allclose(matrix(seen.anchor_quat_b_xyzw), expected, atol=1e-9)
    flat = np.array([1, 1, 0])
    place = ours @ theirs.T @ (now[0]['anchor_pos'] - flat * starts[0]['anchor_pos']) + flat * starts[1].base_pos
    np.testing.assert_allclose(seen.anchor_pos_b, anchor_of(now[1]).T @ (place - now[1].base_pos), atol=1e-9)


@given(seed=st.integers(0, 1000), heading=st.floats(-3, 3))
def test_aligned_anchor_does_not_depend_on_where_the_robot_began(seed, heading):
    """A robot elsewhere, turned, sees the same."""
    rng = np.random.default_rng(seed)
    motions, states = [told(rng) for _ in range(3)], [random_state(rng) for _ in range(3)]
    contract, turn, seen = contract_of(source='network', quaternion='xyzw'), about('z', heading), []
    for moved in (False, True):
        motion = tracker(contract, lambda: motions[0])
        for told_, state in zip(motions, states, strict=True):
            motion.hear(told_)
            if moved:
                quat, pos = multiply_xyzw(turn, state.base_quat_xyzw), matrix(turn) @ state.base_pos + [3, -2, 0]
                reference = motion.tick(replace(state, base_quat_xyzw=quat, base_pos=pos), zeros())
            else:
                reference = motion.tick(state, zeros())
        seen.append((matrix(reference.anchor_quat_b_xyzw), reference.anchor_pos_b))
    np.testing.assert_allclose(seen[0][0], seen[1][0], atol=1e-9)
    np.testing.assert_allclose(seen[0][1], seen[1][1], atol=1e-9)


def test_without_odometry_the_orientation_is_still_there():
    rng = np.random.default_rng(0)
    given_, state = told(rng), random_state(rng)
    seen = tracker(contract_of(source='network'), lambda: given_).tick(replace(state, base_pos=None), zeros())
    assert seen.anchor_pos_b is None
    assert seen.anchor_quat_b_xyzw is not None


@given(seed=st.integers(0, 1000), resets=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=6))
def test_batch_equals_scalar_bit_for_bit(seed, resets):
    rng, contract = np.random.default_rng(seed), contract_of(source='network')
    start = told(rng, (3,))
    scalars = [tracker(contract, lambda k=k: {name: v[k] for name, v in start.items()}) for k in range(3)]
    single = tracker(contract, lambda: {name: v[:1] for name, v in start.items()}, (1,))
    batch = tracker(contract, lambda: start, (3,))
    for mask in resets:
        state, new = random_state(rng, batch=(3,)), told(rng, (3,))
        batch.reset(np.array(mask))
        single.reset(np.array(mask[:1]))
        together, one = batch.tick(state, zeros((3,))), single.tick(row(state, slice(0, 1)), zeros((1,)))
        for k, scalar in enumerate(scalars):
            if mask[k]:
                scalar.reset(np.array(True))
            own = scalar.tick(row(state, k), zeros())
            for field in ('joint_pos', 'joint_vel', 'anchor_pos_b', 'anchor_quat_b_xyzw'):
                assert np.array_equal(getattr(together, field)[k], getattr(own, field))
                assert k or np.array_equal(getattr(one, field)[0], getattr(own, field))
            scalar.hear({name: v[k] for name, v in new.items()})
        batch.hear(new)
        single.hear({name: v[:1] for name, v in new.items()})


# --- files --------------------------------------------------------------------------------------------------------

ROWS = 5


def write_motion(folder, **changes):
    rng = np.random.default_rng(1)
    arrays = {name: values.astype(np.float32) for name, values in told(rng, (ROWS,)).items()} | changes
    np.savez(folder / 'motion.npz', **{name: values for name, values in arrays.items() if values is not None})
    return {name: np.asarray(values, dtype=float) for name, values in arrays.items() if values is not None}


def from_file(folder, batch=(), **motion):
    how = {'source': 'file', 'file': 'motion.npz', 'rate_hz': 50.0} | motion
    contract = contract_of(folder, **how)
    return tracker(contract, dict, batch), random_state(np.random.default_rng(2), batch=batch), contract


def played(folder, ticks, **motion):
    """Return the references of some ticks of 20 ms."""
    follower, state, _ = from_file(folder, **motion)
    return [follower.tick(state, np.array([0.02 * tick])) for tick in range(ticks)]


def test_file_gives_a_row_per_tick_and_holds_the_last_at_rest(tmp_path):
    arrays = write_motion(tmp_path)
    for tick, reference in enumerate(played(tmp_path, 9)):
        assert np.array_equal(reference.joint_pos, arrays['joint_pos'][min(tick, ROWS - 1)])
        assert np.array_equal(reference.joint_vel, arrays['joint_vel'][tick] if tick < ROWS else np.zeros(N))


def test_file_of_another_rate_counts_by_time(tmp_path):
    arrays = write_motion(tmp_path)
    rows = [0, 0, 1, 1, 2, 3, 3, 4]  # floor(30 / 50 k)
    for reference, k in zip(played(tmp_path, 8, rate_hz=30.0), rows, strict=True):
        assert np.array_equal(reference.joint_pos, arrays['joint_pos'][k])


def test_file_loops(tmp_path):
    arrays = write_motion(tmp_path)
    for tick, reference in enumerate(played(tmp_path, 12, end='loop')):
        assert np.array_equal(reference.joint_vel, arrays['joint_vel'][tick % ROWS])


def test_file_returns_to_the_default_pose_smoothly(tmp_path):
    arrays = write_motion(tmp_path)
    references = played(tmp_path, 120, end='return')
    positions = np.array([reference.joint_pos for reference in references])
    velocities = np.array([reference.joint_vel for reference in references])
    default = from_file(tmp_path)[2].default_position
    np.testing.assert_allclose(positions[-1], default)
    np.testing.assert_allclose(velocities[-1], np.zeros(N))
    np.testing.assert_allclose(
        np.diff(positions[ROWS:], axis=0) / 0.02, (velocities[ROWS:-1] + velocities[ROWS + 1 :]) / 2, atol=0.01
    )
    np.testing.assert_allclose(positions[ROWS + 48], (default + arrays['joint_pos'][-1]) / 2, atol=0.05)  # halfway after 1 s


def test_body_of_a_file_is_picked_by_its_row(tmp_path):
    rng = np.random.default_rng(3)
    bodies = rng.normal(size=(ROWS, 6, 4))
    bodies /= np.linalg.norm(bodies, axis=-1, keepdims=True)
    write_motion(tmp_path, anchor_quat=None, bodies=bodies)
    quantities = {'joint_pos': 'joint_pos', 'anchor_quat': 'bodies[2]'}
    follower, state, _ = from_file(tmp_path, quantities=quantities, align_heading=False, quaternion='xyzw')
    seen = follower.tick(state, zeros())
    np.testing.assert_allclose(matrix(seen.anchor_quat_b_xyzw), anchor_of(state).T @ matrix(bodies[0, 2]), atol=1e-9)


def test_every_robot_is_at_its_own_time_in_the_file(tmp_path):
    arrays = write_motion(tmp_path)
    follower, state, _ = from_file(tmp_path, (3,), end='return')
    seen = follower.tick(state, np.array([[0.0], [0.06], [9.0]]))
    assert np.array_equal(seen.joint_pos[:2], arrays['joint_pos'][[0, 3]])
    scalar, one, _ = from_file(tmp_path, end='return')
    for k, time in enumerate((0.0, 0.06, 9.0)):
        assert np.array_equal(scalar.tick(one, np.array([time])).joint_pos, seen.joint_pos[k])


@pytest.mark.parametrize(
    ('changes', 'fault'),
    [
        ({'joint_vel': None}, 'has no array joint_vel; it has anchor_pos, anchor_quat, joint_pos'),
        ({'joint_pos': np.zeros((ROWS, 3))}, r'joint_pos of shape \(5, 3\); \(rows, 4\) numbers are expected'),
        ({'joint_pos': np.zeros((ROWS + 1, N))}, 'arrays of different lengths: joint_pos 6, joint_vel 5'),
        ({'joint_pos': np.full((ROWS, N), np.nan)}, 'numbers in joint_pos that are not finite'),
        ({'joint_pos': np.zeros((0, N))}, r'joint_pos of shape \(0, 4\)'),
        ({'joint_pos': np.ones((ROWS, N), dtype=bool)}, r'\(rows, 4\) numbers are expected'),
        ({'anchor_quat': np.zeros((ROWS, 4))}, 'quaternions in anchor_quat that are not of length 1'),
    ],
)
def test_file_that_does_not_fit_is_refused(tmp_path, changes, fault):
    write_motion(tmp_path, **changes)
    with pytest.raises(ModelFileError, match=fault):
        from_file(tmp_path)


def test_single_array_is_no_motion(tmp_path):
    np.save(tmp_path / 'motion.npy', np.zeros((ROWS, N)))
    (tmp_path / 'motion.npy').rename(tmp_path / 'motion.npz')
    with pytest.raises(ModelFileError, match='cannot read the motion'):
        from_file(tmp_path)


@pytest.mark.parametrize('content', [None, b'', b'PK\x03\x04 a zip', b'\x93NUMPY'])
def test_file_that_cannot_be_read_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / 'motion.npz').write_bytes(content)
    with pytest.raises(ModelFileError, match=r'cannot read the motion .*motion\.npz'):
        from_file(tmp_path)


def test_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / 'motion.npz', joint_pos=np.array([{}], dtype=object))
    with pytest.raises(ModelFileError, match='cannot read the motion'):
        from_file(tmp_path)


def test_motion_of_a_contract_that_came_over_the_wire_is_not_there():
    contract = contract_of(source='file', file='motion.npz', rate_hz=50.0)
    with pytest.raises(ModelFileError, match=r'names the motion motion\.npz, but no folder'):
        tracker(contract, dict)
