# SPDX-License-Identifier: Apache-2.0
"""Promise of the fleet's checks: every lane finds what the filter of one robot would find, in the same tick."""

import numpy as np
import pytest
from safety_rig import go2

from sim2real_ros.safety.checks import StateChecks
from sim2real_ros.safety.conduct import ConductMonitor
from sim2real_ros.safety.fleet_checks import FAULTS, FleetChecks
from sim2real_ros.signals import Gains, JointTargets, RobotState

ROBOT, N, DT = go2(), 12, 0.002
MIDDLE = 0.5 * (ROBOT.limits.lower + ROBOT.limits.upper)
CASES = (
    'calm', 'tilt', 'tilt for a moment', 'turning', 'outside', 'outside for a moment', 'fast', 'jump', 'jump of one sample',
    'jump and back', 'mismatch', 'mismatch for a moment', 'late tilt', 'noise',
)  # fmt: skip


def lean(angle):
    return np.array([np.sin(0.5 * angle), 0.0, 0.0, np.cos(0.5 * angle)])


def state(case, tick, rng):
    """Return (q, qd, quat, rate) of a robot in a case; joints swing gently, with the speed that belongs to it."""
    t, begin = tick * DT, 30 * DT
    q, v = MIDDLE + 0.1 * np.sin(3 * t + np.arange(N)), 0.3 * np.cos(3 * t + np.arange(N))
    quat, rate = lean(0.1), np.array([0.1, 0.2, 0.3 + 1e-3 * tick])  # an IMU that never changes would count as frozen
    on, brief = t >= begin, begin <= t < begin + 2 * DT
    if case == 'tilt' and on:
        quat = lean(1.2)
    if case == 'tilt for a moment' and begin <= t < begin + 0.09:
        quat = lean(1.2)
    if case == 'late tilt' and t >= 5 * begin:
        quat = lean(1.2)
    if case == 'turning' and on:
        rate = np.array([9.0, 0.0, 1e-3 * tick])
    if case == 'outside' and on:
        q[4], v[4] = MIDDLE[4] + 10.0 * (t - begin), 10.0
    if case == 'outside for a moment' and brief:
        q[4] = ROBOT.limits.upper[4] + 0.2
    if case == 'fast' and on:
        v[7] = 1.3 * ROBOT.limits.velocity[7]
    if (case == 'jump' and on) or (case == 'jump of one sample' and tick == 30) or (case == 'jump and back' and brief):
        q[2] += 0.3
    if (case == 'mismatch' and on) or (case == 'mismatch for a moment' and begin <= t < begin + 0.06):
        v[5] += 0.5 * ROBOT.limits.velocity[5]
    if case == 'noise':
        q, v, rate = q + rng.normal(0, 0.03, N), v + rng.normal(0, 6.0, N), rate + rng.normal(0, 4.0, 3)
        quat = lean(rng.normal(0, 0.6))
    return q, v, quat, rate


def test_every_lane_finds_what_the_checks_of_one_robot_find_in_the_same_tick():
    fleet, singles = FleetChecks(ROBOT, len(CASES)), [StateChecks(ROBOT) for _ in CASES]
    rngs, found = [np.random.default_rng(i) for i in range(len(CASES))], dict.fromkeys(CASES, '')
    for tick in range(250):
        rows = [state(case, tick, rng) for case, rng in zip(CASES, rngs, strict=True)]
        own = fleet.see_state(RobotState(tick * DT, *(np.array(part) for part in zip(*rows, strict=True))))
        for lane, (case, checks) in enumerate(zip(CASES, singles, strict=True)):
            if found[case]:
                continue  # a robot that is stopped is not looked at any more
            seen, fault = checks.check(RobotState(tick * DT, *rows[lane]), DT if tick else 0.0)
            found[case] = fault.name if fault is not None else ''
            assert FAULTS[fleet.fault[lane]] == found[case], (case, tick)
            assert own.joint_pos[lane].tobytes() == seen.joint_pos.tobytes()
    assert {fault for fault in found.values() if fault} == set(FAULTS[1:7])  # each of them really occurred
    for quiet in ('calm', 'tilt for a moment', 'outside for a moment', 'jump of one sample', 'mismatch for a moment'):
        assert not found[quiet]


def test_the_work_of_the_limits_is_judged_as_for_one_robot():
    rng, lanes = np.random.default_rng(0), 6
    fleet, singles = FleetChecks(ROBOT, lanes), [ConductMonitor(ROBOT) for _ in range(lanes)]
    found = np.zeros(lanes, int)
    for tick in range(1500):
        altered = rng.integers(0, np.array([1, 2, 7, 10, 13, 13]))
        altered[5] = N if tick > 600 else 0
        fleet.see_torque(altered / N)
        for lane, conduct in enumerate(singles):
            if not found[lane] and conduct.see_torque(int(altered[lane]), DT) is not None:
                found[lane] = tick
        assert ((fleet.fault > 0) == (found > 0)).all(), tick
    assert found[5] > 600
    assert not found[0]
    assert FAULTS[fleet.fault[5]] == 'filter_activity'


@pytest.mark.parametrize('period', [0.02, 0.01])
def test_targets_that_jump_about_are_judged_as_for_one_robot(period):
    rng, lanes, gains = np.random.default_rng(1), 5, Gains(np.full(N, 25.0), np.full(N, 0.6))
    fleet, singles, found = FleetChecks(ROBOT, lanes), [ConductMonitor(ROBOT) for _ in range(lanes)], np.zeros(lanes, int)
    share = np.array([0.0, 0.05, 0.15, 0.5, 1.0])
    for tick in range(1, 200):
        jumping = rng.random(lanes) < share
        position = MIDDLE + 4.0 * jumping[:, None] * rng.choice([-1.0, 1.0], (lanes, N))
        rest = np.zeros((lanes, N))
        fleet.see_targets(JointTargets(tick * period, position, rest, rest), gains)
        for lane, conduct in enumerate(singles):
            targets = JointTargets(tick * period, position[lane], rest[lane], rest[lane])
            if not found[lane] and conduct.see_targets(targets, gains) is not None:
                found[lane] = tick
        assert ((fleet.fault > 0) == (found > 0)).all(), tick
    assert not found[0]
    assert found[4]
