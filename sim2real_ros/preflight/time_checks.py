# SPDX-License-Identifier: Apache-2.0
"""Checks of the clock: where time comes from, whether it goes on, and whether it is fine enough for the policy."""

from __future__ import annotations

import numpy as np

from sim2real_ros.preflight.finding import Level, Verdict
from sim2real_ros.preflight.observed import Observed

SYSTEM_OFF_S = 0.5  # stamps of hardware against system time
CLOCK_OFF_S = 0.5  # stamps of the joint states against /clock


def clock_source(seen: Observed) -> Verdict:
    """Whether the stamps belong to the clock that the safety node was told of."""
    clock, joints = seen.clock, seen.joint_states
    if seen.sim_time is None:
        return Level.SKIPPED, 'safety_node does not tell its parameter sim_time'
    if len(clock.publishers) > 1:
        return Level.REFUSED, f'{", ".join(clock.publishers)} all publish {clock.topic}: stop all but one'
    if not seen.sim_time and clock.publishers:
        text = f'{clock.publishers[0]} publishes {clock.topic}, but safety_node runs with sim_time:=false'
        return Level.REFUSED, f'{text}: start the nodes with sim_time:=true, or stop the simulator'
    if seen.sim_time and not clock.publishers:
        text = f'safety_node runs with sim_time:=true, but nobody publishes {clock.topic}'
        return Level.REFUSED, f'{text}: bridge the clock, or on a robot use sim_time:=false, else silence is taken for a pause'
    if not len(joints.stamps):
        return Level.SKIPPED, 'no joint states to compare with'
    if not seen.sim_time:
        off = seen.now - float(joints.stamps[-1])
        if abs(off) > SYSTEM_OFF_S:
            return (
                Level.REFUSED,
                f'joint states are {off:.2f} s behind the system time: synchronise the clocks of the computers',
            )
        return Level.OK, 'system time'
    if len(clock.stamps) and abs(off := float(clock.stamps[-1] - joints.stamps[-1])) > CLOCK_OFF_S:
        return Level.REFUSED, f'joint states are {off:.2f} s behind {clock.topic}: both must come from one simulator'
    return Level.OK, f'{clock.topic} from {clock.publishers[0]}'


def time_goes_on(seen: Observed) -> Verdict:
    """Whether the simulation runs."""
    for stream in (seen.clock, seen.joint_states):
        if stream.standing:
            text = f'{stream.topic} stands still at {stream.stamps[-1]:.3f} s: the simulation is paused'
            return Level.REFUSED, f'{text}, let it go on (gz sim -r, or the play button)'
    if not len(seen.joint_states.stamps):
        return Level.SKIPPED, 'no stamps'
    passed = float(seen.joint_states.stamps[-1] - seen.joint_states.stamps[0])
    real = float(seen.joint_states.arrivals[-1] - seen.joint_states.arrivals[0])
    return Level.OK, f'{passed:.2f} s of stamps in {real:.2f} s'


def clock_rate(seen: Observed) -> Verdict:
    """Whether clock and joint states tick faster than the policy."""
    if seen.contract is None:
        return Level.SKIPPED, 'no policy has announced its contract'
    policy, slow = seen.contract.period_s, []
    for stream in (seen.clock, seen.joint_states):
        if np.isfinite(stream.period) and stream.period > 1.001 * policy:
            slow.append(f'{stream.topic} ticks every {1e3 * stream.period:g} ms')
    if slow:
        text = f'{" and ".join(slow)}, the policy every {1e3 * policy:g} ms'
        return Level.REFUSED, f'{text}: lower max_step_size of the world, or raise update_rate of the controller manager'
    if not np.isfinite(seen.joint_states.period):
        return Level.SKIPPED, 'no two joint states with different stamps'
    return Level.OK, f'{policy / seen.joint_states.period:.3g} joint states for each tick of the policy'
