# SPDX-License-Identifier: Apache-2.0
"""Promises of the flight recorder: what is in the file of a trip, that there is one, and that no failure reaches the loop."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from sim2real_ros.errors import NotFoundError, TripFileError
from sim2real_ros.safety import Mode, recorder, trip_file, trip_writer
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.recorder import FlightRecorder
from sim2real_ros.safety.trip_file import load_meta, load_trip, trip_files, trips_folder
from sim2real_ros.signals import JointTargets, RobotState

JOINTS = ('hip', 'knee', 'ankle')
N, RATE = len(JOINTS), 100.0


class Bench:
    """A recorder with 1 s before and 0.2 s after at 100 Hz, and ticks in which every number tells its place."""

    def __init__(self, folder: Path, **options) -> None:
        self.folder, self.k = folder, 0
        self.saved: list[Path] = []
        self.warnings: list[str] = []
        settings = {'rate_hz': RATE, 'before_s': 1.0, 'after_s': 0.2, 'folder': folder} | options
        self.recorder = FlightRecorder(JOINTS, robot='bot', saved=self.saved.append, warn=self.warnings.append, **settings)

    def tick(self, count: int = 1, dt: float = 1 / RATE, mode: Mode = Mode.ACTIVE) -> None:
        for _ in range(count):
            self.recorder.write(*tick(self.k, dt, mode))
            self.k += 1

    def finish(self) -> None:
        self.recorder.finish()

    def only(self):
        self.finish()
        assert len(self.saved) == 1, self.warnings
        return load_trip(self.saved[0])


def tick(k: int, dt: float = 1 / RATE, mode: Mode = Mode.ACTIVE) -> tuple:
    """Return the arguments of write for tick k; the number of column c is k + c / 100 + its joint / 1000."""
    joint = np.arange(N) / 1000
    parts = [k + c / 100 + joint for c in range(10)]
    state = RobotState(k * dt, parts[0], parts[1], k + np.arange(4) / 7, k + np.arange(3) / 3, imu_age=k / 9)
    targets = JointTargets(k * dt - 0.013, parts[2], parts[3], parts[4])
    return (mode, state, targets, *parts[5:], np.array([k % 8, 1, 0], np.uint8))


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / 'trips')
    yield made
    made.finish()


def wait_for(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_every_number_of_a_tick_is_in_the_file_bit_for_bit(bench):
    bench.tick(250)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(21)
    trip = bench.only()
    columns = trip.columns
    first = 250 - trip.row
    for row, k in enumerate(range(first, first + len(columns['stamp']))):
        mode, state, targets, *torques, reasons = tick(k)
        assert trip.mode(row) == mode.value
        assert columns['stamp'][row] == state.stamp
        assert columns['imu_age'][row] == state.imu_age
        assert columns['target_stamp'][row] == targets.stamp
        vectors = (
            state.joint_pos, state.joint_vel, state.base_quat_xyzw, state.base_ang_vel,
            targets.position, targets.velocity, targets.effort, *torques, reasons,
        )  # fmt: skip
        for name, vector in zip(list(columns)[4:], vectors, strict=True):
            assert columns[name][row].tobytes() == vector.astype(columns[name].dtype).tobytes(), name


def test_the_column_order_of_the_file_is_the_one_that_write_fills():
    names = list(trip_file.columns(N))
    assert names[:4] == ['stamp', 'mode', 'imu_age', 'target_stamp']
    assert [name for name, shape in trip_file.columns(N).items() if not shape] == names[:4]


def test_a_file_holds_the_seconds_before_and_after_that_were_asked_for(bench):
    bench.tick(1000)  # the ring has turned several times
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(30)  # many more, faster than on any robot, could overrun the ring before the writer has woken
    trip = bench.only()
    assert trip.columns['stamp'][trip.row] == pytest.approx(10.0)
    assert trip.meta['before_s'] == pytest.approx(1.0, abs=0.011)
    assert trip.meta['after_s'] == pytest.approx(0.2)
    assert np.allclose(np.diff(trip.columns['stamp']), 0.01)


def test_a_trip_soon_after_the_start_has_what_there_is(bench):
    bench.tick(7)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(30)
    trip = bench.only()
    assert trip.row == 7
    assert len(trip.columns['stamp']) == 7 + 1 + 20


def test_ticks_slower_than_announced_do_not_lengthen_the_window(bench):
    bench.tick(400, dt=0.05)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(30, dt=0.05)
    trip = bench.only()
    assert trip.meta['before_s'] == pytest.approx(1.0)
    assert trip.meta['after_s'] == pytest.approx(0.2)


def test_ticks_faster_than_announced_shorten_the_window(bench):
    bench.tick(2000, dt=0.001)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(100, dt=0.001)
    trip = bench.only()
    assert trip.row == 100
    assert trip.meta['after_s'] == pytest.approx(0.02)


@pytest.mark.parametrize('jump', [-500.0, 500.0])
def test_a_clock_that_jumps_at_the_trip_costs_nothing_of_the_time_before(bench, jump):
    bench.tick(300)
    bench.recorder.trip('clock_jump', 'it jumped')
    for k in range(300, 340):
        mode, state, *rest = tick(k)
        moved = RobotState(state.stamp + jump, state.joint_pos, state.joint_vel, state.base_quat_xyzw, state.base_ang_vel)
        bench.recorder.write(mode, moved, *rest)
    trip = bench.only()
    assert trip.row == 100
    assert trip.meta['before_s'] == pytest.approx(1.0, abs=0.011)
    assert len(trip.columns['stamp']) == 100 + 1 + 20


def test_what_is_absent_is_nan(bench):
    quat = np.array([0.0, 0.0, 0.0, 1.0])
    bench.recorder.write(Mode.OFF, RobotState(0.0, np.zeros(N), np.zeros(N), quat), None, None, None, None, None, None, 0)
    bench.recorder.trip('estop', 'asked')
    trip = bench.only()
    for name in ('base_ang_vel', 'target_position', 'target_velocity', 'target_effort', 'target_stamp'):
        assert np.isnan(trip.columns[name]).all(), name
    for name in trip.columns:
        assert np.isnan(trip.columns[name]).all() == name.startswith(('torque', 'target', 'base_ang'))


def test_the_file_says_what_it_is_about(bench):
    bench.recorder.policy('walk', 'abcd')
    bench.tick(20, mode=Mode.ACTIVE)
    bench.recorder.trip('tilt', 'it leans by 1.05 rad')
    bench.tick(1, mode=Mode.FAULT)
    trip = bench.only()
    assert {key: trip.meta[key] for key in ('fault', 'message', 'robot', 'policy', 'contract', 'rate_hz')} == {
        'fault': 'tilt', 'message': 'it leans by 1.05 rad', 'robot': 'bot', 'policy': 'walk', 'contract': 'abcd',
        'rate_hz': RATE,
    }  # fmt: skip
    assert trip.joints == JOINTS
    assert (trip.mode(trip.row - 1), trip.mode(trip.row)) == ('active', 'fault')
    assert trip.reasons(Limit.RATE.value | Limit.BARRIER.value) == 'rate barrier'
    assert abs(trip.meta['unix_time'] - time.time()) < 60
    assert load_meta(bench.saved[0]) == trip.meta


def test_silence_after_the_trip_ends_the_window(bench, monkeypatch):
    monkeypatch.setattr(trip_writer, 'SILENCE_S', 0.05)
    bench.tick(50)
    bench.recorder.note(0.5, (np.ones(4), np.ones(2)))
    bench.recorder.trip('stale_joint_state', 'no joint state')
    wait_for(lambda: bench.saved)
    trip = load_trip(bench.saved[0])
    assert trip.row == 49
    assert len(trip.notes['action']) == 1
    bench.tick(50)  # the loop finds nothing amiss
    assert not bench.warnings


def test_nothing_is_written_where_nothing_was_ticked(bench):
    bench.recorder.trip('estop', 'asked')
    bench.finish()
    assert not bench.saved
    assert not bench.warnings


def test_trips_within_a_second_share_a_file(bench):
    bench.tick(50)
    for number in range(500):
        bench.recorder.trip('estop', f'asked {number}')
        if number == 0:
            bench.tick(5)
    trip = bench.only()
    assert trip.meta['message'] == 'asked 0'
    assert trip.meta['further'][0] == [54, 'estop', 'asked 1']
    assert len(trip.meta['further']) == recorder.FURTHER


def test_a_later_trip_ends_the_window_of_the_one_before(bench, monkeypatch):
    monkeypatch.setattr(recorder, 'INTERVAL_S', 0.0)
    bench.tick(50)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(5)
    bench.recorder.trip('estop', 'asked')
    bench.tick(40)
    bench.finish()
    trips = [load_trip(path) for path in bench.saved]
    assert [trip.meta['fault'] for trip in trips] == ['tilt', 'estop']
    assert [len(trip.columns['stamp']) for trip in trips] == [55, 55 + 21]
    assert [trip.row for trip in trips] == [50, 55]


def test_the_oldest_files_go_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, 'INTERVAL_S', 0.0)
    monkeypatch.setattr(trip_writer, 'WAITING', 100)
    seconds = iter(range(10**9, 10**9 + 5))
    monkeypatch.setattr(time, 'time', lambda: float(next(seconds)))
    bench = Bench(tmp_path, keep=3)
    foreign = tmp_path / 'notes.npz'
    foreign.write_text('not a trip')
    old = [tmp_path / f'19990101T000000Z_bot_tilt.npz{end}' for end in ('', '.part')]  # the power went
    for path in old:
        path.write_text('')
    for number in range(5):
        bench.tick(30)
        bench.recorder.trip('tilt', str(number))
    bench.finish()
    assert len(set(bench.saved)) == 5
    assert foreign.exists()
    assert not any(path.exists() for path in old)
    assert [load_meta(path)['message'] for path in trip_files(tmp_path)] == ['4', '3', '2']


def test_files_of_one_second_do_not_overwrite_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(time, 'time', lambda: 1e9)
    benches = [Bench(tmp_path) for _ in range(4)]
    for number, bench in enumerate(benches):
        bench.tick(5)
        bench.recorder.trip('tilt', str(number))
    for bench in benches:
        bench.recorder._close()
    for bench in benches:
        bench.finish()
    assert {load_meta(path)['message'] for path in trip_files(tmp_path)} == {'0', '1', '2', '3'}


def test_a_clock_before_all_others_does_not_remove_the_newest_file(tmp_path, monkeypatch):
    for year in (2024, 2025):
        (tmp_path / f'{year}0101T000000Z_bot_tilt.npz').write_text('')
    monkeypatch.setattr(time, 'time', lambda: 0.0)
    bench = Bench(tmp_path, keep=2)
    bench.tick(5)
    bench.recorder.trip('tilt', 'it leans')
    bench.finish()
    assert bench.saved[0].exists()
    assert [path.name[:4] for path in trip_files(tmp_path)] == ['2025', '1970']


def test_a_name_has_safe_characters_only(tmp_path, monkeypatch):
    monkeypatch.setattr(time, 'time', lambda: 1e9)
    bench = Bench(tmp_path)
    bench.tick(5)
    bench.recorder.trip('../a b/ü\n', 'odd')
    bench.finish()
    assert bench.saved == [tmp_path / '20010909T014640Z_bot_-a-b-.npz']


def test_a_folder_that_cannot_be_written_is_a_warning_only(tmp_path):
    (tmp_path / 'file').write_text('')
    bench = Bench(tmp_path / 'file' / 'trips')
    bench.tick(5)
    bench.recorder.trip('tilt', 'it leans')
    bench.finish()
    assert not bench.saved
    assert 'tilt' in bench.warnings[0]
    assert str(tmp_path / 'file') in bench.warnings[0]


def test_a_full_disk_leaves_no_file_and_the_next_trip_is_tried_again(bench, monkeypatch):
    monkeypatch.setattr(recorder, 'INTERVAL_S', 0.0)
    real = np.savez_compressed

    def full(file, **arrays):
        file.write(b'a part')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(trip_file.np, 'savez_compressed', full)
    bench.tick(5)
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(40)
    wait_for(lambda: bench.warnings)
    assert 'No space left' in bench.warnings[0]
    assert not list(bench.folder.iterdir())
    monkeypatch.setattr(trip_file.np, 'savez_compressed', real)
    bench.recorder.trip('tilt', 'it leans again')
    bench.finish()
    assert len(bench.saved) == 1


def test_a_warning_that_fails_ends_nothing(tmp_path):
    (tmp_path / 'file').write_text('')
    bench = Bench(tmp_path / 'file')
    bench.recorder._writer._warn = lambda text: 1 / 0
    bench.tick(5)
    bench.recorder.trip('tilt', 'it leans')
    bench.recorder._close()
    assert bench.recorder._writer._thread.is_alive()
    bench.finish()
    assert not bench.recorder._writer._thread.is_alive()


def test_notes_are_of_the_same_time_and_know_their_tick(bench):
    for k in range(300):
        if k % 10 == 0:
            bench.recorder.note(k / RATE, (np.full(4, k), np.full(2, -k)))
        bench.tick()
    bench.recorder.trip('tilt', 'it leans')
    trip = bench.only()
    notes = trip.notes
    assert len(notes['action']) == 10
    assert notes['note_row'][0] == -1  # known before the first tick
    assert np.allclose(notes['observation'][:, 0], 100 * notes['note_stamp'])
    assert np.allclose(notes['action'][:, 1], -100 * notes['note_stamp'])
    assert np.allclose(trip.columns['stamp'][notes['note_row'][1:]], notes['note_stamp'][1:] - 0.01)


def test_notes_are_decoded_late_and_a_broken_one_loses_nothing_else(tmp_path):
    decoded = []

    def decode(data: bytes):
        decoded.append(threading.current_thread())
        numbers = np.frombuffer(data)
        return numbers[:-1], numbers[-1:]

    bench = Bench(tmp_path, decode=decode)
    bench.recorder.note(0.0, np.arange(4.0).tobytes())
    bench.recorder.note(0.1, b'odd')
    bench.recorder.note(0.2, np.arange(3.0).tobytes())  # of another policy
    assert not decoded
    bench.tick(5)
    bench.recorder.trip('tilt', 'it leans')
    notes = bench.only().notes
    assert threading.main_thread() not in decoded
    nan = np.nan
    assert np.array_equal(notes['observation'], [[0, 1, 2], [nan, nan, nan], [0, 1, nan]], equal_nan=True)
    assert np.array_equal(notes['action'], [[3], [nan], [2]], equal_nan=True)


def test_the_loop_may_write_on_while_a_file_is_made(tmp_path, monkeypatch):
    """Rows are whole and in order whatever the writing thread does meanwhile; a row that was overwritten is left out."""
    monkeypatch.setattr(recorder, 'INTERVAL_S', 0.0)
    bench = Bench(tmp_path, keep=1000)
    for _ in range(15):
        bench.tick(150)
        bench.recorder.trip('tilt', 'it leans')
        bench.tick(60)
    bench.finish()
    assert bench.saved
    for trip in map(load_trip, bench.saved):
        k = np.rint(100 * trip.columns['stamp'])
        assert np.array_equal(k, k[0] + np.arange(len(k)))
        for c, name in enumerate(('joint_pos', 'joint_vel', 'target_position', 'target_velocity', 'target_effort')):
            assert np.array_equal(trip.columns[name], (k + c / 100)[:, None] + np.arange(N) / 1000)
        assert np.array_equal(trip.columns['torque_sent'], (k + 9 / 100)[:, None] + np.arange(N) / 1000)
        assert (k[trip.row] - 150) % 210 == 0


def test_a_trip_that_was_overwritten_before_it_could_be_read_is_a_warning(bench):
    gate = threading.Event()
    bench.recorder._writer._saved = lambda path: gate.wait(10)
    bench.tick(5)
    bench.recorder.trip('tilt', 'one')
    bench.tick(30)
    bench.recorder._last_trip = 0.0
    bench.recorder.trip('tilt', 'two')
    bench.tick(1000)
    gate.set()
    bench.finish()
    assert 'overwritten' in bench.warnings[0]


def test_a_slow_disk_does_not_pile_up_trips(bench, monkeypatch):
    monkeypatch.setattr(recorder, 'INTERVAL_S', 0.0)
    gate = threading.Event()
    bench.recorder._writer._saved = lambda path: (bench.saved.append(path), gate.wait(10))
    for number in range(20):
        bench.tick(2)
        bench.recorder.trip('tilt', str(number))
    gate.set()
    bench.finish()
    assert len(bench.saved) <= trip_writer.WAITING + 1


def test_after_the_end_nothing_is_recorded(bench):
    bench.tick(5)
    bench.finish()
    bench.recorder.trip('tilt', 'it leans')
    bench.tick(50)
    bench.finish()
    assert not bench.saved


@pytest.fixture
def recorded(bench) -> Path:
    bench.tick(40)
    bench.recorder.trip('tilt', 'it leans')
    bench.finish()
    return bench.saved[0]


def rewrite(path: Path, **changes) -> Path:
    with np.load(path) as archive:
        arrays = dict(archive) | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_a_file_cut_anywhere_is_refused(recorded):
    whole = recorded.read_bytes()
    for size in range(0, len(whole), 97):
        recorded.write_bytes(whole[:size])
        with pytest.raises(TripFileError, match='cut short'):
            load_trip(recorded)
        with pytest.raises(TripFileError, match='cut short'):
            load_meta(recorded)


def test_a_byte_that_turned_is_refused_or_harmless(recorded):
    whole = recorded.read_bytes()
    for place in range(0, len(whole), 61):
        recorded.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(TripFileError):
            load_trip(recorded)


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'meta': None}, 'meta'),
        ({'meta': np.array('[]')}, 'cut short'),
        ({'meta': np.array('{"format": "other"}')}, 'other'),
        ({'meta': np.array(f'{{"format": "{trip_file.FORMAT}"}}')}, 'does not say fault'),
        ({'torque_sent': None}, 'torque_sent'),
        ({'torque_sent': np.zeros((3, N))}, 'torque_sent'),
        ({'joints': np.array(['hip'])}, 'joint_pos'),
        ({'action': np.zeros((9, 2))}, 'notes'),
        ({'stamp': np.zeros(0)}, 'cut short'),
        ({'mode': np.full(40, 77.0)}, 'mode'),
    ],
)
def test_another_archive_is_refused_with_what_is_wrong(recorded, changes, says):
    with pytest.raises(TripFileError, match=says):
        load_trip(rewrite(recorded, **changes))


def test_no_code_is_run_from_a_file(recorded):
    with pytest.raises(TripFileError):
        load_trip(rewrite(recorded, stamp=np.array([print] * 40, object)))


def test_other_files_are_refused(tmp_path):
    text = tmp_path / 'a.npz'
    text.write_text('hello')
    np.save(tmp_path / 'b.npy', np.zeros(3))
    for path in (text, tmp_path / 'b.npy', tmp_path):
        with pytest.raises(TripFileError):
            load_trip(path)
    with pytest.raises(NotFoundError):
        load_trip(tmp_path / 'none.npz')


def test_the_folder_follows_the_logs_of_ros(monkeypatch):
    for name in ('ROS_LOG_DIR', 'ROS_HOME'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('HOME', '/home/me')
    assert trips_folder() == Path('/home/me/.ros/log/sim2real_trips')
    monkeypatch.setenv('ROS_HOME', '~/ros')
    assert trips_folder() == Path('/home/me/ros/log/sim2real_trips')
    monkeypatch.setenv('ROS_LOG_DIR', '/var/log/robot')
    assert trips_folder() == Path('/var/log/robot/sim2real_trips')
    monkeypatch.setenv('ROS_LOG_DIR', '')
    assert trips_folder() == Path('/home/me/ros/log/sim2real_trips')


def test_write_fits_into_a_tick(bench):
    """Generous, for a shared machine: 2.5 us were measured on a quiet one."""
    arguments = tick(1)

    def batch() -> float:
        begin = time.perf_counter()
        for _ in range(200):
            bench.recorder.write(*arguments)
        return (time.perf_counter() - begin) / 200

    assert min(batch() for _ in range(50)) < 20e-6
