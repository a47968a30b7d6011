# SPDX-License-Identifier: Apache-2.0
"""Promises of the messages: every field that a reader may use carries the number that it should."""

import numpy as np
from builtin_interfaces.msg import Time

from sim2real_ros.ros.conversions import odometry_message


def test_odometry_carries_the_pose_in_odom_and_both_velocities_in_the_base_frame():
    """REP-105: the pose belongs to the frame of the header, the twist to the child frame."""
    position, quat = np.array([1.0, 2, 3]), np.array([0.0, 0, 0.6, 0.8])
    message = odometry_message(position, quat, np.array([4.0, 5, 6]), np.array([7.0, 8, 9]), Time(sec=1))
    assert (message.header.frame_id, message.child_frame_id, message.header.stamp.sec) == ('odom', 'base_link', 1)
    p, q = message.pose.pose.position, message.pose.pose.orientation
    assert (p.x, p.y, p.z, q.x, q.y, q.z, q.w) == (1, 2, 3, 0, 0, 0.6, 0.8)
    v, w = message.twist.twist.linear, message.twist.twist.angular
    assert (v.x, v.y, v.z, w.x, w.y, w.z) == (4, 5, 6, 7, 8, 9)
