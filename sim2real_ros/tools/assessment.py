# SPDX-License-Identifier: Apache-2.0
"""A robot as the safety node judges it at its start: certificate, gains, barrier, and the promise for every joint."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sim2real_ros.errors import DependencyError, DocumentError
from sim2real_ros.robot import Robot
from sim2real_ros.safety.barrier import CoupledBarrier, PerJointBarrier
from sim2real_ros.safety.certificate import Certificate, certify, gain_faults
from sim2real_ros.safety.dynamics import Dynamics, available, coupling
from sim2real_ros.signals import Gains

HELD, TESTED, NONE = 'held', 'tested only', 'none'


@dataclass(frozen=True, slots=True)
class JointFigures:
    """One joint; None where no model of the robot says."""

    name: str
    soft_range_rad: tuple[float, float]  # beyond it the barrier drives the joint back
    velocity_rad_s: float
    brake_asked: float  # rad/s^2
    brake_certified: float  # rad/s^2; what the barrier counts on, certified or not
    certified: bool
    load: float | None  # of the effort limit, for braking all joints at once
    reaction: float | None  # of the effort limit, what the other joints can do to this one
    inertia_low: float | None  # kg m^2
    inertia_high: float | None  # kg m^2
    pose_damping: float | None  # kd dt / J of pose_move
    pose_frequency: float | None  # sqrt(kp / J) dt of pose_move
    damping: float | None  # kd dt / J of the mode damping
    promise_per_joint: str
    promise_coupled: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """What `assess` found.

    Attributes:
        barrier: `coupled`, `per joint`, or `none` where the node refuses to start.
        reason: for that barrier.
        weak: joints without a promise, by the reason.
        faults: why the safety node refuses the robot, one sentence each.
    """

    robot: Robot
    joints: tuple[JointFigures, ...]
    barrier: str
    reason: str
    weak: dict[str, list[str]]
    faults: list[str]

    @property
    def gains_unknown(self) -> bool:
        """Whether no inertia is known to hold the gains against."""
        return all(joint.inertia_low is None for joint in self.joints)

    def document(self) -> dict[str, Any]:
        """Return everything for a JSON file."""
        robot = self.robot
        return {
            'robot': robot.name, 'file': str(robot.path), 'accepted': not self.faults, 'certified': not self.weak,
            'barrier': self.barrier, 'barrier_reason': self.reason, 'rate_hz': robot.sensors.rate_hz,
            'command_delay_s': robot.safety.command_delay_s, 'faults': self.faults, 'weak': self.weak,
            'joints': [asdict(joint) for joint in self.joints],
        }  # fmt: skip


def assess(robot: Robot) -> Assessment:
    """Certify a robot and judge its gains and its barrier as the safety node does."""
    certificate = certify(robot)
    hold, damp = Gains(robot.pose_move.stiffness, robot.pose_move.damping), Gains(0 * robot.damping, robot.damping)
    faults = gain_faults(robot, hold, certificate, 'pose_move')
    faults += [fault.removeprefix('.') for fault in gain_faults(robot, damp, certificate, '')]
    barrier, reason, refusals, dynamics = _barrier(robot)
    weak: dict[str, list[str]] = {}
    for name, why in certificate.weak.items():
        weak.setdefault(why, []).append(name)
    used = PerJointBarrier(robot, certificate) if dynamics is None else CoupledBarrier(robot, certificate, dynamics)
    joints = tuple(_figures(robot, certificate, float(used.margin[i]), i) for i in range(len(robot.joints)))
    return Assessment(robot, joints, barrier, reason, weak, faults + refusals)


def _barrier(robot: Robot) -> tuple[str, str, list[str], Dynamics | None]:
    """Return which barrier the safety node uses here, why, what it refuses, and the dynamics of a coupled one."""
    wanted = robot.safety.barrier
    try:
        dynamics = coupling(robot)
    except DocumentError as error:
        return 'none', 'the robot is refused', error.faults, None
    except DependencyError as error:
        return 'none', 'the robot is refused', [f'safety.barrier: {wanted} is asked for, but {error}'], None
    if dynamics is not None:
        return 'coupled', 'the base is fixed and MuJoCo gives the mass matrix', [], dynamics
    if wanted == 'per_joint':
        reason = 'the robot file says safety.barrier: per_joint'
    elif robot.floating:
        reason = 'the base floats, and the coupled one needs the mass matrix of a fixed base'
    elif not available():
        reason = 'MuJoCo is not installed; with it the coupled one would be used: pip install "sim2real_ros[sim]"'
    else:
        reason = 'the robot file has no section `simulation`, which the mass matrix needs'
    return 'per joint', reason, [], None


def _figures(robot: Robot, certificate: Certificate, margin: float, i: int) -> JointFigures:
    limits, dt = robot.limits, 1.0 / robot.sensors.rate_hz
    inertia, hold = float(certificate.inertia_low[i]), robot.pose_move
    certified = robot.joints[i] not in certificate.weak
    reaction = float(certificate.reaction[i])
    return JointFigures(
        name=robot.joints[i],
        soft_range_rad=(float(limits.lower[i]) + margin, float(limits.upper[i]) - margin),
        velocity_rad_s=float(limits.velocity[i]),
        brake_asked=float(robot.safety.brake_acceleration[i]),
        brake_certified=float(certificate.brake[i]),
        certified=certified,
        load=_known(certificate.load[i]),
        reaction=_known(reaction),
        inertia_low=_known(inertia),
        inertia_high=_known(certificate.inertia_high[i]),
        pose_damping=_known(hold.damping[i] * dt / inertia),
        pose_frequency=_known(math.sqrt(hold.stiffness[i] / inertia) * dt),
        damping=_known(robot.damping[i] * dt / inertia),
        promise_per_joint=TESTED if certified and reaction <= 1 else NONE,
        promise_coupled=HELD if certified and not robot.floating else NONE,
    )


def _known(value: float | np.floating[Any]) -> float | None:
    return float(value) if math.isfinite(value) else None
