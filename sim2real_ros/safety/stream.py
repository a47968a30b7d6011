# SPDX-License-Identifier: Apache-2.0
"""The stream of joint states itself: order, rate and gaps of its stamps, and the stamps against the machine's clock.

| finding | found when | within | what it does |
|---|---|---|---|
| (dropped) | a stamp is not newer than the last one | the same tick | the state is not used |
| stamp_order | three such in 1 s; not the many of one stamp by which a paused simulation goes on | the third | fault |
| clock_jump | the stamp went back by 0.2 s, or parted from the steady clock by `clock_trip_s` | the same tick | fault |
| joint_rate | the mean rate over 1 s is off by `rate_trip` (`rate_warn`) | 1 s | fault (warning) |
| dropped_states | `dropped_trip` (`dropped_warn`) of the states of 1 s did not come | 1 s | fault (warning) |
"""

from __future__ import annotations

import math

from sim2real_ros.robot import Robot
from sim2real_ros.safety.findings import Fault

WINDOW_S = 1.0
BACK_S = 0.2  # a stamp this far back is a clock set back, not a message that was overtaken
REPEATS = 3


class StreamMonitor:
    """Watches the stamps of one robot's joint states.

    Attributes:
        warnings: what is odd but no fault, by name; renewed every second.
    """

    def __init__(self, robot: Robot) -> None:
        self._limits, self._rate_hz = robot.monitors, robot.sensors.rate_hz
        self._gap_s, self._silence_s = 1.5 / robot.sensors.rate_hz, robot.sensors.joint_timeout_s
        self.warnings: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        """Begin anew, as after a fault."""
        self._last: float | None = None
        self._arrival: float | None = None
        self._begin, self._count, self._missed = 0.0, 0, 0
        self._repeats: list[float] = []
        self._copies = 0  # of the last stamp
        self.warnings = {}

    def begin_window(self) -> None:
        """Count rate and losses from the last state on, as when the robot is armed: nobody depended on those before."""
        self._begin, self._count, self._missed = self._last or 0.0, 0, 0

    @property
    def standing(self) -> bool:
        """Whether simulated time stands still: a paused Gazebo repeats its last joint state for ever."""
        return self._copies > 1

    def see(self, stamp: float, arrival: float | None) -> tuple[bool, Fault | None]:
        """Take note of a state.

        Args:
            stamp: s, of the state.
            arrival: s on the machine's steady clock; None when stamps are simulated time.

        Returns:
            Whether the state may be used, and the fault that it shows.
        """
        last = self._last
        if last is None:
            self._last, self._arrival, self._begin = stamp, arrival, stamp
            return True, None
        step = stamp - last
        if not 0 < step < math.inf:
            return self._not_newer(stamp, step, simulated=arrival is None)
        self._last, self._count, self._copies = stamp, self._count + 1, 0
        if step > self._silence_s:  # no gap but a stop, which the checks call by its name: stale_joint_state
            self._begin, self._count, self._missed = stamp, 0, 0
        elif step > self._gap_s:
            self._missed += round(step * self._rate_hz) - 1
        fault = self._clock(step, arrival) if arrival is not None else None
        self._arrival = arrival
        if stamp - self._begin >= WINDOW_S:
            fault = fault or self._window(stamp)
        return True, fault

    def _not_newer(self, stamp: float, step: float, *, simulated: bool) -> tuple[bool, Fault | None]:
        if step < -BACK_S:
            self.reset()
            self._last = self._begin = stamp
            return True, Fault('clock_jump', f'the stamp of joint_states went back by {-step:.3f} s')
        last = self._last or 0.0
        self._copies += simulated and step == 0
        if self.standing:  # no second driver: the clock does not go on
            self._repeats = [at for at in self._repeats if at != last]
            return False, None
        self._repeats = [*(at for at in self._repeats if last - at < WINDOW_S), last]
        if len(self._repeats) < REPEATS:
            return False, None
        self._repeats, self._last = [], stamp  # from here on by these stamps: a robot that is commanded must be answered
        return True, Fault(
            'stamp_order',
            f'{REPEATS} joint states in 1 s were not newer than the one before; are there two drivers?',
        )

    def _clock(self, step: float, arrival: float) -> Fault | None:
        if self._arrival is None:
            return None
        apart = step - (arrival - self._arrival)
        if abs(apart) > self._limits.clock_trip_s:
            return Fault('clock_jump', f'the stamps of joint_states jumped by {apart:+.3f} s against the steady clock')
        if abs(apart) > self._limits.clock_warn_s:
            self.warnings['clock'] = f'the stamps of joint_states jumped by {apart:+.3f} s against the steady clock'
        return None

    def _window(self, stamp: float) -> Fault | None:
        elapsed, count, missed = stamp - self._begin, self._count, self._missed
        self._begin, self._count, self._missed, self.warnings = stamp, 0, 0, {}
        off, share, limits = count / elapsed / self._rate_hz - 1, missed / (count + missed), self._limits
        rate = f'joint_states come at {count / elapsed:.0f} Hz; sensors.rate_hz of the robot file says {self._rate_hz:g}'
        dropped = f'{share:.1%} of the joint states of the last second did not come'
        # a gap is a lower rate as well: say what it is
        if share > limits.dropped_warn:
            self.warnings['dropped_states'] = dropped
            return Fault('dropped_states', dropped) if share > limits.dropped_trip else None
        if abs(off) > limits.rate_warn:
            self.warnings['joint_rate'] = rate
            return Fault('joint_rate', rate) if abs(off) > limits.rate_trip else None
        return None
