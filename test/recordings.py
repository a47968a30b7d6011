# SPDX-License-Identifier: Apache-2.0
"""Makers of recordings: a Go2 whose joints swing, and what our nodes would have said beside it, as a rosbag2."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rosbags', reason='rosbags is not installed (extra `record`)')

from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from sim2real_ros.contract import load_contract
from sim2real_ros.labels import Origin, TickLabel
from sim2real_ros.observation import ObservationBuilder
from sim2real_ros.robot import load_robot

TYPES = get_typestore(Stores.ROS2_JAZZY)
ROBOT, CONTRACT = load_robot('go2'), load_contract('go2_velocity')
EPOCH_NS = 1_700_000_000_000_000_000  # when the recording began, by the recorder's clock
TRIP_NS = 1_300_000  # from a joint state to the command that answers it
POSE_S, ACTIVE_S, REST_S = 0.5, 1.0, 3.5  # begin of pose, of active, of damping, s after the first state
STIFFNESS, DAMPING = 25.0, 0.5  # of an impedance


def message(kind: str, **fields: Any) -> tuple[str, Any]:
    """Return type and message, as `message('std_msgs/msg/String', data='x')`."""
    return kind, TYPES.types[kind](**fields)


def header(stamp_ns: int, frame: str = '') -> Any:
    time = TYPES.types['builtin_interfaces/msg/Time'](sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return TYPES.types['std_msgs/msg/Header'](stamp=time, frame_id=frame)


def vector(kind: str, *numbers: float) -> Any:
    return TYPES.types[f'geometry_msgs/msg/{kind}'](*map(float, numbers))


def numbers(label: str, data: np.ndarray) -> tuple[str, Any]:
    dim = TYPES.types['std_msgs/msg/MultiArrayDimension'](label=label, size=len(data), stride=len(data))
    layout = TYPES.types['std_msgs/msg/MultiArrayLayout'](dim=[dim] if label else [], data_offset=0)
    return message('std_msgs/msg/Float64MultiArray', layout=layout, data=np.asarray(data, float))


def text(data: str) -> tuple[str, Any]:
    return message('std_msgs/msg/String', data=data)


@dataclass
class Swing:
    """A robot whose joints swing at 2 Hz, each in its own phase, with a slow drift so that no two periods are the same."""

    delay: float = 0.0  # s, by which the body answers later than commands and modes say
    scale: float = 1.0

    def phase(self, t: float) -> np.ndarray:
        return 4 * np.pi * (t - self.delay) + np.arange(12) + 0.3 * np.sin(0.7 * (t - self.delay))

    def position(self, t: float) -> np.ndarray:
        return self.scale * 0.3 * np.sin(self.phase(t))

    def velocity(self, t: float) -> np.ndarray:
        return self.scale * 0.3 * (4 * np.pi + 0.21 * np.cos(0.7 * (t - self.delay))) * np.cos(self.phase(t))

    def torque(self, t: float) -> np.ndarray:
        return 2.0 * np.cos(self.phase(t) + 0.4)

    def forward(self, t: float) -> float:
        return 0.5 + 0.05 * float(np.sin(self.phase(t)[0]))


@dataclass
class Recording:
    """A recording to be written; the fields say what is special about it."""

    body: Swing = field(default_factory=Swing)
    clock: float = 10.0  # s, stamp of the first state
    rate_hz: float = 200.0
    namespace: str = ''
    command: tuple[float, float, float] = (0.5, 0.0, 0.0)
    later: tuple[float, tuple[float, float, float]] | None = None  # another command from s after the first state on
    without: tuple[str, ...] = ()  # topics that were not recorded
    named: dict[str, str] = field(default_factory=dict)  # other names of topics
    labelled: bool = True
    impedance: bool = False
    lost: tuple[int, ...] = ()  # states that were not recorded
    repeats: int = 0  # of the last state, as a paused simulator does
    resets: bool = False  # begins again at the first stamp, for the first 0.5 s
    contract: Any = CONTRACT
    joints: tuple[str, ...] = tuple(sorted(ROBOT.joints))  # on the wire, in this order

    @property
    def steps(self) -> list[int]:
        """Steps of the states, in the order in which they were recorded."""
        whole = list(range(round(4.0 * self.rate_hz)))
        again = list(range(round(0.5 * self.rate_hz))) if self.resets else []
        return [step for step in whole if step not in self.lost] + [whole[-1]] * self.repeats + again

    def write(self, folder: Path, *, storage: str = 'mcap', compression: str = 'none', version: int = 8) -> Path:
        """Write it and return the folder."""
        writer = Writer(folder, version=version, storage_plugin=StoragePlugin[storage.upper()])
        writer.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
        connections: dict[tuple[str, str], Any] = {}
        with writer:
            for arrival, topic, (kind, content) in self.messages():
                if topic in self.without:
                    continue
                name = f'/{self.namespace}/{self.named.get(topic, topic)}'.replace('//', '/')
                if (name, kind) not in connections:
                    connections[name, kind] = writer.add_connection(name, kind, typestore=TYPES)
                writer.write(connections[name, kind], arrival, TYPES.serialize_cdr(content, kind))
        return folder

    def messages(self):
        """Yield arrival in ns, relative topic, and what `message` returns."""
        period = round(self.rate_hz / 50)
        width = sum(ObservationBuilder(CONTRACT).width(name) for name in CONTRACT.observations)
        if self.contract is not None:
            yield EPOCH_NS - 10**9, 'policy/contract', text(self.contract.to_json())
        for place, step in enumerate(self.steps):
            t = step / self.rate_hz
            stamp, arrival = round((self.clock + t) * 1e9), EPOCH_NS + round(place * 1e9 / self.rate_hz)
            command = self.later[1] if self.later is not None and t >= self.later[0] else self.command
            mode = 'damping' if t < POSE_S or t >= REST_S else 'pose' if t < ACTIVE_S else 'active'
            yield from self.sensors(t, stamp, arrival)
            if step % period == 0:
                twist = message(
                    'geometry_msgs/msg/Twist',
                    linear=vector('Vector3', *command[:2], 0),
                    angular=vector('Vector3', 0, 0, command[2]),
                )
                yield arrival - 100_000, 'cmd_vel', twist
                yield from self.policy(t, stamp, arrival, command, first=t < ACTIVE_S + 0.5 / 50, width=width)
            origin = Origin('safety_node', stamp, mode).label if self.labelled else ''
            yield arrival + TRIP_NS, *self.sent(t, origin)
        for begin, mode in ((0.0, 'damping'), (POSE_S, 'pose'), (ACTIVE_S, 'active'), (REST_S, 'damping')):
            yield EPOCH_NS + round(begin * 1e9), 'safety/mode', text(mode)

    def sensors(self, t: float, stamp: int, arrival: int):
        order = [ROBOT.joints.index(joint) for joint in self.joints]
        q, qd, tau = (f(t)[order] for f in (self.body.position, self.body.velocity, self.body.torque))
        yield (
            arrival,
            'joint_states',
            message(
                'sensor_msgs/msg/JointState', header=header(stamp), name=list(self.joints), position=q, velocity=qd, effort=tau
            ),
        )
        none = np.zeros(9)
        imu = {
            'orientation': vector('Quaternion', 0, 0, np.sin(t / 2), np.cos(t / 2)),
            'angular_velocity': vector('Vector3', 0, 0, 1),
        }
        imu |= {'linear_acceleration': vector('Vector3', 0, 0, 9.81), 'orientation_covariance': none}
        imu |= {'angular_velocity_covariance': none, 'linear_acceleration_covariance': none}
        yield arrival - 50_000, 'imu/data', message('sensor_msgs/msg/Imu', header=header(stamp, 'imu_link'), **imu)
        kinds = {
            name: TYPES.types[f'geometry_msgs/msg/{name}']
            for name in ('Pose', 'PoseWithCovariance', 'Twist', 'TwistWithCovariance')
        }
        pose = kinds['Pose'](position=vector('Point', t, 0, 0.3), orientation=vector('Quaternion', 0, 0, 0, 1))
        twist = kinds['Twist'](linear=vector('Vector3', self.body.forward(t), 0.1, 0), angular=vector('Vector3', 0, 0, 1))
        odom = {
            'pose': kinds['PoseWithCovariance'](pose=pose, covariance=np.zeros(36)),
            'twist': kinds['TwistWithCovariance'](twist=twist, covariance=np.zeros(36)),
        }
        yield (
            arrival,
            'odom',
            message('nav_msgs/msg/Odometry', header=header(stamp, 'odom'), child_frame_id='base_link', **odom),
        )

    def policy(self, t: float, stamp: int, arrival: int, command: tuple[float, ...], *, first: bool, width: int):
        fields = {'name': list(CONTRACT.joints), 'position': np.full(12, t), 'velocity': np.zeros(12), 'effort': np.zeros(12)}
        own = self.contract.id if self.contract is not None else 'unknown'
        yield arrival + 500_000, 'policy/targets', message('sensor_msgs/msg/JointState', header=header(stamp, own), **fields)
        seen = np.concatenate((np.full(width, t), np.full(12, -t), command))
        yield arrival + 400_000, 'policy/trace', numbers(TickLabel(stamp, width, 12, first).label, seen)

    def sent(self, t: float, label: str) -> tuple[str, tuple[str, Any]]:
        torque = self.body.torque(t)
        if not self.impedance:
            return 'effort_controller/commands', numbers(label, torque)
        ones = np.ones(12)  # a drive that begins with the torque: its targets are the measured state
        parts = (self.body.position(t), self.body.velocity(t), STIFFNESS * ones, DAMPING * ones, torque)
        return 'impedance_controller/commands', numbers(label, np.append(np.concatenate(parts), 0.01))
