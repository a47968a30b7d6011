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
import yaml
from fault_bench import DT, DT_NS, PATIENCE_S, Bench, Tick
from fault_table import Row, write_table
from makers import REPOSITORY
from sensor_msgs.msg import JointState

from sim2real_ros.ros.conversions import WATCHDOG, time_message
from sim2real_ros.rotations import tilt
from sim2real_ros.safety.trip_file import load_meta, trip_files

pytest.importorskip('mujoco')

WRITE = 'SIM2REAL_WRITE_REACTION_TIMES'  # environment variable: write the table
JOINT = 3  # a hip


@dataclass(frozen=True)
class Cell:
    """One kind of trouble.

    Attributes:
        name: for people.
        alter: what goes wrong; called with every state from the first on, before it is published.
        reason: fault or reason of the withdrawal, or several of which one comes first; '' for what must be tolerated.
        within: s, allowed; docs/reaction-times.md says where that is more than what is documented.
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
        rare: only in the long run of the tests.
        bug: what is known to be wrong; the cell is expected to fail.
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
    rare: bool = False
    bug: str = ''

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


def flipped(tick: Tick) -> None:
    tick.mark()
    tick.joints.velocity = [-v for v in tick.joints.velocity]


def leaning(tick: Tick) -> None:
    tick.mark()
    q = tick.imu.orientation
    q.x, q.y, q.z, q.w = math.sin(0.6), 0.0, 0.0, math.cos(0.6)


def spinning(tick: Tick) -> None:
    tick.mark()
    tick.imu.angular_velocity.z = 10.0


def after_the_policy(alter: Callable[[Tick], None], number: int) -> Callable[[Tick], None]:
    """Begin a number of states after a tick of the policy."""
    begun = {}

    def wait(tick: Tick) -> None:
        begun.setdefault('k', tick.k if tick.bench.stamp_ns // DT_NS % 10 == number else None)
        if begun['k'] is None:
            begun.clear()
            return
        tick.k -= begun['k']
        alter(tick)

    return wait


def signalled(node: str, number: signal.Signals) -> Callable[[Tick], None]:
    """A node gets a signal, just after a tick of the policy."""

    def alter(tick: Tick) -> None:
        if tick.k == 0:
            tick.bench.send(node, number)
            tick.mark()

    return after_the_policy(alter, 1)


def targets(every: int, offset: Callable[[int], float], contract_id: str | None = None) -> Callable[[Tick], None]:
    """Besides the policy somebody else sends targets, between its ticks: the pose, and an offset in rad."""

    def alter(tick: Tick) -> None:
        bench, contract = tick.bench, tick.bench.contract
        if tick.k % every or bench.stamp_ns % round(1e9 * contract.period_s) < 3 * DT_NS:
            return  # not when the policy's own may still lie in a queue of one: the newer message would replace it
        message = JointState(name=list(contract.joints))
        message.header.stamp = time_message(bench.stamp_ns - DT_NS)
        message.header.frame_id = contract_id or contract.id
        message.position = (contract.default_position + offset(tick.k)).tolist()
        message.velocity = message.effort = [0.0] * len(contract.joints)
        bench.targets_out.publish(message)
        tick.mark()
        bench.linger(0.01)  # so that they are there before the state

    return alter


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


nan_targets = after_the_policy(targets(10, lambda k: math.nan), 5)
jerking_targets = after_the_policy(targets(10, lambda k: 1.5 * (-1) ** (k // 10)), 5)

INCOMPLETE, STALE, MISMATCH = 'incomplete_joint_state', 'stale_joint_state', 'velocity_mismatch'
SILENT = 'watchdog: 10 ms of states without command'
POLICY = ('policy_timeout', 0.06, 'no targets for 2.5 policy periods', 'damping')
RESTART = {'restart': ('policy_node',)}
RARE = {'rare': True}
REAL = {'group': 'hardware', **RARE}  # stamps are held against the machine's clock
QUIET = {'patience': 0.03}
WAITING = {'pace': DT, 'watch': 3.0, 'fading': 1.5}
DEAD = {'who': WATCHDOG, 'patience': 0.0, 'pace': 0.01, 'watch': 0.3, 'restart': ('safety_node',)}  # a fifth of real time


CELLS = [
    # what must be tolerated
    Cell('reordered joints', reordered, '', rule='matched by name'),
    Cell('one joint state dropped', one_dropped, '', rule='at most 20 % in 1 s'),
    Cell('one joint state doubled', doubled(1), '', rule='not newer: not used'),
    Cell('encoder jump of one sample', jump_once, '', rule='1.5 v_max dt + 0.01 rad: held', **RARE),
    Cell('targets of another contract', targets(7, lambda k: (-1.0) ** k, 'f' * 12), '', rule='contract id'),
    # sensors
    Cell('NaN position', put('position', math.nan), 'non_finite_sensor', 0, 'finite'),
    Cell('infinite velocity', put('velocity', math.inf), 'non_finite_sensor', 0, 'finite', **RARE),
    Cell('NaN in the IMU orientation', nan_orientation, 'non_finite_sensor', 0, 'finite', **RARE),
    Cell('missing joint', missing_joint, INCOMPLETE, 0, 'by name'),
    Cell('duplicate joint name', duplicate_name, INCOMPLETE, 0, 'by name', **RARE),
    Cell('frozen joint states', frozen('joints'), 'frozen_joint_state', 0.05, '25 samples'),
    Cell('frozen IMU', frozen('imu'), 'frozen_imu', 0.05, '25 samples', **RARE),
    Cell('IMU stops', imu_stops, 'stale_imu', 0.022, 'older than 20 ms', **QUIET),
    Cell('encoder jump, lasting', put('position', 0.5, add=True), 'encoder_jump', 0.006, '3 samples'),
    Cell('joint leaves its range', wanders_off, 'joint_position', 0.006, '0.075 rad outside, 3 samples', **RARE),
    Cell('joint too fast', put('velocity', 40.0), 'joint_velocity', 0.006, '1.2 v_max, 3 samples', **RARE),
    Cell('velocity off by 8 rad/s', put('velocity', 8.0, add=True), MISMATCH, 0.135, '0.2 v_max for 100 ms', **RARE),
    Cell('velocities with the wrong sign', flipped, f'joint_velocity|{MISMATCH}', 1.0, 'when joints are fast', **RARE),
    Cell('base leans 1.2 rad', leaning, 'tilt', 0.102, '1.0 rad for 0.1 s'),
    Cell('base turns 10 rad/s', spinning, 'angular_rate', 0.102, '8 rad/s for 0.1 s', **RARE),
    # stream and clock
    Cell('clock back 1 s', clock(-1.0), 'clock_jump', 0, 'back by 0.2 s'),
    Cell('clock forward 1 s, simulated time', clock(1.0), STALE, 0, 'gap over 20 ms', **RARE),
    Cell('clock forward 1 s, real time', clock(1.0), 'clock_jump', 0, '0.2 s (here 0.6 s) off the steady clock', **REAL),
    Cell('clock back 0.1 s', clock(-0.1), 'stamp_order', 0.004, 'the third', **QUIET, **RARE),
    Cell('three joint states doubled in 1 s', doubled(3), 'stamp_order', 0.002, 'the third', **RARE),
    Cell('30 % of joint states dropped', a_third_dropped, 'dropped_states', 2.0, '20 % of a second', watch=2.5, **RARE),
    Cell('driver stalls 100 ms', stall, STALE, 0.1, 'gap over 20 ms, at the next state'),
    Cell('driver falls silent', silence(1.0), STALE, 0.6, '1 to 2 time-outs of 20 ms (here 300 ms)', wall=True, **REAL),
    # policy and operator
    Cell('NaN targets of the right contract', nan_targets, 'bad_target', 0.002, 'finite'),
    Cell('jerking targets', jerking_targets, 'target_jerk', 1.0, 'a fifth of 1 s', 'damping', **RARE),
    Cell('policy hangs (SIGSTOP)', signalled('policy_node', signal.SIGSTOP), *POLICY, **QUIET, **RESTART, **RARE),
    Cell('policy is killed (SIGKILL)', signalled('policy_node', signal.SIGKILL), *POLICY, **QUIET, **RESTART),
    Cell('operator falls silent', no_heartbeat, 'operator_timeout', 0.52, '0.5 s without heartbeat', 'damping', **REAL),
    # who commands
    Cell('second publisher', second_publisher, 'second_publisher', 1.2, 'looks every 1 s', wall=True, **WAITING),
    Cell('safety node hangs (SIGSTOP)', signalled('safety_node', signal.SIGSTOP), '', 0.02, SILENT, '', **DEAD, **RARE),
    Cell('safety node is killed (SIGKILL)', signalled('safety_node', signal.SIGKILL), '', 0.02, SILENT, '', **DEAD),
]
CELLS.sort(key=lambda cell: cell.group != 'simulation')  # one group at a time


# --- running them


class Benches:
    """The groups of processes, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._name = folder, ''
        self.bench: Bench | None = None
        self.rows: dict[str, Row] = {}
        self.seen, self.worst = 0, 0.0

    def group(self, name: str) -> Bench:
        """Return a running group."""
        if self._name != name:
            self.close()
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
            self.bench = (Bench(folder) if name == 'simulation' else hardware(folder)).__enter__()
            self._name = name
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
    own = REPOSITORY / 'config' / 'robots' / 'go2.yaml'
    robot = yaml.safe_load(own.read_text())
    robot['urdf'] = str((own.parent / robot['urdf']).resolve())
    robot['sensors']['joint_timeout_s'] = 0.3
    robot.setdefault('monitors', {}).update(operator_timeout_s=0.5, clock_trip_s=0.6)
    (folder / 'robot.yaml').write_text(yaml.safe_dump(robot))
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
        assert every.worst <= 1 + 1e-9, 'also between the cells'
        assert set(every.rows) == {cell.name for cell in CELLS}, 'every cell must have run'
        write_table(REPOSITORY / 'docs' / 'reaction-times.md', list(every.rows.values()), every.seen, every.worst)


def test_a_robot_is_not_armed_while_another_node_may_command_it(benches):
    """And the operator is told which node it is."""
    bench = benches.group('simulation')
    bench.wait(lambda: bench.mode == 'off', 30)
    bench.intrude()
    bench.linger(1.5)
    bench.run(0.1)
    assert '/intruder publishes on /effort_controller/commands' in bench.ask('damp')
    bench.cease()
    bench.linger(1.5)
    assert bench.ask('damp') is None


def marks(cell: Cell) -> list[pytest.MarkDecorator]:
    found = [pytest.mark.slow] if cell.rare else []
    return [*found, pytest.mark.xfail(reason=cell.bug, strict=True)] if cell.bug else found


@pytest.mark.parametrize('cell', [pytest.param(cell, id=cell.slug, marks=marks(cell)) for cell in CELLS])
def test_fault(cell, benches):
    """Found within the documented time, for the right reason, and not left before its cause has been gone for 1 s."""
    bench = benches.group(cell.group)
    bench.activate()
    try:
        measured = provoke(bench, cell)
        assert not bench.bad, f'beyond the limits or not finite: {bench.bad[0]}'
        names = [name for name, _ in bench.reasons]
        print(f'{cell.name}: {1e3 * measured:.0f} ms, {bench.reasons}')
        reason = names[0] if names else ''
        benches.rows[cell.name] = Row(
            cell.name, cell.rule, cell.within, measured, cell.wall, cell.who, cell.mode, reason, cell.bug
        )
        assert measured <= cell.within + 1e-9 or not cell.within and measured == 0
        if cell.reason:
            assert names[0] in cell.reason.split('|'), bench.reasons
            assert set(names) == {names[0]}
            leave(bench, cell)
    finally:
        if cell.reason or cell.restart:
            bench.cease()
        for name in cell.restart:
            bench.end(name)


def test_every_stop_was_recorded(benches):
    """Each fault and withdrawal above stands in a file, as the cause of the trip or as what followed within the second."""
    groups = {cell.name: cell.group for cell in CELLS}
    wanted = {(groups[row.fault], row.reason) for row in benches.rows.values() if row.reason}
    benches.close()
    found = set()
    for group in set(groups.values()):
        for path in trip_files(benches.folder / group / 'trips'):
            meta = load_meta(path)
            found |= {(group, name) for name in (meta['fault'], *(name for _, name, _ in meta['further']))}
    assert wanted <= found


def provoke(bench: Bench, cell: Cell) -> float:
    """Make the trouble; return how long the reaction took, s, 0 where none is wanted and none came."""
    bench.begin(cell.alter, cell.patience, cell.pace)
    reaction, looked_at = None, 0
    for _ in range(round(cell.watch / DT)):
        bench.step()
        new, looked_at = bench.commands[looked_at:], len(bench.commands)
        reaction = next((c for c in new if c.rescuing and c.who == cell.who), None)
        if reaction is not None:
            break
    if not cell.reason and cell.mode:
        assert bench.mode == 'active'
        assert reaction is None
        assert not bench.reasons
        assert tilt(bench.world.base_quat_xyzw()) < 0.5
        assert bench.begin_ns is not None
        return 0.0
    assert bench.begin_ns is not None
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
