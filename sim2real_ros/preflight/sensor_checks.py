# SPDX-License-Identifier: Apache-2.0
"""Checks of joint states and IMU. Each returns its level and a sentence: what is so, and what to do where it should not be."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sim2real_ros.preflight.finding import Level, Verdict
from sim2real_ros.preflight.observed import Observed, Stream
from sim2real_ros.rotations import multiply_xyzw, tilt, world_to_base

GRAVITY, GRAVITY_OFF = 9.81, 0.2  # m/s^2; share that a still accelerometer may be off
STILL_RATE = 0.2  # rad/s, of the base
APART = 0.2  # rad between the down of the orientation and that of the accelerometer
LEVEL = 0.3  # rad, the most that the mode `pose` takes


def silent(stream: Stream, what: str, seconds: float) -> Verdict:
    """Return the verdict on a topic that carried nothing."""
    if not stream.publishers:
        return Level.REFUSED, f'nobody publishes {stream.topic}: start {what}, or remap its topic to this name'
    who = ', '.join(stream.publishers)
    return (
        Level.REFUSED,
        f'{who} publishes {stream.topic}, but nothing came in {seconds:g} s: is {what} active, or the simulation paused?',
    )


def joint_states(seen: Observed) -> Verdict:
    """Whether joint states come, from one source."""
    stream = seen.joint_states
    if not len(stream.stamps):
        return silent(stream, 'the joint_state_broadcaster', seen.seconds)
    if len(stream.publishers) > 1:
        return Level.REFUSED, f'{", ".join(stream.publishers)} all publish {stream.topic}: stop all but one'
    return Level.OK, f'{stream.topic} from {", ".join(stream.publishers) or "an unknown node"}'


def joints(seen: Observed) -> Verdict:
    """Whether every joint is there, once."""
    names, wanted = seen.joint_names, seen.robot.joints
    if not names:
        return Level.SKIPPED, 'no joint states'
    missing = [joint for joint in wanted if joint not in names]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if missing or twice:
        parts = [f'lacks {", ".join(missing)}'] if missing else []
        parts += [f'names {", ".join(twice)} more than once'] if twice else []
        text = f'{seen.joint_states.topic} {" and ".join(parts)}: compare <ros2_control> with the robot file'
        return Level.REFUSED, text
    order = 'the order of the robot' if names == wanted else 'an order of its own, matched by name'
    return Level.OK, f'all {len(wanted)} joints, in {order}'


def interfaces(seen: Observed) -> Verdict:
    """Whether every joint has a position and a velocity."""
    if not len(seen.joint_pos):
        return Level.SKIPPED, 'no joint states with positions and velocities'
    bad = [
        f'{name}/{kind}'
        for kind, values in (('position', seen.joint_pos), ('velocity', seen.joint_vel))
        for name, finite in zip(seen.joint_names, np.isfinite(values).all(axis=0), strict=True)
        if name in seen.robot.joints and not finite
    ]
    if bad:
        return (
            Level.REFUSED,
            f'{", ".join(bad)} is not finite: add the state interface to the <ros2_control> description, or mend its driver',
        )
    return Level.OK, 'position and velocity of every joint are finite'


def joint_range(seen: Observed) -> Verdict:
    """Whether the joints are where they can be."""
    limits, slack, wanted = seen.robot.limits, seen.robot.monitors.position_tolerance_rad, seen.robot.joints
    if not len(seen.joint_pos) or not set(wanted) <= set(seen.joint_names):
        return Level.SKIPPED, 'not all joints are known'
    last = seen.joint_pos[-1][[seen.joint_names.index(joint) for joint in wanted]]
    outside = [
        f'{joint} at {value:.2f} rad, range {low:g} to {high:g}'
        for joint, value, low, high in zip(wanted, last, limits.lower, limits.upper, strict=True)
        if value < low - slack or value > high + slack
    ]
    if outside:
        return Level.REFUSED, f'{"; ".join(outside)}: its zero or its sign is wrong, calibrate the encoder'
    return Level.OK, 'every joint is inside its range'


def joint_rate(seen: Observed) -> Verdict:
    """Whether joint states come at the rate that the robot file reckons with."""
    period, wanted, monitors = seen.joint_states.period, seen.robot.sensors.rate_hz, seen.robot.monitors
    if not np.isfinite(period):
        return Level.SKIPPED, 'no two joint states with different stamps'
    off = abs(1 / period / wanted - 1)
    text = f'joint states are {1e3 * period:g} ms apart, {1 / period:.0f} Hz'
    if off <= monitors.rate_warn:
        return Level.OK, text
    level = Level.REFUSED if off > monitors.rate_trip else Level.WARNING
    return (
        level,
        f'{text}; sensors.rate_hz of the robot file says {wanted:g}: mend that, or update_rate of the controller manager',
    )


def imu(seen: Observed) -> Verdict:
    """Whether an IMU speaks, has an orientation and keeps pace with the joint states."""
    if not seen.robot.floating:
        return Level.SKIPPED, 'a fixed base needs none'
    stream, timeout = seen.imu, seen.robot.sensors.imu_timeout_s
    if not len(stream.stamps):
        level, text = silent(stream, 'the imu_sensor_broadcaster (and, in Gazebo, the Imu system of the world)', seen.seconds)
        hint = f'; {", ".join(seen.other_imus)} carries an Imu: remap imu/data to it' if seen.other_imus else ''
        return level, text + hint
    if not seen.imu_oriented:
        return (
            Level.REFUSED,
            f'{stream.topic} carries no orientation (orientation_covariance[0] is -1): turn on its filter, or use another IMU',
        )
    if len(seen.joint_states.stamps) and not seen.joint_states.standing:
        late = float(seen.joint_states.stamps[-1] - stream.stamps[-1])
        allowed = max(timeout, 2 * stream.period) if np.isfinite(stream.period) else timeout
        if abs(late) > allowed:
            where = f'{1e3 * abs(late):.0f} ms {"behind" if late > 0 else "ahead of"} the joint states'
            text = f'{stream.topic} is {where}, allowed {1e3 * allowed:g}'
            return Level.REFUSED, f'{text}: use one clock for both, and raise the rate of the IMU'
    return Level.OK, f'{stream.topic}, {1 / stream.period:.0f} Hz' if np.isfinite(stream.period) else stream.topic


def gravity(seen: Observed) -> Verdict:
    """Whether a still IMU feels gravity upwards, where its orientation says that up is, and whether the robot is level."""
    if not seen.robot.floating or not len(seen.imu_quat_xyzw):
        return Level.SKIPPED, 'no IMU'
    quat, force = seen.imu_quat_xyzw[-1], seen.imu_lin_acc.mean(axis=0)
    if not np.isfinite([*quat, *force]).all() or abs(np.linalg.norm(quat) - 1) > 0.01:
        return (
            Level.REFUSED,
            f'{seen.imu.topic} gives no rotation, or numbers that are not finite: {np.round(quat, 3).tolist()}',
        )
    if np.linalg.norm(seen.imu_ang_vel.mean(axis=0)) > STILL_RATE:
        return Level.SKIPPED, 'the base turns; let the robot be still'
    size = float(np.linalg.norm(force))
    if abs(size - 1) < GRAVITY_OFF:
        return Level.REFUSED, f'linear_acceleration is {size:.2f}: it is in g, REP-145 wants m/s^2'
    if abs(size / GRAVITY - 1) > GRAVITY_OFF:
        return (
            Level.REFUSED,
            f'linear_acceleration of a still robot is {size:.2f} m/s^2, not 9.81: gravity was taken out, or its unit is wrong',
        )
    up = world_to_base(quat, np.array([0.0, 0.0, 1.0]))
    apart = float(np.arccos(np.clip(up @ force / size, -1, 1)))
    if apart > np.pi - APART:
        return Level.REFUSED, 'gravity has the wrong sign: at rest linear_acceleration must point up, +9.81 (REP-145)'
    if apart > APART:
        text = f'orientation and acceleration disagree by {apart:.2f} rad about where up is'
        return (
            Level.REFUSED,
            f'{text}: in Gazebo set <localization>ENU</localization> in the sensor, on a robot calibrate the IMU',
        )
    lean = float(tilt(multiply_xyzw(quat, seen.robot.imu_mounting_xyzw * (-1, -1, -1, 1))))
    if lean > LEVEL:
        text = f'the base leans by {lean:.2f} rad, the robot stands up from {LEVEL} at most'
        return Level.WARNING, f'{text}: put it down level, or check sensors.imu_frame'
    return Level.OK, f'up is where it should be, the base leans by {lean:.2f} rad'
