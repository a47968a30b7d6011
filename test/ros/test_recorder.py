# SPDX-License-Identifier: Apache-2.0
"""Promises of the recorder: a run of the real nodes is whole in it, and nothing of it depends on the recorder."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
from running import running_stack

pytest.importorskip('mujoco')
rosbag2 = pytest.importorskip('rosbags.rosbag2', reason='rosbags is not installed (extra `record`)')

from sim2real_ros.comparison.comparison import compare_runs  # noqa: E402
from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.contract.contract import resolve  # noqa: E402
from sim2real_ros.contract.schema import ContractFile  # noqa: E402
from sim2real_ros.document import validate  # noqa: E402
from sim2real_ros.parity.compare import compare  # noqa: E402
from sim2real_ros.parity.mend import document_of  # noqa: E402
from sim2real_ros.parity.recorded import trace_of_run  # noqa: E402
from sim2real_ros.recording.reading import load_run  # noqa: E402
from sim2real_ros.recording.topics import TOPICS  # noqa: E402
from sim2real_ros.ros import qos  # noqa: E402
from sim2real_ros.ros import rosbag2 as ros2_bag  # noqa: E402
from sim2real_ros.ros.recorder_node import RecorderNode  # noqa: E402
from sim2real_ros.ros.rosbag2 import command_line, overrides  # noqa: E402
from sim2real_ros.tools.cli import main  # noqa: E402

COMMAND = np.array([0.5, 0.0, 0.2])
SETTLE_S = 3.0  # that the recorder heard us does not mean that every other node has found it
DEAF = """
import signal, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.SIG_IGN)
Path(__file__).with_name('up').touch()
time.sleep(60)
"""
NAMES = {'/dog/joint_states': False, '/dog/policy/contract': True, '/clock': False}


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """A walk of two seconds, recorded: the folder, and the simulator's own trace."""
    place = tmp_path_factory.mktemp('recorded')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        patch.setenv('ROS_DOMAIN_ID', str(200 + os.getpid() % 30))
        with running_stack(place / 'trace.npz', record=str(place / 'run'), log_level='warn') as running:
            running.operator.command = COMMAND
            running.operator.wait(lambda: running.operator.listeners > 1, 60, 'the recorder did not start')
            running.operator.spin(SETTLE_S)
            running.stand_up()
            running.spin(2.0)
    return place / 'run', place / 'trace.npz'


@pytest.fixture(scope='module')
def run(recorded):
    return load_run(recorded[0])


def test_the_recording_is_the_run_as_the_simulator_saw_it(recorded, run):
    """No state is missing, and positions, velocities and torques are those of the simulator to rounding."""
    assert run.notes == ()
    truth = load_run(recorded[1], robot='go2')
    begin = truth.states.time.searchsorted(run.states.time[0] - 1e-6)
    np.testing.assert_allclose(run.states.time, truth.states.time[begin:], atol=1e-9)
    assert run.states.time[0] < run.spans('pose')[0][0], 'it was there before the robot moved'
    comparison = compare_runs(truth, run)
    assert set(comparison.quantities) == {'position', 'velocity', 'torque', 'base'}
    assert max(quantity.measures.largest.max() for quantity in comparison.quantities.values()) < 1e-9


def test_the_end_of_the_nodes_is_in_the_recording(run):
    """The safety node damps on its way out; the recorder is ended after it."""
    assert [name for _, name in run.modes][-2:] == ['active', 'damping']


def test_the_contract_replayed_over_the_recording_gives_what_the_policy_was_fed(run):
    contract = load_contract('go2_velocity')
    trace = trace_of_run(run, contract)
    assert len(trace.states) > 90
    report = compare(contract, trace)
    assert report.agrees
    assert report.left == 0.0


def test_a_contract_of_another_scale_is_found_out_by_the_recording(run):
    contract = load_contract('go2_velocity')
    document = document_of(contract) | {'golden': None, 'novelty': None}
    document['inputs']['obs']['terms'][4]['scale'] = 0.1
    wrong = resolve(validate(ContractFile, document, contract.source), contract.source, contract.folder)
    report = compare(wrong, trace_of_run(run, contract))
    assert report.changes == ['inputs.obs.terms.4.scale: 0.05']


def test_topics_profiles_and_definitions_are_those_of_the_publishers(recorded):
    with rosbag2.Reader(recorded[0]) as reader:
        topics = {connection.topic.lstrip('/'): connection for connection in reader.connections}
        assert {'clock', 'joint_states', 'imu/data', 'odom', 'cmd_vel', 'policy/contract', 'policy/targets'} <= topics.keys()
        assert {'policy/trace', 'safety/mode', 'effort_controller/commands', 'diagnostics'} <= topics.keys()
        assert topics.keys() <= {topic.name for topic in TOPICS}
        assert all(connection.msgdef.data for connection in topics.values())
        (profile,) = topics['policy/contract'].ext.offered_qos_profiles
        assert (profile.durability.name, profile.reliability.name) == ('TRANSIENT_LOCAL', 'RELIABLE')
        commands = topics[
            'effort_controller/commands'
        ].ext.offered_qos_profiles  # of those that were known by the first message
        assert {profile.reliability.name for profile in commands} == {'RELIABLE'}
        assert len(commands) in (1, 2), 'the safety node, and the watchdog'


def test_ctrl_c_leaves_a_recording_that_can_be_read_even_an_empty_one(tmp_path):
    line = [sys.executable, '-m', 'sim2real_ros.tools.cli', 'record', str(tmp_path / 'empty')]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as recorder:
        assert 'recording into' in recorder.stderr.readline()
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(30) == 0
    with rosbag2.Reader(tmp_path / 'empty') as reader:
        assert reader.message_count == 0


def test_a_remapping_of_what_is_no_topic_of_ours_is_refused_with_those_that_are(tmp_path, capsys):
    assert main(['record', str(tmp_path / 'run'), '--remap', 'imu:=/other/imu']) == 1
    assert '--remap: imu is no topic of ours; they are clock, joint_states, imu/data' in capsys.readouterr().err
    assert not (tmp_path / 'run').exists()


def test_a_recorder_that_cannot_write_ends_with_one_line(tmp_path):
    (tmp_path / 'there').mkdir()
    line = [sys.executable, '-m', 'sim2real_ros.ros.recorder_node', '--ros-args', '-p', f'folder:={tmp_path / "there"}']
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert 'there exists already' in ended.stderr
    assert 'Traceback' not in ended.stderr


def recorded_and_closed(folder: Path, begun=lambda: True) -> int | None:
    """Begin a recorder in this process and close it; returns the exit code that it asks for."""
    rclpy.init(args=['--ros-args', '-p', f'folder:={folder / "run"}'])
    try:
        node = RecorderNode()
        node.begin()
        while not begun():
            time.sleep(0.02)
        node.close()
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
    return node.exit_code


def failing(*_):
    raise rosbag2.WriterError('Bag was not opened.')


def test_a_writer_that_fails_in_its_own_way_ends_the_recorder_with_its_words_and_code_1(tmp_path, monkeypatch, capfd):
    """Not an OSError: the thread that writes must not die of it in silence."""
    from sim2real_ros.recording.writer import BagWriter

    monkeypatch.setattr(BagWriter, 'close', failing)
    assert recorded_and_closed(tmp_path) == 1
    told = capfd.readouterr().err
    assert 'the recording ended: Bag was not opened.' in told
    assert 'the recording is in' not in told


# --- `ros2 bag`, which is not there where these tests run without a ROS 2 of its own


def test_ros2_bag_is_told_exactly_the_topics_of_the_run():
    line = command_line(Path('/tmp/run'), NAMES, Path('/tmp/qos.yaml'))
    pattern = line[line.index('--regex') + 1]
    assert all(re.search(pattern, name) for name in NAMES)
    assert not any(re.search(pattern, name) for name in ('/cat/joint_states', '/dog/joint_states/more', '/dog/joint_state'))
    assert line[:3] == ['ros2', 'bag', 'record']


def test_ros2_bag_subscribes_to_streams_without_acknowledging_them():
    given = overrides(NAMES)
    assert given.keys() == NAMES.keys()
    assert given['/dog/joint_states'] == {
        'history': 'keep_last', 'depth': qos.RECORDED.depth, 'reliability': 'best_effort', 'durability': 'volatile',
    }  # fmt: skip
    assert (given['/dog/policy/contract']['reliability'], given['/dog/policy/contract']['durability']) == (
        'reliable',
        'transient_local',
    )


def test_a_ros2_bag_that_does_not_end_is_killed_and_no_success_is_told(tmp_path, monkeypatch, capfd):
    (tmp_path / 'ros2').write_text(f'#!{sys.executable}\n{DEAF}')
    (tmp_path / 'ros2').chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(ros2_bag, 'available', lambda: True)
    monkeypatch.setattr(ros2_bag, 'PATIENCE_S', 0.2)
    assert recorded_and_closed(tmp_path, (tmp_path / 'up').exists) == 1
    told = capfd.readouterr().err
    assert '`ros2 bag record` did not end within 0.2 s and was killed' in told
    assert 'the recording is in' not in told
