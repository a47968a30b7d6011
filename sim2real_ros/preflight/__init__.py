# SPDX-License-Identifier: Apache-2.0
"""What must hold before a robot is armed: checks on what was seen of a running stack. Nothing here knows ROS."""
