# SPDX-License-Identifier: Apache-2.0
"""The quality-of-service profiles, one per kind of topic, with the reason for each."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Only the newest sample counts, and a best-effort reader matches both kinds of writer.
SENSOR_IN = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
# As ros2_control's broadcasters do, so that recorders and reliable readers match as well.
SENSOR_OUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
# An old command is worse than none: deliver, but never queue.
COMMAND = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
# To watch a stream without having to acknowledge each message of it.
WATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
# Whoever comes late must still learn it: contract, mode.
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# As diagnostic_updater does.
DIAGNOSTICS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE)
# To record a stream: never acknowledged, so that a slow disk cannot hold up a writer; deep, because it is emptied now and then.
RECORDED = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
# To record what is said once.
RECORDED_LATCHED = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
