# SPDX-License-Identifier: Apache-2.0
"""`Shadow`: a policy that sees all and commands nothing, to be compared with the one that is followed."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from sim2real_ros.policy.pilot import Pilot
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.conversions import targets_message, time_message
from sim2real_ros.ros.raw import array_message
from sim2real_ros.signals import JointTargets


class Shadow:
    """Publishes what a second policy would do.

    Attributes:
        pilot: the second policy, None without one.
    """

    def __init__(self, node: Node) -> None:
        self._targets_out = node.create_publisher(JointState, 'policy/shadow/targets', qos.COMMAND)
        self._difference_out = node.create_publisher(Float64MultiArray, 'policy/shadow/difference', qos.COMMAND)
        self._followed: dict[str, float] = {}
        self.pilot: Pilot | None = None

    @property
    def name(self) -> str:
        """Name and id of the policy, '' without one."""
        return self.pilot.name if self.pilot is not None else ''

    def choose(self, robot: Robot, policy: str) -> None:
        """Load the policy that a user names, or none for ''; raises what `Pilot.of` raises."""
        self.take(Pilot.of(robot, policy) if policy else None)

    def take(self, pilot: Pilot | None) -> None:
        """Run a loaded policy from now on."""
        self.pilot = pilot

    def followed(self, targets: JointTargets, joints: tuple[str, ...]) -> None:
        """Take note of the position targets that are followed, (n,) rad in the order of `joints`."""
        if self.pilot is not None:
            self._followed = dict(zip(joints, targets.position.tolist(), strict=True))

    def compare(self, targets: JointTargets | None, stamp_ns: int) -> None:
        """Publish targets of the shadow, and how far they are from those that are followed, (n,) rad in its own order.

        A joint that the followed policy does not drive has the difference NaN.
        """
        if targets is None or self.pilot is None:
            return
        contract = self.pilot.contract
        self._targets_out.publish(targets_message(targets, contract.joints, contract.id, time_message(stamp_ns)))
        other = np.array([self._followed.get(joint, np.nan) for joint in contract.joints])
        self._difference_out.publish(array_message(f'{contract.id}:{stamp_ns}', targets.position - other))
