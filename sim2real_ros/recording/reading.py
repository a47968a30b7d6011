# SPDX-License-Identifier: Apache-2.0
"""`load_run`: one reader for every recording: rosbag2 of `ros2 bag` or of ours, and the simulator's own trace.

Two clocks meet here. Stamps are the robot's; arrivals are those of the machine that recorded. A message without a header (a
command, a mode) gets its time from the joint states that arrived around it. The age of a command is the time between two
arrivals, that of the joint state that it answers and its own: what a round trip took, seen from the recorder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import JointError, NotFoundError, RecordingError, Sim2RealError
from sim2real_ros.recording import topic_rows as rows
from sim2real_ros.recording.bag import Bag, is_bag
from sim2real_ros.recording.run import Base, Joints, Odometry, Run, Targets, Ticks, Torques, Velocity, longest_part
from sim2real_ros.recording.simulated import run_of_trace
from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.rotations import multiply_xyzw, world_to_base

FOREVER = 1 << 62  # ns
GAP = 1.5  # times the usual time between two joint states: one is missing


def load_run(path: Path, robot: str = '', namespace: str | None = None) -> Run:
    """Read a recorded run.

    Args:
        path: folder or file of a rosbag2, or npz file of the simulator's trace.
        robot: shipped name or robot YAML file; '': the one that the recorded contract names.
        namespace: whose topics, where a recording holds several robots.

    Raises:
        NotFoundError: there is no such file, namespace or robot.
        DependencyError: rosbags is missing.
        RecordingError: it cannot be read, or is not the recording of a robot.
    """
    path = path.expanduser()
    if not path.exists():
        raise NotFoundError(f'there is no recording {path}')
    if path.suffix == '.npz':
        return _with_positions(run_of_trace(path, robot))
    if not is_bag(path):
        raise RecordingError(f'{path} is no recording: a rosbag2 (folder, .mcap, .db3) or the trace of a simulator (.npz)')
    with Bag(path, namespace) as bag:
        try:
            return _with_positions(_Reading(bag, robot).run())
        except JointError as error:
            raise RecordingError(f'{path}: {error}') from None


def _with_positions(run: Run) -> Run:
    """Return a run; raises RecordingError when it never tells where a joint is."""
    if not np.isfinite(run.states.position).any():
        raise RecordingError(
            f'{run.source} holds no joint positions: in all {len(run.states.time)} states they are empty, not as many as the '
            'names, or not finite'
        )
    return run


class _Reading:
    """One bag on its way to a `Run`."""

    def __init__(self, bag: Bag, robot: str) -> None:
        self._bag, self._notes = bag, list[str]()
        self._contracts = self._read_contracts()
        named = robot or next((contract.file.robot for contract in self._contracts.values()), '')
        self._robot = self._find(named, given=bool(robot))
        contract = next(iter(self._contracts.values()), None)
        known = self._robot.joints if self._robot is not None else contract.joints if contract is not None else ()
        self._joints = known or rows.first_names(bag.messages('joint_states'))
        if not self._joints:
            raise RecordingError(f'{bag.path}: joint_states name no joints; see what publishes them')
        self._arrivals, self._states = self._read_states()

    def run(self) -> Run:
        """Return all of it."""
        targets, ticks = self._targets(), self._ticks()
        torques = self._torques()
        contract = self._followed(targets)
        return Run(
            source=str(self._bag.path),
            robot=self._robot.name if self._robot is not None else '',
            joints=self._joints,
            states=self._states,
            base=self._base(),
            odometry=self._odometry(),
            torques=torques,
            velocity=self._velocity(ticks),
            targets=targets,
            ticks=ticks,
            goal=self._timed(rows.goal_rows(self._bag.messages('goal_pose', self._window))),
            contacts=self._timed(rows.contact_rows(self._bag.messages('foot_contacts', self._window))),
            modes=self._modes(torques),
            contracts=self._contracts,
            contract=contract,
            notes=tuple(self._notes),
        )

    # --- who

    def _read_contracts(self) -> dict[str, Contract]:
        contracts = {}
        for _, message in self._bag.messages('policy/contract'):
            try:
                contract = Contract.from_json(message.data, 'the recorded policy/contract')
                contracts[contract.id] = contract
            except Sim2RealError as error:
                self._notes.append(f'a contract in it cannot be read: {error}')
        return contracts

    def _find(self, name: str, *, given: bool) -> Robot | None:
        try:
            return load_robot(name) if name else None
        except Sim2RealError as error:
            if given:
                raise
            self._notes.append(f'the robot file of "{name}" is not here ({error}): IMU taken as mounted in line with the base')
            return None

    def _followed(self, targets: Targets | None) -> Contract | None:
        if targets is not None and len(targets.contract):
            ids, counts = np.unique(targets.contract, return_counts=True)
            if (contract := self._contracts.get(str(ids[counts.argmax()]))) is not None:
                return contract
        return next(reversed(self._contracts.values()), None)

    # --- what the robot said

    def _read_states(self) -> tuple[np.ndarray, Joints]:
        arrivals, times, values = rows.joint_rows(self._bag.messages('joint_states'), self._joints)
        if len(times) < 2:
            raise RecordingError(f'{self._bag.path} holds {len(times)} joint states; a run needs more')
        keep, resets = longest_part(times), int((np.diff(times) < 0).sum())
        if resets:
            self._notes.append(f'time went back {resets} time(s), as after a reset; the longest part counts')
        whole = (keep[0] == 0, keep[-1] == len(times) - 1)  # what came before the first state, or after the last, belongs to it
        ends = (int(arrivals[keep[0]]), int(arrivals[keep[-1]]))
        self._window = (0 if whole[0] else ends[0], FOREVER if whole[1] else ends[1])
        steps = np.diff(times[keep])
        missing = int(np.round(steps[steps > GAP * np.median(steps)] / np.median(steps) - 1).sum()) if len(steps) else 0
        if missing:
            self._notes.append(f'{missing} of {len(keep) + missing} joint states are missing')
        return arrivals[keep], Joints(times[keep], *values[:, keep])

    def _base(self) -> Base | None:
        table = rows.imu_rows(self._bag.messages('imu/data', self._window))
        if not len(table):
            return None
        quat, rate, acceleration = table[:, 1:5], table[:, 5:8], table[:, 8:11]
        if self._robot is not None:
            inverse = self._robot.imu_mounting_xyzw * (-1, -1, -1, 1)
            rate, acceleration = (world_to_base(inverse, vector) for vector in (rate, acceleration))
            quat = multiply_xyzw(quat, inverse)
        return Base(table[:, 0], quat, rate, acceleration)

    def _odometry(self) -> Odometry | None:
        table = rows.odometry_rows(self._bag.messages('odom', self._window))
        return Odometry(table[:, 0], table[:, 1:4], table[:, 4:7]) if len(table) else None

    # --- what it was told

    def _torques(self) -> Torques | None:
        at = {time: row for row, time in enumerate(self._states.time.tolist())}
        found = []
        for name in ('effort_controller/commands', 'impedance_controller/commands'):
            for arrival, origin, numbers in rows.command_rows(self._bag.messages(name, self._window)):
                foreign = origin.stamp_ns is None
                time = float(self._time_of(arrival)) if foreign else rows.seconds_of(origin.stamp_ns or 0)
                row = at.get(time)
                torque = self._torque(numbers, row)
                if torque is not None:
                    age = np.nan if row is None or foreign else 1e-9 * (arrival - self._arrivals[row])
                    found.append((time, torque, age, origin.mode))
        if not found:
            return None
        found.sort(key=lambda command: command[0])
        time, torque, age, mode = zip(*found, strict=True)
        return Torques(np.array(time), np.array(torque), np.array(age), np.array(mode))

    def _torque(self, numbers: np.ndarray, row: int | None) -> np.ndarray | None:
        """Return (n,) N m of a command in the robot's order, None when it is none."""
        n = len(self._joints)
        if len(numbers) == n:
            return numbers
        if len(numbers) != 5 * n + 1 or row is None:
            return None
        position, velocity, stiffness, damping, effort = numbers[:-1].reshape(5, n)
        q, qd = self._states.position[row], self._states.velocity[row]
        return stiffness * (position - q) + damping * (velocity - qd) + effort  # type: ignore[no-any-return]

    def _velocity(self, ticks: Ticks | None) -> Velocity | None:
        if ticks is not None:
            return Velocity(ticks.time, ticks.command)
        table = rows.twist_rows(self._bag.messages('cmd_vel', self._window))
        return Velocity(self._time_of(table[:, 0]), table[:, 1:]) if len(table) else None

    def _modes(self, torques: Torques | None) -> tuple[tuple[float, str], ...]:
        if torques is not None and (torques.mode != '').any():
            told = torques.mode != ''
            times, modes = torques.time[told], torques.mode[told]
            changes = np.flatnonzero(np.append(True, modes[1:] != modes[:-1]))
            return tuple((float(times[i]), str(modes[i])) for i in changes)
        return tuple((float(self._time_of(arrival)), m.data) for arrival, m in self._bag.messages('safety/mode'))

    # --- what the policy did

    def _targets(self) -> Targets | None:
        times, positions, names, ids = rows.target_rows(self._bag.messages('policy/targets', self._window))
        if not len(times):
            return None
        common = max(set(names), key=names.count)
        mine = np.array([name == common for name in names])
        if not mine.all():
            self._notes.append('policies of different joints took turns; the targets of the one that ran longest count')
        kept = np.array([position for position, own in zip(positions, mine, strict=True) if own])
        return Targets(times[mine], kept, common, ids[mine])

    def _ticks(self) -> Ticks | None:
        found = rows.tick_rows(self._bag.messages('policy/trace', self._window))
        if not found:
            return None
        shapes = [(tick.observation, tick.action) for tick, _ in found]
        seen, done = max(set(shapes), key=shapes.count)
        found = [pair for pair, shape in zip(found, shapes, strict=True) if shape == (seen, done)]
        numbers = np.array([values for _, values in found])
        return Ticks(
            np.array([rows.seconds_of(tick.stamp_ns) for tick, _ in found]),
            numbers[:, :seen], numbers[:, seen : seen + done], numbers[:, seen + done :],
            np.array([tick.first for tick, _ in found]),
        )  # fmt: skip

    # --- time

    def _time_of(self, arrival: np.ndarray | int) -> np.ndarray:
        """Return times of the robot's clock at arrivals in ns: between those of the joint states, else at the same pace."""
        a, t = self._arrivals, self._states.time
        arrival = np.asarray(arrival, float)
        inside = np.interp(arrival, a, t)
        return inside + 1e-9 * (np.minimum(arrival - a[0], 0) + np.maximum(arrival - a[-1], 0))  # type: ignore[no-any-return]

    def _timed(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        return (self._time_of(table[:, 0]), table[:, 1:]) if len(table) else None
