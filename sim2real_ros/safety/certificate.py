# SPDX-License-Identifier: Apache-2.0
"""The certificate: what the robot's joints can brake, found by sampling its mass matrix before anything moves.

The barrier holds a limit only where the brake it counts on exists. For each joint i that is so when, over the states that
the robot can be in, the torque for braking all joints at once fits what the motor has, with a quarter to spare:

    quantile 0.999 of  sum_j |M_ij| a_j + |h_i|  <=  effort_i / 1.25

`brake_acceleration` of the robot file is tried first; joints whose row does not fit get less, down to a twentieth of it.
Below that a joint is not certifiable: it runs with the weak brake, and the promise for its limits is void.

The per-joint barrier also needs that a joint's motor can stand what its neighbours do to it (`reaction` at most 1); where
they can do more, only the coupled barrier, which then slows the neighbours down, keeps the promise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sim2real_ros.errors import DependencyError, DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.safety.dynamics import Dynamics, FixedBaseDynamics
from sim2real_ros.signals import Gains

SAMPLES, QUANTILE, RESERVE = 1000, 0.999, 1.25
SHRINK, LEAST = 0.9, 0.05
HIGH_FACTOR = 1.3  # on the largest inertia: payload and model error
STABLE_DAMPING, STABLE_FREQUENCY = 1.0, 1.0  # kd dt / J and omega dt, with J as small as it gets


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the barrier may count on, (n,) in robot order."""

    brake: np.ndarray  # rad/s^2, deceleration
    inertia_low: np.ndarray  # kg m^2, the least that a torque of this joint moves; NaN where unknown
    inertia_high: np.ndarray  # kg m^2, the most, with reserve
    weight: np.ndarray  # N m, the most that gravity puts on this joint; NaN where unknown
    load: np.ndarray  # share of the effort limit that braking all joints takes; NaN where unknown
    reaction: np.ndarray  # share of it that the other joints at full torque can put on this one; NaN where unknown
    weak: Mapping[str, str]  # joints with a weaker promise, and why


def certify(robot: Robot, dynamics: Dynamics | None = None, seed: int = 0) -> Certificate:
    """Sample the robot's states and find what it can brake.

    Without MuJoCo or without figures for it no joint is certified, and each says why.

    Args:
        robot: the robot; its base counts as held fast.
        dynamics: instead of MuJoCo's.
        seed: of the samples.
    """
    if dynamics is None:
        try:
            dynamics = FixedBaseDynamics(robot)
        except (DependencyError, DocumentError) as error:
            return uncertified(robot, f'no model of the robot: {error}')
    limits = robot.limits
    masses, biases, effective, weights, still = [], [], [], [], np.zeros(len(robot.joints))
    for joint_pos, joint_vel in _viable_states(robot, np.random.default_rng(seed)):
        mass, bias = dynamics(joint_pos, joint_vel)
        masses.append(mass.copy())
        biases.append(bias.copy())
        effective.append(1.0 / np.diagonal(np.linalg.inv(mass)))
        weights.append(np.abs(dynamics(joint_pos, still)[1]))
    mass, bias = np.abs(masses), np.abs(biases)
    brake, load = _brake(mass, bias, robot.safety.brake_acceleration, limits.effort)
    weak = {
        robot.joints[i]: f'braking takes {load[i] * RESERVE:.2f} of its motor even at {LEAST:.0%} of brake_acceleration'
        for i in np.flatnonzero(load > 1 / RESERVE)
    }  # fmt: skip
    reaction = _reaction(mass, bias, limits.effort)
    high = HIGH_FACTOR * np.diagonal(mass, axis1=1, axis2=2).max(axis=0)
    return Certificate(brake, np.min(effective, axis=0), high, np.max(weights, axis=0), load, reaction, weak)


def uncertified(robot: Robot, why: str) -> Certificate:
    """Return what is known without a model: the brake that the file claims, and no inertia."""
    unknown = np.full(len(robot.joints), np.nan)
    return Certificate(robot.safety.brake_acceleration, *(unknown,) * 5, dict.fromkeys(robot.joints, why))


def _viable_states(robot: Robot, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield positions and velocities that the barrier lets the robot come to: `v^2 <= 2 a d` towards either limit."""
    limits, twice = robot.limits, 2 * robot.safety.brake_acceleration
    for _ in range(SAMPLES):
        joint_pos = rng.uniform(np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi))  # wheels have no limits
        up = np.minimum(limits.velocity, np.sqrt(twice * (limits.upper - joint_pos)))
        down = np.minimum(limits.velocity, np.sqrt(twice * (joint_pos - limits.lower)))
        yield joint_pos, rng.uniform(-down, up)


def _brake(mass: np.ndarray, bias: np.ndarray, wanted: np.ndarray, effort: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the brake (n,) rad/s^2 and the share of the effort it takes (n,), from |M| (k, n, n) and |h| (k, n)."""
    brake = wanted.copy()
    while True:
        load = np.quantile(mass @ brake + bias, QUANTILE, axis=0) / effort
        shrink = (load > 1 / RESERVE) & (brake > LEAST * wanted)
        if not shrink.any():
            return brake, load
        brake[shrink] = np.maximum(brake[shrink] * SHRINK, LEAST * wanted[shrink])


def _reaction(mass: np.ndarray, bias: np.ndarray, effort: np.ndarray) -> np.ndarray:
    """Return what each joint needs to stay still while the others move at full torque, (n,) of its effort."""
    own = np.diagonal(mass, axis1=1, axis2=2)
    felt = (mass * (effort / own)[:, None, :]).sum(axis=2) - effort + bias
    return np.quantile(felt, 0.99, axis=0) / effort


def gain_faults(robot: Robot, gains: Gains, certificate: Certificate, where: str) -> list[str]:
    """Return which gains the control rate cannot hold: a sampled damper needs kd dt / J < 1, a spring omega dt < 1.

    Args:
        robot: gives names and rate.
        gains: (n,) of a PD law that runs at the robot's rate.
        certificate: gives the smallest inertia J of each joint.
        where: the gains come from, for the message.
    """
    dt, inertia, faults = 1.0 / robot.sensors.rate_hz, certificate.inertia_low, []
    damping, frequency = gains.damping * dt / inertia, np.sqrt(gains.stiffness / inertia) * dt
    for i, name in enumerate(robot.joints):
        if damping[i] >= STABLE_DAMPING:
            most = STABLE_DAMPING * inertia[i] / dt
            faults.append(
                f'{where}.damping: {name} at {gains.damping[i]:g} N m s/rad cannot be held at {robot.sensors.rate_hz:g} Hz '
                f'with an inertia of {inertia[i]:.3g} kg m^2; below {most:.2g}, or a higher rate'
            )
        if frequency[i] >= STABLE_FREQUENCY:
            most = inertia[i] * (STABLE_FREQUENCY / dt) ** 2
            faults.append(
                f'{where}.stiffness: {name} at {gains.stiffness[i]:g} N m/rad cannot be held at {robot.sensors.rate_hz:g} Hz '
                f'with an inertia of {inertia[i]:.3g} kg m^2; below {most:.2g}, or a higher rate'
            )
    return faults
