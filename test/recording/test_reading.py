# SPDX-License-Identifier: Apache-2.0
"""Promises of the reader: every origin gives the same run, joints by name, and what cannot be read is said plainly."""

import os
import shutil
from dataclasses import fields, replace

import numpy as np
import pytest
from recordings import ACTIVE_S, CONTRACT, POSE_S, REST_S, ROBOT, TRIP_NS, Recording, text

from sim2real_ros.errors import DependencyError, NotFoundError, RecordingError
from sim2real_ros.recording.reading import load_run


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A plain recording; read only."""
    return Recording().write(tmp_path_factory.mktemp('plain') / 'run')


@pytest.fixture(scope='module')
def run(folder):
    return load_run(folder)


def arrays(part):
    """Return the arrays of a part by name."""
    return {f.name: getattr(part, f.name) for f in fields(part) if isinstance(getattr(part, f.name), np.ndarray)}


def test_joints_are_in_robot_order_whatever_the_order_of_the_messages(run):
    body = Recording().body
    assert (run.joints, run.robot) == (ROBOT.joints, 'go2')
    t = run.states.time - 10.0
    np.testing.assert_allclose(run.states.position, [body.position(x) for x in t], atol=1e-9)
    np.testing.assert_allclose(run.states.velocity, [body.velocity(x) for x in t], atol=1e-8)
    np.testing.assert_allclose(run.states.effort, [body.torque(x) for x in t], atol=1e-8)


def test_every_part_has_its_numbers_at_their_stamps(run):
    t = run.states.time
    np.testing.assert_array_equal(run.base.time, t)
    np.testing.assert_allclose(run.base.quat_xyzw[:, 2], np.sin((t - 10.0) / 2), atol=1e-9)
    np.testing.assert_array_equal(run.base.lin_acc[0], (0, 0, 9.81))
    np.testing.assert_allclose(run.odometry.position[:, 0], t - 10.0, atol=1e-9)
    assert run.odometry.lin_vel[0, 1] == 0.1
    np.testing.assert_array_equal(run.torques.time, t)
    np.testing.assert_allclose(run.torques.torque[7], Recording().body.torque(7 / 200), atol=1e-12)
    np.testing.assert_array_equal(run.targets.position[3], np.full(12, 3 / 50))
    assert set(run.targets.contract) == {CONTRACT.id}
    np.testing.assert_array_equal(run.ticks.action[3], np.full(12, -3 / 50))
    np.testing.assert_array_equal(run.ticks.observation[3], 3 / 50)
    np.testing.assert_array_equal(run.velocity.command, np.tile((0.5, 0, 0), (len(run.ticks.time), 1)))
    assert run.contract.id == CONTRACT.id
    assert run.notes == ()


def test_the_age_of_a_command_is_what_the_round_trip_took(run):
    np.testing.assert_allclose(run.torques.age, 1e-9 * TRIP_NS, atol=1e-12)


def test_modes_begin_with_the_state_that_was_answered_in_them(run):
    names, begins = zip(*((name, begin) for begin, name in run.modes), strict=True)
    assert names == ('damping', 'pose', 'active', 'damping')
    assert begins == pytest.approx([10.0, 10.0 + POSE_S, 10.0 + ACTIVE_S, 10.0 + REST_S])
    assert run.spans('active') == [pytest.approx((10.0 + ACTIVE_S, 10.0 + REST_S))]


@pytest.mark.parametrize(
    ('storage', 'compression', 'version'),
    [('mcap', 'storage', 9), ('mcap', 'file', 8), ('sqlite3', 'none', 8), ('sqlite3', 'message', 9)],
)
def test_every_storage_and_compression_gives_the_same_run(run, tmp_path, storage, compression, version):
    other = load_run(Recording().write(tmp_path / 'run', storage=storage, compression=compression, version=version))
    for name in ('states', 'base', 'odometry', 'torques', 'velocity', 'targets', 'ticks'):
        for field, values in arrays(getattr(run, name)).items():
            np.testing.assert_array_equal(values, getattr(getattr(other, name), field), f'{name}.{field}')
    assert other.modes == run.modes


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_file_without_its_metadata_is_enough(run, tmp_path, storage):
    folder = Recording().write(tmp_path / 'run', storage=storage)
    (file,) = (path for path in folder.iterdir() if path.suffix != '.yaml')
    (folder / 'metadata.yaml').unlink()
    for path in (folder, file):
        np.testing.assert_array_equal(load_run(path).states.position, run.states.position)


def test_a_namespace_is_found_by_itself(run, tmp_path):
    other = load_run(Recording(namespace='dog/one').write(tmp_path / 'run'))
    np.testing.assert_array_equal(other.torques.torque, run.torques.torque)


def test_one_of_several_robots_is_asked_for_by_name(folder, tmp_path):
    both = Recording(named={'odom': 'b/odom', 'imu/data': 'b/joint_states'}, without=('odom',)).write(tmp_path / 'run')
    with pytest.raises(RecordingError, match='several robots, "", "b"'):
        load_run(both)
    assert len(load_run(both, namespace='/').states.time) == 800
    with pytest.raises(NotFoundError, match='no namespace "c"; it has ""'):
        load_run(folder, namespace='c')


def test_a_remapped_imu_and_controller_are_found_when_they_are_the_only_ones(run, tmp_path):
    named = {'imu/data': 'imu_sensor_broadcaster/imu', 'effort_controller/commands': 'torque_controller/commands'}
    other = load_run(Recording(named=named).write(tmp_path / 'run'))
    np.testing.assert_array_equal(other.base.quat_xyzw, run.base.quat_xyzw)
    np.testing.assert_array_equal(other.torques.torque, run.torques.torque)


def test_an_impedance_counts_as_the_torque_that_its_drive_begins_with(run, tmp_path):
    other = load_run(Recording(impedance=True).write(tmp_path / 'run'))
    np.testing.assert_allclose(other.torques.torque, run.torques.torque, atol=1e-8)


def test_commands_of_others_have_the_time_of_their_arrival_and_no_age(tmp_path):
    run = load_run(Recording(labelled=False).write(tmp_path / 'run'))
    np.testing.assert_allclose(run.torques.time, run.states.time + 1e-9 * TRIP_NS, atol=1e-6)
    assert np.isnan(run.torques.age).all()
    assert [name for _, name in run.modes] == ['damping', 'pose', 'active', 'damping']


def test_without_policy_ticks_the_command_is_that_of_cmd_vel(tmp_path):
    recording = Recording(without=('policy/trace',), later=(2.0, (0.0, 0.0, 0.7)))
    run = load_run(recording.write(tmp_path / 'run'))
    assert run.ticks is None
    np.testing.assert_array_equal(run.velocity.at(np.array([11.0, 12.5])), [(0.5, 0, 0), (0, 0, 0.7)])
    np.testing.assert_array_equal(run.velocity.at(np.array([9.0])), [(0, 0, 0)])


def test_lost_states_are_counted(tmp_path):
    run = load_run(Recording(lost=(100, 101, 300)).write(tmp_path / 'run'))
    assert run.notes == ('3 of 800 joint states are missing',)


def test_a_paused_simulator_repeats_itself_and_counts_once(tmp_path):
    run = load_run(Recording(repeats=50).write(tmp_path / 'run'))
    assert len(run.states.time) == 800
    assert run.notes == ()


def test_after_a_reset_the_longest_part_counts_with_all_its_topics(tmp_path):
    run = load_run(Recording(resets=True).write(tmp_path / 'run'))
    assert 'time went back 1 time(s)' in run.notes[0]
    assert len(run.states.time) == 800
    assert len(run.odometry.time) in (799, 800)
    assert run.torques.time.max() <= run.states.time[-1]


def test_a_robot_whose_file_is_not_here_is_read_in_the_policys_order(tmp_path):
    contract = CONTRACT.from_json(CONTRACT.to_json().replace('"robot":"go2"', '"robot":"nonesuch"'), 'test')
    run = load_run(Recording(contract=contract).write(tmp_path / 'run'))
    assert (run.robot, run.joints) == ('', CONTRACT.joints)
    assert 'the robot file of "nonesuch" is not here' in run.notes[0]


def test_without_a_contract_joints_are_sorted_unless_the_robot_is_named(tmp_path):
    folder = Recording(contract=None).write(tmp_path / 'run')
    assert load_run(folder).joints == tuple(sorted(ROBOT.joints))
    assert load_run(folder, robot='go2').joints == ROBOT.joints
    with pytest.raises(NotFoundError, match='nonesuch'):
        load_run(folder, robot='nonesuch')


# --- what cannot be read


@pytest.mark.parametrize('share', [0.0, 0.00001, 0.001, 0.3, 0.999])
def test_a_recording_that_was_cut_short_is_refused_with_the_way_to_mend_it(folder, tmp_path, share):
    copy = shutil.copytree(folder, tmp_path / 'run')
    file = copy / 'run.mcap'
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(RecordingError, match='cut short.*mcap recover'):
        load_run(copy)


def test_a_damaged_recording_is_refused(folder, tmp_path):
    content = bytearray((Recording().write(tmp_path / 'run', compression='storage') / 'run.mcap').read_bytes())
    content[len(content) // 3 : len(content) // 3 + 200] = bytes(200)
    (tmp_path / 'damaged.mcap').write_bytes(content)
    with pytest.raises(RecordingError, match=r'damaged\.mcap is damaged at .*no longer what was written.* mcap recover'):
        load_run(tmp_path / 'damaged.mcap')


@pytest.mark.parametrize(
    ('metadata', 'said'),
    [
        ('', r'metadata\.yaml is damaged; delete it, then write it anew with: ros2 bag reindex'),
        ('a: 1', r'metadata\.yaml is damaged'),
        ('rosbag2_bagfile_information:', r'metadata\.yaml is damaged'),
        ('rosbag2_bagfile_information: {files: []}', r'metadata\.yaml is damaged'),
        ('[', r'metadata\.yaml is damaged'),
        (b'\xff\xfe\x00', r'metadata\.yaml is damaged'),
    ],
)
def test_damaged_metadata_is_named_with_what_mends_it(folder, tmp_path, metadata, said):
    copy = shutil.copytree(folder, tmp_path / 'copy')
    (copy / 'metadata.yaml').write_bytes(metadata if isinstance(metadata, bytes) else metadata.encode())
    with pytest.raises(RecordingError, match=said) as caught:
        load_run(copy)
    assert not any(word in str(caught.value) for word in ('KeyError', 'NoneType', 'object', 'codec'))
    (copy / 'metadata.yaml').unlink()
    assert load_run(copy).joints == ROBOT.joints


def test_a_file_that_metadata_lists_and_is_not_there_is_named(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / 'copy')
    (copy / 'run.mcap').unlink()
    with pytest.raises(RecordingError, match=r'lists files that are not there: .*run\.mcap'):
        load_run(copy)


def test_a_pipe_is_refused_rather_than_waited_for(folder, tmp_path):
    os.mkfifo(tmp_path / 'pipe.mcap')
    copy = shutil.copytree(folder, tmp_path / 'copy')
    (copy / 'run.mcap').unlink()
    os.mkfifo(copy / 'run.mcap')
    for path in (tmp_path / 'pipe.mcap', copy):
        with pytest.raises(RecordingError, match=r'\.mcap is no regular file'):
            load_run(path)


def test_what_is_no_recording_is_refused_with_what_would_be_one(folder, tmp_path):
    (tmp_path / 'text.txt').write_text('hello')
    (tmp_path / 'text.mcap').write_text('hello')
    np.savez(tmp_path / 'other.npz', x=np.zeros(3))
    for name, said in (('text.txt', 'is no recording'), ('text.mcap', 'cannot be read'), ('other.npz', 'no time in it')):
        with pytest.raises(RecordingError, match=said):
            load_run(tmp_path / name)
    with pytest.raises(RecordingError, match=r'neither metadata\.yaml'):
        load_run((tmp_path / 'empty').mkdir() or tmp_path / 'empty')
    with pytest.raises(NotFoundError, match='no recording'):
        load_run(tmp_path / 'absent')


def test_a_recording_without_joint_states_tells_its_topics(tmp_path):
    with pytest.raises(RecordingError, match=r'no joint_states; its topics are .*/odom'):
        load_run(Recording(without=('joint_states',)).write(tmp_path / 'run'))


def test_a_missing_joint_is_named(tmp_path):
    with pytest.raises(RecordingError, match=r'lacks FL_calf_joint'):
        load_run(Recording(joints=tuple(sorted(set(ROBOT.joints) - {'FL_calf_joint'}))).write(tmp_path / 'run'))


def test_without_rosbags_the_command_that_installs_it_is_told(folder, monkeypatch):
    monkeypatch.setitem(__import__('sys').modules, 'rosbags.rosbag2', None)
    with pytest.raises(DependencyError, match=r'pip install "sim2real_ros\[record\]"'):
        load_run(folder)


class Spoilt(Recording):
    """A recording whose joint states somebody spoils."""

    def __init__(self, spoil, **fields):
        super().__init__(**fields)
        self._spoil = spoil

    def messages(self):
        for arrival, topic, content in super().messages():
            yield arrival, topic, self._spoil(*content) if topic == 'joint_states' else content


def changed(**fields):
    """Return what sets fields of the joint states."""
    return lambda kind, message: (kind, replace(message, **{name: np.array(v) for name, v in fields.items()}))


@pytest.mark.parametrize(
    ('spoil', 'said'),
    [
        (changed(position=[]), 'holds no joint positions: in all 800 states they are empty'),
        (changed(position=[0.0, 1.0]), 'holds no joint positions'),
        (changed(position=[np.nan] * 12), 'holds no joint positions'),
        (changed(position=[np.inf] * 12), 'holds no joint positions'),
        (lambda kind, message: (kind, replace(message, name=[])), 'joint_states lacks FL_hip_joint'),
        (
            lambda kind, message: text('hello'),
            r'/joint_states is of std_msgs/msg/String; sensor_msgs/msg/JointState is expected',
        ),
    ],
)
def test_joint_states_without_positions_are_refused(tmp_path, spoil, said):
    with pytest.raises(RecordingError, match=said):
        load_run(Spoilt(spoil).write(tmp_path / 'run'))


def test_joint_states_without_names_of_an_unknown_robot_are_refused(tmp_path):
    spoilt = Spoilt(lambda kind, message: (kind, replace(message, name=[])), contract=None)
    with pytest.raises(RecordingError, match='joint_states name no joints'):
        load_run(spoilt.write(tmp_path / 'run'))


@pytest.mark.parametrize(
    ('name', 'value', 'said'),
    [
        ('joints', np.array('abc'), r'joints is <U3 of shape \(\); a row of names is expected'),
        ('hinges', np.array('abc'), r'hinges is <U3 of shape \(\)'),
        ('joints', None, 'joints is missing'),
        ('mode', np.array(['active']), r'mode has the shape \(1,\); 50 rows are expected'),
        ('qpos', np.zeros((50, 4)), 'qpos has 4 columns; 2 joints need 2, or 9 with a free base'),
        ('torque', np.zeros((50, 3)), 'torque has 3 columns for 2 joints'),
        ('time', np.full(50, np.nan), 'time is not finite'),
        ('qpos', np.full((50, 2), np.nan), 'holds no joint positions'),
    ],
)
def test_a_trace_that_is_not_whole_is_refused_with_what_is_wrong(tmp_path, name, value, said):
    table = np.zeros((50, 2))
    trace = {'time': 0.01 * np.arange(50), 'qpos': table, 'qvel': table, 'torque': table, 'command_age': np.zeros(50)}
    trace |= {'mode': np.array(['active'] * 50), 'joints': np.array(['a', 'b']), 'hinges': np.array(['a', 'b'])}
    np.savez(tmp_path / 'whole.npz', **trace)
    assert load_run(tmp_path / 'whole.npz').joints == ('a', 'b')
    np.savez(tmp_path / 't.npz', **{key: array for key, array in (trace | {name: value}).items() if array is not None})
    with pytest.raises(RecordingError, match=said):
        load_run(tmp_path / 't.npz')
