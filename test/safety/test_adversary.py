# SPDX-License-Identifier: Apache-2.0
"""What the safety filter promises against torques made to break it: three robots, base fixed, end stops removed.

`python test/adversary.py` prints the measured figures behind the bars; test/adversary.py says what each adversary does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip('mujoco')

from adversary import ALL, RECIPES, ROBOTS, Apply, Condition, Outcome, fixed_robot, saturation, worst

from sim2real_ros.robot import Robot
from sim2real_ros.safety.certificate import Certificate, certify
from sim2real_ros.safety.dynamics import FixedBaseDynamics
from sim2real_ros.safety.limits import TorqueLimiter


@cache
def certificate(name: str) -> Certificate:
    """Return the certificate of a test robot, sampled once."""
    return certify(fixed_robot(name))


@cache
def dynamics(name: str) -> FixedBaseDynamics:
    """Return the dynamics of a test robot, compiled once."""
    return FixedBaseDynamics(fixed_robot(name))


def told(robot: Robot, condition: Condition, margin: float | None = None) -> Robot:
    """Return the robot as its file would describe it: its rate, and half as much delay again as there is."""
    safety = replace(robot.safety, command_delay_s=1.5 * condition.delay)
    if margin is not None:
        safety = replace(safety, position_margin=margin)
    return replace(robot, safety=safety, sensors=robot.sensors.model_copy(update={'rate_hz': float(condition.rate_hz)}))


def per_joint(robot: Robot, condition: Condition) -> Apply:
    """The filter that knows each joint by itself, with the margin of robots that stand on their legs."""
    return TorqueLimiter(told(robot, condition, PER_JOINT_MARGIN), certificate=certificate(robot.name)).apply


def coupled(robot: Robot, condition: Condition) -> Apply:
    """The filter that knows the mass matrix."""
    own = certificate(robot.name)
    return TorqueLimiter(told(robot, condition), certificate=own, dynamics=dynamics(robot.name)).apply


def uncontrolled(robot: Robot, condition: Condition) -> Apply:
    """The negative control."""
    return saturation(robot)


@dataclass(frozen=True)
class Bar:
    """What no adversary may pass."""

    overshoot_rad: float  # past the hard limit
    speed_ratio: float  # of the velocity limit


BARS = {coupled: Bar(0.0005, 1.2), per_joint: Bar(0.06, np.inf)}  # 0.000 rad to three digits
HOPELESS = 0.6  # rad: what every adversary reaches without a filter, ten times the looser bar

HELD = [(coupled, robot) for robot in ROBOTS] + [(per_joint, 'arm7'), (per_joint, 'go2')]
EACH_HELD = pytest.mark.parametrize(('make', 'robot'), HELD, ids=lambda value: getattr(value, '__name__', value))
EACH_ROBOT = pytest.mark.parametrize('robot', ROBOTS)
SUBSET = (Condition(500), ALL)  # of the matrix below, for every run
RATES, DELAYS, PLANTS = (200, 500, 1000), (0.0, 0.002, 0.005, 0.01), ((1.0, 0.0), (0.8, 0.1), (1.2, 0.1))  # mass, noise
PER_JOINT_MARGIN = 0.1  # rad


def check(make: Callable[[Robot, Condition], Apply], outcome: Outcome, robot: Robot) -> None:
    """Hold an outcome against the bars of a filter."""
    bar, joint = BARS[make], robot.joints[int(outcome.overshoot_rad.argmax())]
    assert outcome.finite
    assert outcome.torque_ratio <= 1.0
    assert outcome.overshoot <= bar.overshoot_rad, f'{joint} came {outcome.overshoot:.4f} rad past its limit'
    assert outcome.speed <= bar.speed_ratio, f'{robot.joints[int(outcome.speed_ratio.argmax())]} at {outcome.speed:.2f} x limit'


@EACH_HELD
@pytest.mark.parametrize('adversary', RECIPES)
@pytest.mark.parametrize('condition', SUBSET, ids=str)
def test_no_adversary_passes_the_bars(make, robot, adversary, condition):
    check(make, worst(make, fixed_robot(robot), adversary, condition), fixed_robot(robot))


@EACH_HELD
def test_no_adversary_passes_the_bars_at_the_lowest_rate_and_the_longest_delay(make, robot):
    condition = Condition(200, delay=0.01)
    check(make, worst(make, fixed_robot(robot), 'mixed', condition), fixed_robot(robot))


@pytest.mark.parametrize(('make', 'robot'), [pair for pair in HELD if pair[1] != 'humanoid29'])
def test_a_searched_telegraph_does_not_pass_the_bars(make, robot):
    check(make, worst(make, fixed_robot(robot), 'searched', Condition(500), evaluations=9), fixed_robot(robot))


def test_joints_that_one_by_one_cannot_be_held_are_those_that_the_certificate_names():
    """On the humanoid neighbours push harder than a joint's own motor: only the coupled barrier, which slows them, helps."""
    robot = fixed_robot('humanoid29')
    named = certificate('humanoid29').reaction > 1
    for adversary in ('push', 'pump'):
        past = worst(per_joint, robot, adversary, Condition(500)).overshoot_rad > BARS[per_joint].overshoot_rad
        assert not (past & ~named).any()


@pytest.mark.slow
@EACH_HELD
@pytest.mark.parametrize('adversary', RECIPES)
@pytest.mark.parametrize('rate_hz', RATES)
@pytest.mark.parametrize('delay', DELAYS)
def test_no_adversary_passes_the_bars_in_the_whole_matrix(make, robot, adversary, rate_hz, delay):
    for seed, (mass, noise) in enumerate(PLANTS):
        condition = Condition(rate_hz, delay, mass, noise)
        check(make, worst(make, fixed_robot(robot), adversary, condition, (seed,)), fixed_robot(robot))


@pytest.mark.slow
@EACH_HELD
@pytest.mark.parametrize('condition', [Condition(500), Condition(500, delay=0.005, mass=1.2, noise=0.1)], ids=str)
def test_a_long_search_does_not_pass_the_bars(make, robot, condition):
    check(make, worst(make, fixed_robot(robot), 'searched', condition, evaluations=50), fixed_robot(robot))


@EACH_ROBOT
@pytest.mark.parametrize('adversary', RECIPES)
def test_with_saturation_alone_every_adversary_breaks_the_bars(robot, adversary):
    """The bars are bars: what most deployments do misses them tenfold."""
    outcome = worst(uncontrolled, fixed_robot(robot), adversary, Condition(500))
    assert outcome.overshoot > HOPELESS


def slow_motors(robot: Robot, condition: Condition) -> Apply:
    """The per-joint filter on motors that take 0.1 s to full torque."""
    return per_joint(with_rate(robot, robot.safety.torque_rate / 10), condition)


def rate_after_barrier(robot: Robot, condition: Condition) -> Apply:
    """The same with the limits in the wrong order: a brake that is rate-limited."""
    own = per_joint(with_rate(robot, np.full(len(robot.joints), np.inf)), condition)
    last = np.zeros(len(robot.joints))

    def apply(torque: np.ndarray, q: np.ndarray, v: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        change = robot.safety.torque_rate / 10 * dt
        final, reasons = own(torque, q, v, dt)
        last[:] = np.clip(final, last - change, last + change)
        return last, reasons

    return apply


def with_rate(robot: Robot, rate: np.ndarray) -> Robot:
    """Return the robot with another torque rate in N m/s."""
    return replace(robot, safety=replace(robot.safety, torque_rate=rate))


@pytest.mark.parametrize('adversary', ['push', 'telegraph', 'pump'])
def test_a_brake_that_is_rate_limited_breaks_the_bar_where_the_limits_in_their_order_hold_it(adversary):
    """Why the rate comes before the barrier; at the 10 ms of the robot file both orders hold, the rate hardly binds."""
    robot = fixed_robot('go2')
    right = worst(slow_motors, robot, adversary, Condition(500))
    wrong = worst(rate_after_barrier, robot, adversary, Condition(500))
    assert right.overshoot <= BARS[per_joint].overshoot_rad
    assert wrong.overshoot > BARS[per_joint].overshoot_rad
