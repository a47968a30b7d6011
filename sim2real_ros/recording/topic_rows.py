# SPDX-License-Identifier: Apache-2.0
"""Messages of one topic to rows of arrays, one function each. They take what `Bag.messages` yields and give arrivals in ns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sim2real_ros.errors import RecordingError
from sim2real_ros.joints import JointMap
from sim2real_ros.labels import Origin, TickLabel

Messages = Iterable[tuple[int, Any]]


def seconds(stamp: Any) -> float:
    """Return a stamp in s, by the arithmetic of the nodes, so that equal stamps are equal numbers."""
    return stamp.sec + stamp.nanosec * 1e-9


def seconds_of(stamp_ns: int) -> float:
    """Return a stamp in s, equal to `seconds` of the same one."""
    return stamp_ns // 1_000_000_000 + stamp_ns % 1_000_000_000 * 1e-9


def joint_rows(messages: Messages, joints: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arrivals (k,), times (k,) and position, velocity, effort (3, k, n); NaN where a message does not tell.

    Raises:
        JointError: a message lacks a joint.
    """
    arrivals, times, rows = [], [], []
    names: list[str] | None = None
    pick = JointMap(joints, joints)
    for arrival, message in messages:
        if message.name != names:
            names = list(message.name)
            pick = JointMap(names, joints, source='joint_states', target='the robot')
        fields = (message.position, message.velocity, message.effort)
        rows.append([pick(f) if len(f) == len(message.name) else np.full(len(joints), np.nan) for f in fields])
        arrivals.append(arrival)
        times.append(seconds(message.header.stamp))
    values = np.array(rows, float).reshape(len(rows), 3, len(joints))
    return np.array(arrivals, np.int64), np.array(times), values.transpose(1, 0, 2)


def first_names(messages: Messages) -> tuple[str, ...]:
    """Return the joints of the first message, sorted, for a robot that nobody knows."""
    return tuple(sorted(next((message.name for _, message in messages), ())))


def imu_rows(messages: Messages) -> np.ndarray:
    """Return (k, 11): time, orientation xyzw, rate, acceleration, in the IMU's frame."""
    rows = []
    for _, m in messages:
        q, w, a = m.orientation, m.angular_velocity, m.linear_acceleration
        rows.append((seconds(m.header.stamp), q.x, q.y, q.z, q.w, w.x, w.y, w.z, a.x, a.y, a.z))
    return _table(rows, 11)


def odometry_rows(messages: Messages) -> np.ndarray:
    """Return (k, 7): time, position in the world, velocity in the base frame (REP-105)."""
    rows = []
    for _, m in messages:
        p, v = m.pose.pose.position, m.twist.twist.linear
        rows.append((seconds(m.header.stamp), p.x, p.y, p.z, v.x, v.y, v.z))
    return _table(rows, 7)


def twist_rows(messages: Messages) -> np.ndarray:
    """Return (k, 4): arrival in ns, x, y, yaw of Twist and TwistStamped alike; their stamps are not read, as in the nodes."""
    rows = []
    for arrival, m in messages:
        twist = m.twist if hasattr(m, 'twist') else m
        rows.append((arrival, twist.linear.x, twist.linear.y, twist.angular.z))
    return _table(rows, 4)


def goal_rows(messages: Messages) -> np.ndarray:
    """Return (k, 8): arrival in ns, position, quaternion xyzw."""
    poses = ((arrival, m.pose.position, m.pose.orientation) for arrival, m in messages)
    return _table([(arrival, p.x, p.y, p.z, q.x, q.y, q.z, q.w) for arrival, p, q in poses], 8)


def contact_rows(messages: Messages) -> np.ndarray:
    """Return (k, 1 + feet): arrival in ns, contacts."""
    rows = [(arrival, *m.data) for arrival, m in messages]
    return _table(rows, len(rows[0]) if rows else 1)


def command_rows(messages: Messages) -> Iterator[tuple[int, Origin, np.ndarray]]:
    """Yield arrival in ns, origin and numbers of each command."""
    for arrival, m in messages:
        yield arrival, Origin.of(m.layout.dim[0].label) if m.layout.dim else Origin(), m.data


def target_rows(messages: Messages) -> tuple[np.ndarray, list[np.ndarray], list[tuple[str, ...]], np.ndarray]:
    """Return times (k,), positions, joint names, and contract ids (k,)."""
    times, positions, names, ids = [], [], [], []
    for _, m in messages:
        times.append(seconds(m.header.stamp))
        positions.append(np.array(m.position))
        names.append(tuple(m.name))
        ids.append(m.header.frame_id)
    return np.array(times), positions, names, np.array(ids)


def tick_rows(messages: Messages) -> list[tuple[TickLabel, np.ndarray]]:
    """Return label and numbers of each policy tick.

    Raises:
        RecordingError: another node, or another version, wrote them.
    """
    rows = []
    for _, m in messages:
        try:
            tick = TickLabel.of(m.layout.dim[0].label if m.layout.dim else '')
        except ValueError as error:
            raise RecordingError(f'policy/trace: {error}; it was recorded with another version') from None
        rows.append((tick, m.data))
    return rows


def _table(rows: Sequence[tuple[float, ...]], width: int) -> np.ndarray:
    return np.array(rows, float).reshape(-1, width)
