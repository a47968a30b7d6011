# SPDX-License-Identifier: Apache-2.0
"""The ROS layer: the only place that imports rclpy and messages. Nodes hold no mathematics."""
