# SPDX-License-Identifier: Apache-2.0
"""A recorded run of our own nodes as a trace: states from the sensor topics, inputs, outputs and command from `policy/trace`.

A run is replayed from a tick in which the policy began afresh; the longest stretch counts that begins so, loses no tick and
belongs to one contract.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import RecordingError
from sim2real_ros.observation import ObservationBuilder
from sim2real_ros.parity.trace import Trace
from sim2real_ros.recording.run import Run, Targets, Ticks
from sim2real_ros.signals import LEVEL_XYZW, RobotState

SHORTEST = 10  # ticks
LOST = 1.5  # policy periods between two ticks: one is missing


def trace_of_run(run: Run, contract: Contract) -> Trace:
    """Return the longest stretch of a recorded run that can be replayed.

    Args:
        run: with policy/trace and policy/targets.
        contract: of the policy in question; only needed where the recording holds none.

    Raises:
        RecordingError: the recording lacks a topic, or no stretch can be replayed.
    """
    missing = [name for name, part in (('policy/trace', run.ticks), ('policy/targets', run.targets)) if part is None]
    if run.ticks is None or run.targets is None:
        raise RecordingError(f'{run.source} holds no {" and no ".join(missing)}: what the policy saw and did is not in it')
    rows, targets, own = _longest(run, run.ticks, run.targets, contract)
    ticks = run.ticks
    times = ticks.time[rows]
    return Trace(
        run.joints,
        run.targets.joints,
        list(_states(run, times)),
        ticks.command[rows],
        _held(run.goal, times),
        _inputs(own, ticks.observation[rows], run.source),
        _outputs(own, ticks.action[rows]),
        run.targets.position[targets],
    )


def _longest(run: Run, ticks: Ticks, targets: Targets, given: Contract) -> tuple[np.ndarray, np.ndarray, Contract]:
    """Return rows of the ticks, rows of their targets, and the contract that was followed."""
    answered = {time: row for row, time in enumerate(targets.time.tolist())}
    known = set(run.states.time.tolist())
    best: list[int] = []
    stretch: list[int] = []
    period = float(np.median(np.diff(ticks.time))) if len(ticks.time) > 1 else np.inf
    for row, time in enumerate(ticks.time.tolist()):
        whole = time in answered and time in known
        goes_on = bool(stretch) and not ticks.first[row] and time - ticks.time[stretch[-1]] < LOST * period
        same = goes_on and targets.contract[answered.get(time, 0)] == targets.contract[answered[ticks.time[stretch[0]]]]
        stretch = [*stretch, row] if whole and same else [row] if whole and ticks.first[row] else []
        best = stretch if len(stretch) > len(best) else best
    if len(best) < SHORTEST:
        raise RecordingError(
            f'{run.source} holds no {SHORTEST} ticks in a row from one in which the policy began afresh: '
            'record from before it is activated'
        )
    rows = np.array(best)
    chosen = np.array([answered[time] for time in ticks.time[rows].tolist()])
    return rows, chosen, run.contracts.get(str(targets.contract[chosen[0]]), given)


def _states(run: Run, times: np.ndarray) -> Iterator[RobotState]:
    """Yield the states at some joint states; IMU and odometry are the newest that are not younger, as in the nodes."""
    at = np.searchsorted(run.states.time, times)
    base, odometry, contacts = run.base, run.odometry, _held(run.contacts, times)
    imu = None if base is None else _newest(base.time, times)
    odom = None if odometry is None else _newest(odometry.time, times)
    for i, time in enumerate(times.tolist()):
        quat, rate, acceleration = LEVEL_XYZW, None, None
        if base is not None and imu is not None:
            quat, rate, acceleration = base.quat_xyzw[imu[i]], base.ang_vel[imu[i]], base.lin_acc[imu[i]]
        velocity = position = None
        if odometry is not None and odom is not None:
            velocity, position = odometry.lin_vel[odom[i]], odometry.position[odom[i]]
        yield RobotState(
            time, run.states.position[at[i]], run.states.velocity[at[i]], quat, rate, velocity,
            base_pos=position, base_lin_acc=acceleration, foot_contacts=None if contacts is None else contacts[i],
        )  # fmt: skip


def _inputs(contract: Contract, observation: np.ndarray, source: str) -> dict[str, np.ndarray]:
    builder = ObservationBuilder(contract)
    widths = {name: builder.width(name) for name in contract.observations}
    if sum(widths.values()) != observation.shape[1]:
        raise RecordingError(
            f'{source} holds observations of {observation.shape[1]} numbers; {contract.file.name} makes '
            + ' + '.join(f'{width} ({name})' for name, width in widths.items())
        )
    ends = np.cumsum(list(widths.values()))[:-1]
    return dict(zip(widths, np.split(observation, ends, axis=1), strict=True))


def _outputs(contract: Contract, action: np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs by tensor, from actions that lie side by side in the order of the contract."""
    outputs: dict[str, np.ndarray] = {}
    start = 0
    for name, entry in contract.file.outputs.items():
        width = len(contract.action_joints(entry))
        columns = np.arange(width) if entry.columns is None else np.array(entry.columns)
        tensor, needed = entry.tensor or name, int(columns.max()) + 1
        before = outputs.get(tensor, np.zeros((len(action), 0), np.float32))
        wide = np.zeros((len(action), max(needed, before.shape[1])), np.float32)
        wide[:, : before.shape[1]] = before
        wide[:, columns] = action[:, start : start + width]
        outputs[tensor] = wide
        start += width
    return outputs


def _held(series: tuple[np.ndarray, np.ndarray] | None, times: np.ndarray) -> np.ndarray | None:
    return None if series is None else series[1][_newest(series[0], times)]


def _newest(time: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the row of the newest sample that is not younger, for each of some times; the first where there is none."""
    return np.maximum(np.searchsorted(time, at, side='right') - 1, 0)
