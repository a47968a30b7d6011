# SPDX-License-Identifier: Apache-2.0
"""`PassportControl`: no policy goes on a robot without a passport that fits. In simulation it is looked at, not asked for.

What it found is on `policy/passport`, JSON {contract: id, backend, required, granted, text, tolerances}.
"""

from __future__ import annotations

import json
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import ParameterError, PassportError
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.validation.admission import Admission, examine

BACKENDS = ('hardware', 'simulated')


class PassportControl:
    """Looks at the passport of each policy that is loaded.

    Attributes:
        required: whether a policy without a passport that fits is refused.
        text: state of the passport of the policy at the controls, for people.
    """

    def __init__(self, node: Node, backend: str, require: bool) -> None:
        """Prepare.

        Args:
            node: the owner.
            backend: what the motors are: `hardware` or `simulated`.
            require: whether hardware asks for a passport.

        Raises:
            ParameterError: there is no such backend.
        """
        if backend not in BACKENDS:
            raise ParameterError(f'parameter backend: "{backend}" given, {" or ".join(BACKENDS)} possible')
        self._backend, self.required = backend, require and backend == 'hardware'
        self._seen: dict[str, Admission] = {}  # by contract id
        self._out = node.create_publisher(String, 'policy/passport', qos.LATCHED)
        self.text = 'none was looked at'
        if backend == 'hardware' and not require:
            node.get_logger().warning('require_passport is false: policies that were never validated may move this robot')

    def look(self, contract: Contract, robot: Robot) -> Admission:
        """Look at a policy's passport, as it is on the disk now."""
        self._seen[contract.id] = admission = examine(contract, robot)
        return admission

    def admit(self, contract: Contract, robot: Robot) -> None:
        """Look at a policy's passport, and refuse the policy where hardware asks for one.

        Raises:
            PassportError: there is none, or it does not fit; the message names each field.
        """
        admission = self.look(contract, robot)
        if self.required and not admission.granted:
            raise PassportError(
                f'{contract.file.name} may not go on hardware: {"; ".join(admission.faults)} '
                '(require_passport:=false lets it, at your own risk; backend:=simulated is for simulators)'
            )

    def announce(self, contract: Contract) -> None:
        """Tell the state of the passport of the policy that is at the controls now, one that was looked at before."""
        admission = self._seen[contract.id]
        passport, self.text = admission.passport, admission.text
        told: dict[str, Any] = {
            'contract': contract.id, 'backend': self._backend, 'required': self.required, 'granted': admission.granted,
            'text': admission.text, 'tolerances': passport.tolerances if passport and admission.granted else {},
        }  # fmt: skip
        self._out.publish(String(data=json.dumps(told)))
