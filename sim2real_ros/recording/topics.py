# SPDX-License-Identifier: Apache-2.0
"""What a recording holds: every topic that a run can be understood, compared and replayed from."""

from __future__ import annotations

from dataclasses import dataclass

JOINT_STATE, STRING, NUMBERS = 'sensor_msgs/msg/JointState', 'std_msgs/msg/String', 'std_msgs/msg/Float64MultiArray'


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is recorded where somebody publishes it."""

    name: str  # relative: a namespace or a remapping moves it
    types: tuple[str, ...]  # that it may have
    latched: bool = False  # transient local: whoever comes late still learns it


TOPICS = (
    Topic('clock', ('rosgraph_msgs/msg/Clock',)),
    Topic('joint_states', (JOINT_STATE,)),
    Topic('imu/data', ('sensor_msgs/msg/Imu',)),
    Topic('odom', ('nav_msgs/msg/Odometry',)),
    Topic('foot_contacts', (NUMBERS,)),
    Topic('cmd_vel', ('geometry_msgs/msg/Twist', 'geometry_msgs/msg/TwistStamped')),
    Topic('goal_pose', ('geometry_msgs/msg/PoseStamped',)),
    Topic('policy/contract', (STRING,), latched=True),
    Topic('policy/passport', (STRING,), latched=True),
    Topic('policy/targets', (JOINT_STATE,)),
    Topic('policy/trace', (NUMBERS,)),
    Topic('policy/shadow/targets', (JOINT_STATE,)),
    Topic('safety/mode', (STRING,), latched=True),
    Topic('safety/preview', (JOINT_STATE,)),
    Topic('effort_controller/commands', (NUMBERS,)),
    Topic('impedance_controller/commands', (NUMBERS,)),
    Topic('diagnostics', ('diagnostic_msgs/msg/DiagnosticArray',)),
)
