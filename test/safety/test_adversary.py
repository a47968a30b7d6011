# SPDX-License-Identifier: Apache-2.0
"""What the safety filter promises against torques made to break it: three robots, base fixed, end stops removed.

`python test/adversary.py` prints the measured figures behind the bars; test/adversary.py says what each adversary does.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('mujoco')

from adversary import ALL, RECIPES, ROBOTS, Apply, Condition, Plant, attack, fixed_robot, saturation, start_pose, worst
from barriers import BARS, check, coupled, per_joint, slow_motors, with_rate

from sim2real_ros.robot import Robot
from sim2real_ros.safety import barrier


def uncontrolled(robot: Robot, condition: Condition) -> Apply:
    """The negative control."""
    return saturation(robot)


HOPELESS = 0.6  # rad: what every adversary reaches without a filter, ten times the looser bar

HELD = [(make, robot) for make in (coupled, per_joint) for robot in ROBOTS]
EACH_HELD = pytest.mark.parametrize(('make', 'robot'), HELD, ids=lambda value: getattr(value, '__name__', value))
EACH_ROBOT = pytest.mark.parametrize('robot', ROBOTS)
WORST = Condition(200, delay=0.01, mass=1.2, noise=0.1)  # where the most got through while the barriers were made
LONG_SEARCHES = (Condition(500), ALL, WORST, Condition(200, 0.01, 0.8, 0.1), Condition(1000, 0.01, 1.2, 0.1))
SUBSET = (Condition(500), ALL)  # of the matrix below, for every run
RATES, DELAYS, PLANTS = (200, 500, 1000), (0.0, 0.002, 0.005, 0.01), ((1.0, 0.0), (0.8, 0.1), (1.2, 0.1))  # mass, noise


@EACH_HELD
@pytest.mark.parametrize('adversary', RECIPES)
@pytest.mark.parametrize('condition', SUBSET, ids=str)
def test_no_adversary_passes_the_bars(make, robot, adversary, condition):
    check(make, worst(make, fixed_robot(robot), adversary, condition), fixed_robot(robot))


@EACH_HELD
def test_no_adversary_passes_the_bars_at_the_lowest_rate_and_the_longest_delay(make, robot):
    condition = Condition(200, delay=0.01)
    check(make, worst(make, fixed_robot(robot), 'mixed', condition), fixed_robot(robot))


@EACH_HELD
@pytest.mark.parametrize('condition', [Condition(500), WORST], ids=str)
def test_a_searched_telegraph_does_not_pass_the_bars(make, robot, condition):
    check(make, worst(make, fixed_robot(robot), 'searched', condition, evaluations=12), fixed_robot(robot))


def let_go(condition: Condition, seed: int, seconds: float = 2.0) -> Plant:
    """Return a humanoid per joint of which no torque at all is wanted."""
    robot = fixed_robot('humanoid29')
    plant, still = Plant(robot, condition, seed=seed), np.zeros(len(robot.joints))
    plant.reset(start_pose(robot, np.random.default_rng(seed)))
    attack(plant, per_joint(robot, condition), lambda t, q, v: still, condition.rate_hz, seconds)
    return plant


def sunk(plant: Plant) -> float:
    """Return how far the worst joint came past its limit, rad; negative inside."""
    limits = plant.robot.limits
    return float(np.maximum(plant.q - limits.upper, limits.lower - plant.q).max())


def test_limbs_that_are_let_go_sink_past_no_limit_since_the_bounds_find_out_what_loads_a_joint(monkeypatch):
    assert max(sunk(let_go(WORST, seed)) for seed in range(6)) < 0
    monkeypatch.setattr(barrier, 'LOAD_GAIN', 0.0)
    assert max(sunk(let_go(WORST, seed)) for seed in range(6)) > BARS[per_joint].overshoot_rad


@pytest.mark.parametrize('seed', [0, 2, 3])
def test_limbs_that_are_let_go_come_to_rest(seed):
    """A bound that finds out a load does not throw the limb about, with 5 ms of delay."""
    late = let_go(Condition(500, delay=0.005), seed, 8.0).v[-1000:]
    assert np.sqrt((late**2).mean()) < 0.03


def test_a_brake_for_the_heaviest_state_throws_light_limbs_to_and_fro(monkeypatch):
    robot = fixed_robot('humanoid29')
    calm = worst(per_joint, robot, 'push', WORST)
    monkeypatch.setattr(barrier, 'LIGHT_GAIN', np.inf)
    wild = worst(per_joint, robot, 'push', WORST)
    assert calm.speed < 5 < 10 < wild.speed
    assert calm.overshoot <= BARS[per_joint].overshoot_rad < wild.overshoot


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
@pytest.mark.parametrize('condition', LONG_SEARCHES, ids=str)
def test_a_long_search_does_not_pass_the_bars(make, robot, condition):
    check(make, worst(make, fixed_robot(robot), 'searched', condition, evaluations=50), fixed_robot(robot))


@EACH_ROBOT
@pytest.mark.parametrize('adversary', RECIPES)
def test_with_saturation_alone_every_adversary_breaks_the_bars(robot, adversary):
    """The bars are bars: what most deployments do misses them tenfold."""
    outcome = worst(uncontrolled, fixed_robot(robot), adversary, Condition(500))
    assert outcome.overshoot > HOPELESS


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


@pytest.mark.parametrize('adversary', ['push', 'telegraph', 'pump'])
def test_a_brake_that_is_rate_limited_breaks_the_bar_where_the_limits_in_their_order_hold_it(adversary):
    """Why the rate comes before the barrier; at the 10 ms of the robot file both orders hold, the rate hardly binds."""
    robot = fixed_robot('go2')
    right = worst(slow_motors, robot, adversary, Condition(500))
    wrong = worst(rate_after_barrier, robot, adversary, Condition(500))
    assert right.overshoot <= BARS[per_joint].overshoot_rad
    assert wrong.overshoot > BARS[per_joint].overshoot_rad
