# SPDX-License-Identifier: Apache-2.0
"""Promises of the messages: every field that a reader may use carries the number that it should."""

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64MultiArray

from sim2real_ros.joints import JointMap
from sim2real_ros.robot import load_robot
from sim2real_ros.ros.conversions import (
    ImpedanceWriter,
    command_origin,
    impedance_from,
    odometry_message,
    policy_trace_from,
    policy_trace_message,
)
from sim2real_ros.signals import Gains, Impedance, JointTargets, SafeImpedance


def test_odometry_carries_the_pose_in_odom_and_both_velocities_in_the_base_frame():
    """REP-105: the pose belongs to the frame of the header, the twist to the child frame."""
    position, quat = np.array([1.0, 2, 3]), np.array([0.0, 0, 0.6, 0.8])
    message = odometry_message(position, quat, np.array([4.0, 5, 6]), np.array([7.0, 8, 9]), Time(sec=1))
    assert (message.header.frame_id, message.child_frame_id, message.header.stamp.sec) == ('odom', 'base_link', 1)
    p, q = message.pose.pose.position, message.pose.pose.orientation
    assert (p.x, p.y, p.z, q.x, q.y, q.z, q.w) == (1, 2, 3, 0, 0, 0.6, 0.8)
    v, w = message.twist.twist.linear, message.twist.twist.angular
    assert (v.x, v.y, v.z, w.x, w.y, w.z) == (4, 5, 6, 7, 8, 9)


def test_an_impedance_survives_the_way_to_the_driver_in_another_joint_order():
    """Every row lands at its joint; the expiry comes along."""
    robot = load_robot('go2')
    n, rng = len(robot.joints), np.random.default_rng(0)
    position, velocity, effort, stiffness, damping = rng.normal(size=(5, n))
    asked = Impedance(JointTargets(1.0, position, velocity, effort), Gains(stiffness, damping))
    order = tuple(sorted(robot.joints, reverse=True))
    data = ImpedanceWriter(robot, order, 'safety_node').write(SafeImpedance(1.0, asked, 0.01), 5, 'active')
    message = deserialize_message(data, Float64MultiArray)
    back, expires = impedance_from(np.array(message.data), JointMap(order, robot.joints))
    assert (expires, command_origin(message).stamp_ns, command_origin(message).mode) == (0.01, 5, 'active')
    np.testing.assert_array_equal(back.targets.position, position)
    np.testing.assert_array_equal(back.targets.velocity, velocity)
    np.testing.assert_array_equal(back.targets.effort, effort)
    np.testing.assert_array_equal(back.gains.stiffness, stiffness)
    np.testing.assert_array_equal(back.gains.damping, damping)


def test_what_a_policy_saw_and_did_survives_the_way_to_the_recorder():
    observation, action = np.arange(5, dtype=np.float32), np.arange(3.0)
    back = policy_trace_from(policy_trace_message(7, observation, action, np.ones(3), True))
    np.testing.assert_array_equal(back[0], observation)
    np.testing.assert_array_equal(back[1], action)
