# SPDX-License-Identifier: Apache-2.0
"""Policies that try to break the Go2: base fixed in the air, joint end stops removed, 500 Hz, 3 s.

Measured: largest overshoot past a hard limit (the margin lies 2.9 degrees before it), 24 seeds with the limiter, 3 with
saturation alone, which was cut off at 1150 degrees:

| policy | limiter | saturation |
|---|---|---|
| push: full torque towards one limit per joint | 2.7 deg | turns over |
| push_targets: position targets 1 rad beyond the limits | 2.7 deg | 186 deg |
| telegraph: full torque whose sign flips at random | 4.8 deg | turns over |
| telegraph_targets: targets that jump between beyond the limits | 5.3 deg | 440 deg |
| pump: full torque along the speed | 3.6 deg | turns over |
| swing: full torque from limit to limit | 0.0 deg | 578 deg |

The fastest joint reached 1.04 of its velocity limit with the limiter. The limiter knows each joint by itself: what it
overshoots comes from the other joints of the leg, whose reaction it does not foresee. The bars below are what it honestly
reaches, with little slack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from safety_rig import go2

from sim2real_ros.robot import Robot
from sim2real_ros.safety.limits import TorqueLimiter
from sim2real_ros.sim.model import build_model

mujoco = pytest.importorskip('mujoco')

ROBOT = go2()
N = len(ROBOT.joints)
LOWER, UPPER, EFFORT, FASTEST = ROBOT.limits.lower, ROBOT.limits.upper, ROBOT.limits.effort, ROBOT.limits.velocity
DT, SECONDS = 0.002, 3.0
BAR = np.radians(6.0)  # past the hard limit
SPEED_BAR = 1.08  # of the velocity limit; the fault comes at 1.2

Policy = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # time, positions, speeds -> wanted torque
Limiter = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # wanted, positions, speeds -> sent


@cache
def plant():
    """Return the Go2 bolted to the sky, without end stops and contacts."""
    model = build_model(replace(ROBOT, floating=False), timestep=DT)
    model.jnt_limited[:] = 0
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    return model


class Jumping:
    """One value of two per joint, drawn anew after random times."""

    def __init__(self, rng: np.random.Generator, low: np.ndarray, high: np.ndarray, mean_s: float) -> None:
        self._rng, self._low, self._high, self._mean_s = rng, low, high, mean_s
        self._next, self._value = np.zeros(N), low

    def __call__(self, time: float) -> np.ndarray:
        due = time >= self._next
        drawn = np.where(self._rng.random(N) < 0.5, self._low, self._high)
        self._value = np.where(due, drawn, self._value)
        self._next = np.where(due, time + self._rng.exponential(self._mean_s, N), self._next)
        return self._value


def push(rng: np.random.Generator) -> Policy:
    wanted = 2 * rng.choice([-1.0, 1.0], N) * EFFORT
    return lambda time, q, v: wanted


def push_targets(rng: np.random.Generator) -> Policy:
    goal = np.where(rng.random(N) < 0.5, UPPER + 1, LOWER - 1)
    return lambda time, q, v: 60 * (goal - q) - 0.5 * v


def telegraph(rng: np.random.Generator) -> Policy:
    signal = Jumping(rng, -1.5 * EFFORT, 1.5 * EFFORT, 0.15)
    return lambda time, q, v: signal(time)


def telegraph_targets(rng: np.random.Generator) -> Policy:
    signal = Jumping(rng, LOWER - 0.5, UPPER + 0.5, 0.3)
    return lambda time, q, v: 200 * (signal(time) - q) - 0.2 * v


def pump(rng: np.random.Generator) -> Policy:
    gain, first = rng.uniform(0.5, 3, N), rng.choice([-1.0, 1.0], N)
    return lambda time, q, v: EFFORT * gain * np.where(np.abs(v) < 1e-3, first, np.sign(v))


def swing(rng: np.random.Generator) -> Policy:
    direction = rng.choice([-1.0, 1.0], N)

    def wanted(time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        direction[q > UPPER - 0.1] = -1
        direction[q < LOWER + 0.1] = 1
        return 3 * direction * EFFORT

    return wanted


POLICIES = {policy.__name__: policy for policy in (push, push_targets, telegraph, telegraph_targets, pump, swing)}


def with_rate(rate: np.ndarray) -> Robot:
    """Return the robot with another torque rate in N m/s."""
    return replace(ROBOT, safety=replace(ROBOT.safety, torque_rate=rate))


def with_limits(robot: Robot = ROBOT) -> Limiter:
    """Return the limiter of the filter."""
    own = TorqueLimiter(robot)
    return lambda wanted, q, v: own.apply(wanted, q, v, DT)[0]


def with_saturation() -> Limiter:
    """Return what most deployments do."""
    return lambda wanted, q, v: np.clip(wanted, -EFFORT, EFFORT)


def with_rate_after_barrier(robot: Robot) -> Limiter:
    """Return the limits in the wrong order: a brake that is rate-limited."""
    own = TorqueLimiter(with_rate(np.full(N, np.inf)))
    last, change = np.zeros(N), robot.safety.torque_rate * DT

    def limited(wanted: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        last[:] = np.clip(own.apply(wanted, q, v, DT)[0], last - change, last + change)
        return last

    return limited


def worst(policy: Policy, limiter: Limiter, seed: int, give_up: float = np.inf) -> tuple[float, float]:
    """Return the largest overshoot in rad and the largest speed as a share of its limit; stop at a hopeless overshoot."""
    model = plant()
    data = mujoco.MjData(model)
    data.qpos[:] = ROBOT.pose('stand') + np.random.default_rng(seed).uniform(-0.2, 0.2, N)
    mujoco.mj_forward(model, data)
    overshoot = speed = 0.0
    for k in range(round(SECONDS / DT)):
        q, v = data.qpos.copy(), data.qvel.copy()
        data.ctrl[:] = limiter(policy(k * DT, q, v), q, v)
        mujoco.mj_step(model, data)
        overshoot = max(overshoot, float(np.maximum(data.qpos - UPPER, LOWER - data.qpos).max()))
        speed = max(speed, float((np.abs(data.qvel) / FASTEST).max()))
        if overshoot > give_up:
            break
    return overshoot, speed


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', POLICIES)
def test_with_the_limits_no_policy_drives_a_joint_past_the_bar(name, seed):
    overshoot, speed = worst(POLICIES[name](np.random.default_rng(seed)), with_limits(), seed)
    assert overshoot <= BAR, f'{np.degrees(overshoot):.1f} degrees past the limit'
    assert speed <= SPEED_BAR, f'{speed:.2f} of the velocity limit'


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3, 24))
@pytest.mark.parametrize('name', POLICIES)
def test_with_the_limits_no_policy_drives_a_joint_past_the_bar_in_many_more_tries(name, seed):
    test_with_the_limits_no_policy_drives_a_joint_past_the_bar(name, seed)


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', POLICIES)
def test_with_saturation_alone_every_one_of_them_breaks_the_bar(name, seed):
    """The bar is one: without the limits each policy misses it, tenfold."""
    overshoot, _ = worst(POLICIES[name](np.random.default_rng(seed)), with_saturation(), seed, give_up=10 * BAR)
    assert overshoot > 10 * BAR


@pytest.mark.parametrize('name', ['push', 'telegraph', 'swing'])
def test_a_brake_that_is_rate_limited_breaks_the_bar_where_the_limits_in_their_order_hold_it(name):
    """Why the rate comes before the barrier, on a motor that takes 0.1 s to full torque; measured 1.7 and over 37 degrees.

    At the 10 ms of the robot file both orders hold the bar: there the rate hardly binds.
    """
    slow = with_rate(ROBOT.safety.torque_rate / 10)
    right, _ = worst(POLICIES[name](np.random.default_rng(0)), with_limits(slow), 0)
    wrong, _ = worst(POLICIES[name](np.random.default_rng(0)), with_rate_after_barrier(slow), 0, give_up=5 * BAR)
    assert right <= BAR
    assert wrong > 5 * BAR
