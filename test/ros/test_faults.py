# SPDX-License-Identifier: Apache-2.0
"""Faults thrown at the real nodes while the robot walks: found in time, for the right reason, never a torque beyond limits.

`make faults` runs all of it and writes what it measured to docs/reaction-times.md.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fault_bench import DT, DT_NS, PATIENCE_S, Bench, Tick
from fault_table import Row, write_table
from makers import REPOSITORY
from sensor_msgs.msg import JointState

from sim2real_ros.ros.conversions import WATCHDOG, time_message
from sim2real_ros.rotations import tilt

pytest.importorskip('mujoco')

WRITE = 'SIM2REAL_WRITE_REACTION_TIMES'  # environment variable: write the table
ROBOT = (REPOSITORY / 'config' / 'robots' / 'go2.yaml').read_text()
UNANSWERED_S = 0.03  # how long the driver waits for a node that may not answer
JOINT = 3  # a hip
INCOMPLETE = 'incomplete_joint_state'


@dataclass(frozen=True)
class Cell:
    """One kind of trouble.

    Attributes:
        name: for people.
        alter: what goes wrong; called with every state from the first on, before it is published.
        reason: fault or reason of the withdrawal; '' for what must be tolerated.
        within: s, documented.
        rule: how it is found.
        mode: that the robot is in afterwards.
        group: of processes.
        patience: s that the driver waits for an answer meanwhile.
        pace: s, real time that a state takes at least.
        wall: whether the time is the machine's.
        who: the node whose reaction is measured.
        restart: nodes that are ended and started afresh afterwards.
        watch: s to look at.
        trail: s to go on after the reaction.
        fading: real s until the nodes can know that the cause has gone.
    """

    name: str
    alter: Callable[[Tick], None]
    reason: str
    within: float = 0.0
    rule: str = ''
    mode: str = 'fault'
    group: str = 'simulation'
    patience: float = PATIENCE_S
    pace: float = 0.0
    wall: bool = False
    who: str = 'safety_node'
    restart: tuple[str, ...] = ()
    watch: float = 1.0
    trail: float = 0.05
    fading: float = 0.0

    @property
    def slug(self) -> str:
        """Name for pytest."""
        return self.name.replace(' ', '-').replace(',', '')


# --- what goes wrong


def put(field: str, value: float, joint: int = JOINT, add: bool = False) -> Callable[[Tick], None]:
    """A joint's position or velocity is a value, or off by it."""

    def alter(tick: Tick) -> None:
        tick.mark()
        values = getattr(tick.joints, field)
        values[joint] = values[joint] + value if add else value

    return alter


def nan_orientation(tick: Tick) -> None:
    tick.mark()
    tick.imu.orientation.z = math.nan


def missing_joint(tick: Tick) -> None:
    tick.mark()
    for field in ('name', 'position', 'velocity', 'effort'):
        setattr(tick.joints, field, list(getattr(tick.joints, field))[:-1])


def duplicate_name(tick: Tick) -> None:
    tick.mark()
    tick.joints.name[1] = tick.joints.name[0]


def reordered(tick: Tick) -> None:
    tick.mark()
    if tick.k % 2:
        for field in ('name', 'position', 'velocity', 'effort'):
            setattr(tick.joints, field, list(getattr(tick.joints, field))[::-1])


def frozen(which: str) -> Callable[[Tick], None]:
    """Every message repeats the numbers of the first, with new stamps."""
    kept = {}

    def alter(tick: Tick) -> None:
        message = getattr(tick, which)
        if tick.k == 0:
            kept['first'] = message
            return
        tick.mark()  # the first sample that repeats another
        header, message = message.header, kept['first']
        changed = type(message)()
        for field in message.get_fields_and_field_types():
            setattr(changed, field, getattr(message, field))
        changed.header = header
        setattr(tick, which, changed)

    return alter


def imu_stops(tick: Tick) -> None:
    if tick.k == 0:
        tick.mark()  # the last sample
    else:
        tick.imu_copies = 0


def clock(seconds: float) -> Callable[[Tick], None]:
    """All stamps jump."""

    def alter(tick: Tick) -> None:
        if tick.k == 0:
            tick.bench.offset_ns = round(seconds * 1e9)
            tick.mark()

    return alter


def doubled(times: int) -> Callable[[Tick], None]:
    """Some states come twice, 0.2 s apart."""

    def alter(tick: Tick) -> None:
        count, rest = divmod(tick.k, 100)
        if rest == 0 and count < times:
            tick.copies = 2
            if count == times - 1:
                tick.mark()

    return alter


def one_dropped(tick: Tick) -> None:
    tick.mark()
    tick.copies = int(tick.k != 0)


def a_third_dropped(tick: Tick) -> None:
    tick.mark()
    tick.copies = int(tick.k % 10 not in (2, 5, 8))


def stall(tick: Tick) -> None:
    if 0 < tick.k < 50:
        tick.copies = tick.imu_copies = 0
    elif tick.k == 0:
        tick.mark()


def jump_once(tick: Tick) -> None:
    tick.mark()
    if tick.k == 0:
        tick.joints.position[JOINT] += 0.5


def wanders_off(tick: Tick) -> None:
    """The position runs out of its range, no faster than a joint can."""
    tick.joints.position[JOINT] += min(0.05 * tick.k, 4.0)
    if tick.joints.position[JOINT] > tick.bench.robot.limits.upper[JOINT] + 0.05:
        tick.mark()


def all_velocities_flipped(tick: Tick) -> None:
    tick.mark()
    tick.joints.velocity = [-v for v in tick.joints.velocity]


def leaning(tick: Tick) -> None:
    tick.mark()
    q = tick.imu.orientation
    q.x, q.y, q.z, q.w = math.sin(0.6), 0.0, 0.0, math.cos(0.6)


def spinning(tick: Tick) -> None:
    tick.mark()
    tick.imu.angular_velocity.z = 10.0


def signalled(node: str, number: signal.Signals) -> Callable[[Tick], None]:
    """A node gets a signal just before a state is published."""

    def alter(tick: Tick) -> None:
        if tick.k == 0:
            tick.bench.send(node, number)
            tick.mark()

    return alter


def targets(every: int, offset: Callable[[int], float], contract_id: str | None = None) -> Callable[[Tick], None]:
    """Besides the policy somebody else sends targets, between its ticks: the pose, and an offset in rad."""

    def alter(tick: Tick) -> None:
        bench, contract = tick.bench, tick.bench.contract
        if tick.k % every or tick.bench.stamp_ns % round(1e9 * contract.period_s) == 0:
            return
        message = JointState(name=list(contract.joints))
        message.header.stamp = time_message(bench.stamp_ns - DT_NS)
        message.header.frame_id = contract_id or contract.id
        message.position = (contract.default_position + offset(tick.k)).tolist()
        message.velocity = message.effort = [0.0] * len(contract.joints)
        bench.targets_out.publish(message)
        tick.mark()
        bench.linger(0.01)  # so that they are there before the state

    return alter


def after_the_policy(alter: Callable[[Tick], None], number: int = 5) -> Callable[[Tick], None]:
    """Begin a few states after a tick of the policy, so that what is sent is newer than its targets."""
    begun = {}

    def wait(tick: Tick) -> None:
        begun.setdefault('k', tick.k if tick.bench.stamp_ns // DT_NS % 10 == number else None)
        if begun['k'] is None:
            begun.clear()
            return
        tick.k -= begun['k']
        alter(tick)

    return wait


def silence(seconds: float) -> Callable[[Tick], None]:
    """The driver says nothing for a real time."""

    def alter(tick: Tick) -> None:
        if tick.k == 0:
            tick.mark()
        elif tick.k == 1:
            tick.copies = tick.imu_copies = 0
            tick.bench.linger(seconds)

    return alter


def no_heartbeat(tick: Tick) -> None:
    if tick.bench.stamp_ns // DT_NS % 50 == 1:  # one has just been sent
        tick.bench.heartbeat = False
        tick.mark()


def second_publisher(tick: Tick) -> None:
    if tick.k == 0:
        tick.bench.intrude()
        tick.mark()


REAL = {'group': 'hardware'}  # stamps are held against the machine's clock
QUIET = {'patience': UNANSWERED_S}

CELLS = [
    Cell('reordered joints', reordered, '', rule='matched by name'),
    Cell('one joint state dropped', one_dropped, '', rule='`dropped_trip` of 1 s'),
    Cell('one joint state doubled', doubled(1), '', rule='not newer: not used'),
    Cell('encoder jump, one sample', jump_once, '', rule='`encoder_jump_factor`; held'),
    Cell(
        'targets of another contract',
        targets(7, lambda k: 1.0 * (-1) ** k, 'f' * 12),
        '',
        rule='contract id',
    ),
    Cell('NaN position', put('position', math.nan), 'non_finite_sensor', 0, 'finite'),
    Cell('infinite velocity', put('velocity', math.inf), 'non_finite_sensor', 0, 'finite'),
    Cell('NaN in the IMU orientation', nan_orientation, 'non_finite_sensor', 0, 'finite'),
    Cell('missing joint', missing_joint, INCOMPLETE, 0, 'by name'),
    Cell('duplicate joint name', duplicate_name, INCOMPLETE, 0, 'by name'),
    Cell('frozen joint states', frozen('joints'), 'frozen_joint_state', 0.05, '25 samples'),
    Cell('frozen IMU', frozen('imu'), 'frozen_imu', 0.05, '25 samples'),
    Cell('IMU stops', imu_stops, 'stale_imu', 0.022, '`imu_timeout_s` 20 ms', **QUIET),
    Cell('clock back 1 s', clock(-1.0), 'clock_jump', 0, 'back by 0.2 s'),
    Cell('clock forward 1 s, simulated time', clock(1.0), 'stale_joint_state', 0, '`joint_timeout_s` 20 ms'),
    Cell('three joint states doubled in 1 s', doubled(3), 'stamp_order', 0.002, 'third in 1 s'),
    Cell('30 % of joint states dropped', a_third_dropped, 'dropped_states', 2.0, '`dropped_trip` of 1 s', watch=2.5),
    Cell('driver stalls 100 ms', stall, 'stale_joint_state', 0.1, '`joint_timeout_s` 20 ms, next state'),
    Cell('encoder jump, lasting', put('position', 0.5, add=True), 'encoder_jump', 0.006, '3 samples'),
    Cell('joint leaves its range', wanders_off, 'joint_position', 0.006, '3 samples'),
    Cell('velocity off by 8 rad/s', put('velocity', 8.0, add=True), 'velocity_mismatch', 0.135, '`velocity_mismatch_s` 100 ms'),
    Cell('joint too fast', put('velocity', 40.0), 'joint_velocity', 0.006, '3 samples'),
    Cell('base leans 1.2 rad', leaning, 'tilt', 0.102, '1.0 rad for 0.1 s'),
    Cell('base turns 10 rad/s', spinning, 'angular_rate', 0.102, '8 rad/s for 0.1 s'),
    Cell(
        'NaN targets of the right contract',
        after_the_policy(targets(10, lambda k: math.nan)),
        'bad_target',
        0.002,
        'finite',
    ),
    Cell(
        'jerking targets',
        after_the_policy(targets(10, lambda k: 1.5 * (-1) ** (k // 10))),
        'target_jerk',
        1.0,
        '`target_jerk`, a fifth of 1 s',
        'damping',
    ),
    Cell(
        'second publisher',
        second_publisher,
        'second_publisher',
        1.1,
        'looks every 1 s',
        wall=True,
        pace=0.002,
        watch=3.0,
        fading=1.5,
    ),
    Cell(
        'policy hangs (SIGSTOP)',
        signalled('policy_node', signal.SIGSTOP),
        'policy_timeout',
        0.06,
        '2.5 policy periods',
        'damping',
        restart=('policy_node',),
        **QUIET,
    ),
    Cell(
        'policy is killed (SIGKILL)',
        signalled('policy_node', signal.SIGKILL),
        'policy_timeout',
        0.06,
        '2.5 policy periods',
        'damping',
        restart=('policy_node',),
        **QUIET,
    ),
    Cell(
        'clock back 0.1 s',
        clock(-0.1),
        'stamp_order',
        0.02,
        'watchdog: 10 ms of states without command',
        who=WATCHDOG,
        trail=0.15,
        **QUIET,
    ),
    Cell(
        'safety node hangs (SIGSTOP)',
        signalled('safety_node', signal.SIGSTOP),
        '',
        0.02,
        'watchdog: 10 ms of states without command',
        '',
        who=WATCHDOG,
        patience=0.0,
        pace=0.01,
        watch=0.3,
        restart=('safety_node',),
    ),
    Cell(
        'safety node is killed (SIGKILL)',
        signalled('safety_node', signal.SIGKILL),
        '',
        0.02,
        'watchdog: 10 ms of states without command',
        '',
        who=WATCHDOG,
        patience=0.0,
        pace=0.01,
        watch=0.3,
        restart=('safety_node',),
    ),
    Cell('clock forward 1 s, real time', clock(1.0), 'clock_jump', 0, '`clock_trip_s`', **REAL),
    Cell(
        'driver falls silent',
        silence(1.0),
        'stale_joint_state',
        0.6,
        '`joint_timeout_s`, here 300 ms, looked at as often',
        wall=True,
        **REAL,
    ),
    Cell('operator falls silent', no_heartbeat, 'operator_timeout', 0.52, '`operator_timeout_s` 0.5 s', 'damping', **REAL),
]


# --- running them


class Benches:
    """The groups of processes, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._name = folder, ''
        self.bench: Bench | None = None
        self.rows: dict[str, Row] = {}
        self.seen, self.worst = 0, 0.0

    def group(self, name: str) -> Bench:
        """Return a running group."""
        if self._name != name:
            self.close()
            folder = self._folder / name
            folder.mkdir()
            self._name = name
            self.bench = (Bench(folder) if name == 'simulation' else hardware(folder)).__enter__()
        assert self.bench is not None
        return self.bench

    def close(self) -> None:
        """End the group that runs."""
        if self.bench is not None:
            self.bench.__exit__()
            self.seen, self.worst = self.seen + self.bench.seen, max(self.worst, self.bench.worst)
        self.bench, self._name = None, ''


def hardware(folder: Path) -> Bench:
    """A group whose stamps are the machine's time, with an operator; patient enough for a machine that others use."""
    text = ROBOT.replace('../../urdf', str(REPOSITORY / 'urdf')).replace('joint_timeout_s: 0.02', 'joint_timeout_s: 0.3')
    text += '\nmonitors: {operator_timeout_s: 0.5, clock_trip_s: 0.6}\n'
    (folder / 'robot.yaml').write_text(text)
    return Bench(folder, str(folder / 'robot.yaml'), sim_time=False)


@pytest.fixture(scope='module')
def benches(tmp_path_factory):
    """The processes; what was measured is written at the end, where that is asked for."""
    every = Benches(tmp_path_factory.mktemp('faults'))
    try:
        yield every
    finally:
        every.close()
    if os.environ.get(WRITE):
        assert set(every.rows) == {cell.name for cell in CELLS}, 'every cell must have run'
        write_table(REPOSITORY / 'docs' / 'reaction-times.md', list(every.rows.values()), every.seen, every.worst)


@pytest.mark.parametrize('cell', [pytest.param(cell, id=cell.slug) for cell in CELLS])
def test_fault(cell, benches):
    """Found within the documented time, for the right reason, and not left before its cause has been gone for 1 s."""
    bench = benches.group(cell.group)
    bench.activate()
    try:
        measured = provoke(bench, cell)
        assert not bench.bad, f'beyond the limits or not finite: {bench.bad[0]}'
        names = [name for name, _ in bench.reasons]
        print(f'{cell.name}: {1e3 * measured:.0f} ms, {bench.reasons}')
        benches.rows[cell.name] = Row(cell.name, cell.rule, cell.within, measured, cell.wall, cell.who, cell.mode, cell.reason)
        assert measured <= cell.within + 1e-9 or not cell.within and measured == 0
        if cell.reason:
            assert names[:1] == [cell.reason], bench.reasons
            assert set(names) == {cell.reason}
            leave(bench, cell)
    finally:
        if cell.reason or cell.restart:
            bench.cease()
        for name in cell.restart:
            bench.end(name)


def provoke(bench: Bench, cell: Cell) -> float:
    """Make the trouble; return how long the reaction took, s, 0 where none is wanted and none came."""
    bench.begin(cell.alter, cell.patience, cell.pace)
    reaction = None
    for _ in range(round(cell.watch / DT)):
        bench.step()
        if bench.begin_ns is None:
            continue
        rescues = [c for c in bench.commands if c.rescuing and c.who == cell.who]
        if rescues:
            reaction = rescues[0]
            break
    if not cell.reason and cell.mode:
        assert bench.mode == 'active'
        assert reaction is None
        assert not bench.reasons
        assert tilt(bench.world.base_quat_xyzw()) < 0.5
        assert bench.begin_ns is not None
        return 0.0
    assert reaction is not None, f'no reaction within {cell.watch:g} s; {bench.mode}, {bench.reasons}'
    bench.run(cell.trail)
    if cell.reason:
        bench.wait(lambda: bench.reasons and bench.mode == cell.mode, 5)
    after = bench.commands[bench.commands.index(reaction) :]
    assert all(c.rescuing for c in after), 'nothing but damping follows'
    return reaction.wall - bench.begin_wall if cell.wall else 1e-9 * (reaction.stamp_ns - bench.begin_ns)


def leave(bench: Bench, cell: Cell) -> None:
    """A latched fault is left by `reset` alone, and not before everything has been in order for 1 s."""
    if cell.mode != 'fault':
        assert 'not possible in the mode damping' in bench.ask('reset'), 'not latched'
        return
    assert bench.ask('reset') is not None, 'refused while the cause is there'
    bench.cease()
    bench.linger(cell.fading)
    bench.run(0.8)
    assert 'wait' in (bench.ask('reset') or ''), 'refused so soon after'
    bench.run(0.4)
    assert bench.ask('reset') is None
    bench.wait(lambda: bench.mode == 'damping', 5)
