# SPDX-License-Identifier: Apache-2.0
"""`FlightRecorder`: keeps the last seconds in memory and writes those around every trip to a file.

The control loop only copies numbers into rings of a fixed size. A thread of the recorder reads them out and writes:
the rings are longer than what is recorded, so the loop goes on meanwhile and waits for nothing.
"""

from __future__ import annotations

import math
import platform
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sim2real_ros
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.modes import Mode
from sim2real_ros.safety.tick_ring import TickRing
from sim2real_ros.safety.trip_file import Trip
from sim2real_ros.safety.trip_writer import Decode, Note, TripWriter, Window, pack_notes
from sim2real_ros.signals import JointTargets, RobotState

SPARE_S = 1.0  # the rings hold so much more, for the time that reading them out takes
NOTES_HZ = 100  # up to this policy rate the notes reach as far back as the ticks
INTERVAL_S = 1.0  # between two files
FURTHER = 100  # trips that a file lists besides its own
MODES = list(Mode)
NAN = math.nan


class FlightRecorder:
    """The recorder of one robot. `write`, `note` and `trip` must not run at once: call them under the lock of the filter."""

    def __init__(
        self,
        joints: tuple[str, ...],
        *,
        robot: str,
        rate_hz: float = 500.0,
        before_s: float = 5.0,
        after_s: float = 1.0,
        folder: Path | None = None,
        keep: int = 50,
        decode: Decode | None = None,
        saved: Callable[[Path], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """Allocate the rings and start the writing thread.

        Args:
            joints: n names, robot order.
            robot: its name.
            rate_hz: of the ticks. When they come faster, less time is recorded.
            before_s: s to record before a trip.
            after_s: s to record after it.
            folder: where the files go; `trips_folder()` by default.
            keep: files in the folder; the oldest are removed.
            decode: turns what `note` was given into observation and action (numbers); the identity by default. It runs
                in the writing thread.
            saved: told the path of each file, by the writing thread.
            warn: told why a file could not be written, by the writing thread.
        """
        self._before, self._after = math.ceil(before_s * rate_hz), math.ceil(after_s * rate_hz)
        self._before_s, self._after_s, self._rate_hz = before_s, after_s, rate_hz
        self._ring = TickRing(len(joints), self._before + 1 + self._after + math.ceil(SPARE_S * rate_hz))
        self._notes: deque[Note] = deque(maxlen=math.ceil(NOTES_HZ * (before_s + after_s)))
        self._mode, self._mode_index = MODES[0], 0
        self._open: Window | None = None  # the trip whose ticks are still coming
        self._last_trip = -math.inf
        self._joints, self._decode = joints, decode
        self._about = {'robot': robot, 'policy': '', 'contract': ''}
        self._writer = TripWriter(self._read, lambda: self._ring.count, folder, keep, saved, warn)

    def policy(self, name: str, contract_id: str) -> None:
        """Say which policy is followed from now on."""
        self._about |= {'policy': name, 'contract': contract_id}

    # --- the loop

    def write(
        self,
        mode: Mode,
        state: RobotState,
        targets: JointTargets | None,
        wanted: np.ndarray | None,
        rate: np.ndarray | None,
        envelope: np.ndarray | None,
        barrier: np.ndarray | None,
        sent: np.ndarray | None,
        reasons: np.ndarray | int,
    ) -> None:
        """Record a tick; everything is copied, None becomes NaN.

        Args:
            mode: in which the torque was computed.
            state: joints in robot order.
            targets: (n,) in robot order, those that count now.
            wanted: (n,) N m, before any limit.
            rate: (n,) N m, after the torque rate.
            envelope: (n,) N m, after the torque-speed envelope.
            barrier: (n,) N m, after the barrier.
            sent: (n,) N m.
            reasons: (n,) bit mask of `Limit`, or one for all.
        """
        ring = self._ring
        (
            scalars, joint_pos, joint_vel, quat, ang_vel, position, velocity, effort,
            in_wanted, in_rate, in_envelope, in_barrier, in_sent, in_reasons,
        ) = ring.places[ring.count % ring.capacity]  # fmt: skip
        if mode is not self._mode:
            self._mode, self._mode_index = mode, MODES.index(mode)
        scalars[0], scalars[1], scalars[2] = state.stamp, self._mode_index, state.imu_age
        joint_pos[...], joint_vel[...], quat[...] = state.joint_pos, state.joint_vel, state.base_quat_xyzw
        ang_vel[...] = NAN if state.base_ang_vel is None else state.base_ang_vel
        if targets is None:
            scalars[3] = position[...] = velocity[...] = effort[...] = NAN
        else:
            scalars[3], position[...] = targets.stamp, targets.position
            velocity[...], effort[...] = targets.velocity, targets.effort
        in_wanted[...] = NAN if wanted is None else wanted
        in_rate[...] = NAN if rate is None else rate
        in_envelope[...] = NAN if envelope is None else envelope
        in_barrier[...] = NAN if barrier is None else barrier
        in_sent[...] = NAN if sent is None else sent
        in_reasons[...] = reasons
        ring.count += 1
        if self._open is not None:
            self._follow(self._open, state.stamp)

    def note(self, stamp: float, data: Any) -> None:
        """Record what the policy saw and did; kept as it is until a trip is written, so it must not be altered later.

        Args:
            stamp: s, of the state that the policy answered.
            data: (observation, action), or whatever `decode` turns into that, such as the bytes of a message.
        """
        self._notes.append((self._ring.count, stamp, data))

    def trip(self, fault: str, message: str) -> None:
        """Mark a trip at the next tick to be written; its file follows once the ticks after it have come.

        Trips within a second of one another share a file.
        """
        now = time.monotonic()
        if now - self._last_trip < INTERVAL_S or self._writer.busy:
            if self._open is not None and len(self._open.further) < FURTHER:
                self._open.further.append((self._ring.count, fault, message))
            return
        self._close()
        self._last_trip = now
        about = {'fault': fault, 'message': message, 'unix_time': time.time()} | self._about
        self._open = Window(self._ring.count, about, self._notes)
        self._writer.put(self._open)

    def finish(self, timeout_s: float = 5.0) -> None:
        """Write what is open and end, at most for so long; trips are no longer taken."""
        self._last_trip = math.inf
        self._close()
        self._writer.finish(timeout_s)

    def _follow(self, window: Window, stamp: float) -> None:
        """Close the window when its last tick has been written."""
        after = self._ring.count - 1 - window.row
        if after == 0:
            window.stamp = stamp
        if after >= self._after or stamp - window.stamp >= self._after_s:
            self._close()

    def _close(self) -> None:
        window, self._open = self._open, None
        if window is not None:
            window.close(self._ring.count)

    # --- the writing thread

    def _read(self, window: Window) -> Trip | None:
        """Copy the ticks of a window out of the rings while the loop goes on; None when there are none."""
        end = window.end
        if end == 0:
            return None
        row = min(window.row, end - 1)
        begin, ticks = self._ring.read(max(window.row - self._before, self._ring.oldest), end, row, self._before_s)
        notes = pack_notes(window.notes, begin, self._decode)
        return Trip(self._joints, ticks, notes, self._meta(window, ticks['stamp'], begin))

    def _meta(self, window: Window, stamp: np.ndarray, begin: int) -> dict[str, Any]:
        row = min(window.row - begin, len(stamp) - 1)
        return window.about | {
            'row': row,
            'before_s': float(stamp[max(0, row - 1)] - stamp[0]),
            'after_s': float(stamp[-1] - stamp[row]),
            'rate_hz': self._rate_hz,
            'further': [[min(at - begin, len(stamp) - 1), fault, message] for at, fault, message in window.further],
            'modes': [mode.value for mode in MODES],
            'reasons': {str(limit.name): limit.value for limit in Limit if limit},
            'versions': {
                'sim2real_ros': sim2real_ros.__version__,
                'numpy': np.__version__,
                'python': platform.python_version(),
            },
        }
