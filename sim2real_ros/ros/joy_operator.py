# SPDX-License-Identifier: Apache-2.0
"""`joy_operator`: a joystick's buttons call the services of safety_node, and its messages are the operator's heartbeat.

Velocities are the business of `teleop_twist_joy`, whose enable button is the dead-man. Here the same button must be held to
stand up, to follow the policy and to reset; damping and the emergency stop need nothing held.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from sim2real_ros.errors import ParameterError
from sim2real_ros.ros import qos
from sim2real_ros.ros.main import run_node
from sim2real_ros.ros.parameters import declare

# service: (button of a common gamepad under joy_node, its name, whether the dead-man must be held)
BUTTONS = {
    'pose': (0, 'A', True),
    'damp': (1, 'B', False),
    'activate': (3, 'Y', True),
    'estop': (6, 'back', False),
    'reset': (7, 'start', True),
}
DEAD_MAN = 5  # right shoulder
HEARTBEAT_S = 0.1
LINK_S = 0.3  # a joystick that says nothing for longer is out of reach; joy_node repeats itself with autorepeat_rate


class JoyOperator(Node):
    """Serves one joystick."""

    def __init__(self) -> None:
        super().__init__('joy_operator')
        self.exit_code: int | None = None
        self._dead_man = declare(self, 'dead_man', DEAD_MAN, "Button to hold; the same as teleop_twist_joy's enable_button.")
        self._buttons = {
            service: declare(self, f'button_{service}', button, f'Button that calls ~/{service} of safety_node ({name}).')
            for service, (button, name, _) in BUTTONS.items()
        }
        self._refuse_doubles()
        self._before: list[int] = []
        self._heard_ns: int | None = None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._requests = {name: self.create_client(Trigger, f'safety_node/{name}') for name in BUTTONS}
        self._heartbeat = self.create_publisher(Empty, 'operator/heartbeat', qos.COMMAND)
        self.create_subscription(Joy, 'joy', self._on_joy, qos.SENSOR_IN)
        self.create_timer(HEARTBEAT_S, self._beat, clock=self._steady)

    def begin(self) -> None:
        """Say which button does what."""
        told = ', '.join(f'{button}: {service}' for service, button in self._buttons.items())
        self.get_logger().info(f'buttons {told}; hold {self._dead_man} for those that move the robot')

    def close(self) -> None:
        """Nothing to leave behind: the heartbeat ends with the process."""

    def _refuse_doubles(self) -> None:
        used = [button for button in (*self._buttons.values(), self._dead_man) if button >= 0]  # a pad has none below 0
        twice = sorted({button for button in used if used.count(button) > 1})
        if twice:
            raise ParameterError(f'button {", ".join(map(str, twice))} is used for more than one thing')

    def _on_joy(self, message: Joy) -> None:
        self._heard_ns = self._steady.now().nanoseconds
        now, before = list(message.buttons), self._before
        self._before = now
        if len(before) != len(now):
            return  # the first message: a button that is held since before the start counts as not pressed
        for service, button in self._buttons.items():
            if _down(now, button) and not _down(before, button):
                self._pressed(service, _down(now, self._dead_man))

    def _pressed(self, service: str, held: bool) -> None:
        if BUTTONS[service][2] and not held:
            self.get_logger().warning(f'{service}: hold button {self._dead_man} with it')
            return
        client = self._requests[service]
        if not client.service_is_ready():
            self.get_logger().error(f'{service}: safety_node is not there')
            return
        client.call_async(Trigger.Request()).add_done_callback(partial(self._on_answer, service))

    def _on_answer(self, service: str, future: Any) -> None:
        if future.exception() is not None:
            self.get_logger().error(f'{service}: {future.exception()}')
        elif future.result().success:
            self.get_logger().info(f'{service}: {future.result().message}')
        else:
            self.get_logger().warning(f'{service} refused: {future.result().message}')

    def _beat(self) -> None:
        """Send a heartbeat while the joystick is heard."""
        if self._heard_ns is not None and self._steady.now().nanoseconds - self._heard_ns < LINK_S * 1e9:
            self._heartbeat.publish(Empty())


def _down(buttons: list[int], button: int) -> bool:
    return 0 <= button < len(buttons) and bool(buttons[button])


def main() -> int:
    """Run the node."""
    return run_node(JoyOperator)


if __name__ == '__main__':
    raise SystemExit(main())
