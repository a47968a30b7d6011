# SPDX-License-Identifier: Apache-2.0
"""`Look`: watches a running stack for a few seconds from outside, and puts down what it saw for the checks.

It commands nothing. Topics are those that the safety node itself uses, whatever they were remapped to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rclpy
from rcl_interfaces.srv import GetParameters
from rclpy.exceptions import InvalidNamespaceException
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import parameter_value_to_python
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import ParameterError, Sim2RealError
from sim2real_ros.preflight.observed import Observed, Papers, Stream
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.arrivals import Arrivals, command_ages, joint_numbers
from sim2real_ros.ros.controller_order import ControllerOrder
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.rivals import controller_list, foreign_publishers, holders

DISCOVERY_S, ANSWER_S = 4.0, 5.0
OURS = ('safety_node', 'watchdog_node', 'policy_node')
KINDS = {'commands': Float64MultiArray, 'clock': Clock, 'imu': Imu, 'joint_states': JointState}
FLOATS, JOINTS, IMU = 'std_msgs/msg/Float64MultiArray', 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/Imu'
ASKED = ['sim_time', 'command_joints', 'robot', 'profile', 'output', 'read_only']


class Look:
    """A node of its own that looks at one stack; a context manager."""

    def __init__(self, namespace: str = '', controllers: Callable[[Any, Callable[..., bool]], Any] = controller_list) -> None:
        """Connect.

        Args:
            namespace: of the stack.
            controllers: asks for the controllers of ros2_control; returns None where nobody tells.
        """
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        try:
            self._node = rclpy.create_node('preflight_look', namespace=namespace, context=self._context)
        except InvalidNamespaceException as error:
            rclpy.try_shutdown(context=self._context)
            raise ParameterError(f'namespace "{namespace}": {str(error).splitlines()[0]}') from None
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._ask_controllers = controllers
        self._latched: dict[str, str] = {}
        for topic in ('policy/contract', 'policy/passport', 'safety/mode'):
            self._node.create_subscription(
                String, topic, lambda m, topic=topic: self._latched.update({topic: m.data}), qos.LATCHED
            )
        self.wait(lambda: all(self._has(name) for name in OURS), DISCOVERY_S)
        self.wait(lambda: False, 0.3)  # the rest of the graph
        self.parameters = self._parameters()

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Serve the node until a condition holds, at most for so long; returns whether it does."""
        deadline = time.monotonic() + timeout_s
        while not (held := condition()) and time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=0.02)
        return held

    def watch(self, robot: Robot, watched_s: float = 2.0) -> Observed:
        """Watch for a time and return what was seen."""
        topics = self._topics()
        order = self._order(robot, topics['commands'])  # first: while nobody answers, nothing shall be collected
        listed = self._ask_controllers(self._node, self.wait)
        loop = ControlLoop(self._node, 'preflight')
        try:
            # joint states last: a command that comes with a newer state answers the one before
            inbox = {name: Arrivals(loop, kind, topics[name]) for name, kind in KINDS.items()}
            loop.start()
            self.wait(lambda: False, watched_s)
        finally:
            loop.destroy()
        streams = {name: inbox[name].stream(tuple(_full(*end) for end in self._publishers(topics[name]))) for name in topics}
        return self._observed(robot, watched_s, streams, inbox, order, listed)

    # --- the graph

    def _has(self, name: str) -> bool:
        return (name, self._node.get_namespace()) in self._node.get_node_names_and_namespaces()

    def _parameters(self) -> dict[str, Any]:
        """Return parameters of the safety node; none where it does not answer."""
        client = self._node.create_client(GetParameters, 'safety_node/get_parameters')
        if not self.wait(client.service_is_ready, ANSWER_S if self._has('safety_node') else 0.0):
            return {}
        future = client.call_async(GetParameters.Request(names=ASKED))
        if not self.wait(future.done, ANSWER_S):
            return {}
        return {name: parameter_value_to_python(value) for name, value in zip(ASKED, future.result().values, strict=False)}

    def _topics(self) -> dict[str, str]:
        """Return the topics that the safety node uses, or would use where it does not run."""
        node, space = self._node, self._node.get_namespace()
        reads, writes = [], []
        if self._has('safety_node'):
            reads = node.get_subscriber_names_and_types_by_node('safety_node', space)
            writes = node.get_publisher_names_and_types_by_node('safety_node', space)
        own = node.resolve_topic_name('clock')
        return {
            'commands': _of_type(writes, FLOATS) or node.resolve_topic_name('effort_controller/commands'),
            'clock': own if node.count_publishers(own) else '/clock',
            'imu': _of_type(reads, IMU) or node.resolve_topic_name('imu/data'),
            'joint_states': _of_type(reads, JOINTS) or node.resolve_topic_name('joint_states'),
        }

    def _order(self, robot: Robot, command_topic: str) -> ControllerOrder | None:
        """Ask the controller for its order; None where drives take an impedance."""
        if self.parameters.get('output') == 'impedance':
            return None
        controller = command_topic.rsplit('/', 1)[0]
        there = controller in (_full(*node) for node in self._node.get_node_names_and_namespaces())
        told = [joint for joint in self.parameters.get('command_joints') or () if joint]
        order = ControllerOrder(self._node, controller, told or robot.joints, lambda _: None)

        def answered() -> bool:
            order.look()
            return order.answered

        self.wait(answered, ANSWER_S if there else 0.0)
        return order

    def _publishers(self, topic: str) -> list[tuple[str, str]]:
        return [(end.node_name, end.node_namespace) for end in self._node.get_publishers_info_by_topic(topic)]

    # --- what was seen

    def _observed(
        self, robot: Robot, watched_s: float, streams: dict[str, Stream], inbox: dict[str, Arrivals],
        order: ControllerOrder | None, listed: Any,
    ) -> Observed:  # fmt: skip
        contract, problem = None, ''
        try:
            if 'policy/contract' in self._latched:
                contract = Contract.from_json(self._latched['policy/contract'], 'policy/contract')
        except Sim2RealError as error:
            problem = ' '.join(str(error).split())
        names, positions, velocities = joint_numbers(inbox['joint_states'].last())
        imus = inbox['imu'].last()
        topic = streams['commands'].topic
        foreign = foreign_publishers(self._publishers(topic), ('safety_node', self._node.get_namespace()), topic)
        held = holders(listed, robot.joints, topic) if listed is not None else ''
        others = [
            name for name, types in self._node.get_topic_names_and_types() if IMU in types and name != streams['imu'].topic
        ]
        sim_time = self.parameters.get('sim_time')
        return Observed(
            robot=robot, seconds=watched_s, mode=self._latched.get('safety/mode', ''), sim_time=sim_time,
            read_only=bool(self.parameters.get('read_only')),
            nodes=tuple(_full(*node) for node in self._node.get_node_names_and_namespaces()),
            contract=contract, contract_problem=problem, passport=Papers.of(self._latched.get('policy/passport', '')),
            joint_states=streams['joint_states'], joint_names=names, joint_pos=positions, joint_vel=velocities,
            imu=streams['imu'], other_imus=tuple(name for name in others if self._node.count_publishers(name)),
            imu_quat_xyzw=np.array([[q.x, q.y, q.z, q.w] for q in (m.orientation for m in imus)]).reshape(-1, 4),
            imu_ang_vel=np.array([[w.x, w.y, w.z] for w in (m.angular_velocity for m in imus)]).reshape(-1, 3),
            imu_lin_acc=np.array([[a.x, a.y, a.z] for a in (m.linear_acceleration for m in imus)]).reshape(-1, 3),
            imu_oriented=not imus or imus[-1].orientation_covariance[0] != -1.0,
            clock=streams['clock'], now=time.time(), commands=streams['commands'],
            command_ages=command_ages(streams['commands'], streams['joint_states']),
            rivals='; '.join(text for text in (foreign, held) if text), controllers_known=listed is not None,
            order=order.problem if order is not None and order.answered else None,
        )  # fmt: skip


def _of_type(topics: Sequence[tuple[str, list[str]]], kind: str) -> str:
    """Return the topic of a type that the safety node has, targets of the policy excepted; '' where it has none."""
    return next((name for name, types in topics if kind in types and not name.endswith('/policy/targets')), '')


def _full(name: str, namespace: str) -> str:
    return f'{namespace.rstrip("/")}/{name}'
