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
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from sim2real_ros.contract.contract import Contract
from sim2real_ros.errors import ParameterError, Sim2RealError
from sim2real_ros.preflight.observed import Observed, Stream
from sim2real_ros.robot import Robot
from sim2real_ros.ros import qos
from sim2real_ros.ros.controller_order import ControllerOrder
from sim2real_ros.ros.conversions import command_origin, seconds
from sim2real_ros.ros.loop import ControlLoop
from sim2real_ros.ros.raw import Sample
from sim2real_ros.ros.rivals import controller_list, foreign_publishers, holders

DISCOVERY_S, ANSWER_S = 4.0, 5.0
OURS = ('safety_node', 'watchdog_node', 'policy_node')
SAME_S = 1e-6  # stamps that close are the same
KEPT = 100  # messages of each topic whose numbers are read; the stamps of all are
ALL = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
FLOATS, JOINTS, IMU = 'std_msgs/msg/Float64MultiArray', 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/Imu'
ASKED = ['sim_time', 'command_joints', 'robot', 'profile', 'output']
Messages = list[tuple[float, bytes]]  # arrival in s on the steady clock, and the serialised message


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
        for topic in ('policy/contract', 'safety/mode'):
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
        inbox: dict[str, Messages] = {name: [] for name in topics}
        kinds = {'commands': Float64MultiArray, 'clock': Clock, 'imu': Imu, 'joint_states': JointState}
        loop = ControlLoop(self._node, 'preflight')
        for name, kind in kinds.items():  # joint states last: a command then counts before the state that comes with it
            loop.add(kind, topics[name], _into(inbox[name]), ALL, raw=True)
        loop.start()
        order = self._order(robot, topics['commands'])
        listed = self._ask_controllers(self._node, self.wait)
        self.wait(lambda: False, watched_s)
        loop.destroy()
        streams = {name: self._stream(topics[name], kinds[name], inbox[name]) for name in topics}
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

    # --- what arrived

    def _stream(self, topic: str, kind: type, messages: Messages) -> Stream:
        if kind is Float64MultiArray:
            origins = [command_origin(deserialize_message(data, kind)) for _, data in messages]
            stamps = [1e-9 * (origin.stamp_ns or 0) for origin in origins]
        elif kind is Clock:
            stamps = [seconds(deserialize_message(data, Clock).clock) for _, data in messages]
        else:
            stamps = [Sample(data).stamp for _, data in messages]
        publishers = tuple(_full(*end) for end in self._publishers(topic))
        return Stream(topic, publishers, np.array(stamps), np.array([arrival for arrival, _ in messages]))

    def _observed(
        self, robot: Robot, watched_s: float, streams: dict[str, Stream], inbox: dict[str, Messages],
        order: ControllerOrder | None, listed: Any,
    ) -> Observed:  # fmt: skip
        contract, problem = None, ''
        try:
            if 'policy/contract' in self._latched:
                contract = Contract.from_json(self._latched['policy/contract'], 'policy/contract')
        except Sim2RealError as error:
            problem = ' '.join(str(error).split())
        names, positions, velocities = _joint_numbers(
            [deserialize_message(d, JointState) for _, d in inbox['joint_states'][-KEPT:]]
        )
        imus = [deserialize_message(data, Imu) for _, data in inbox['imu'][-KEPT:]]
        topic = streams['commands'].topic
        foreign = foreign_publishers(self._publishers(topic), ('safety_node', self._node.get_namespace()), topic)
        held = holders(listed, robot.joints, topic) if listed is not None else ''
        others = [
            name for name, types in self._node.get_topic_names_and_types() if IMU in types and name != streams['imu'].topic
        ]
        sim_time = self.parameters.get('sim_time')
        return Observed(
            robot=robot, seconds=watched_s, mode=self._latched.get('safety/mode', ''), sim_time=sim_time,
            nodes=tuple(_full(*node) for node in self._node.get_node_names_and_namespaces()),
            contract=contract, contract_problem=problem,
            joint_states=streams['joint_states'], joint_names=names, joint_pos=positions, joint_vel=velocities,
            imu=streams['imu'], other_imus=tuple(name for name in others if self._node.count_publishers(name)),
            imu_quat_xyzw=np.array([[q.x, q.y, q.z, q.w] for q in (m.orientation for m in imus)]).reshape(-1, 4),
            imu_ang_vel=np.array([[w.x, w.y, w.z] for w in (m.angular_velocity for m in imus)]).reshape(-1, 3),
            imu_lin_acc=np.array([[a.x, a.y, a.z] for a in (m.linear_acceleration for m in imus)]).reshape(-1, 3),
            imu_oriented=not imus or imus[-1].orientation_covariance[0] != -1.0,
            clock=streams['clock'], now=time.time(), commands=streams['commands'],
            command_ages=_ages(streams['commands'], streams['joint_states']),
            rivals='; '.join(text for text in (foreign, held) if text), controllers_known=listed is not None,
            order=order.problem if order is not None and order.answered else None,
        )  # fmt: skip


def _into(box: Messages) -> Callable[[bytes], None]:
    return lambda data: box.append((time.monotonic(), data))


def _of_type(topics: Sequence[tuple[str, list[str]]], kind: str) -> str:
    """Return the topic of a type that the safety node has, targets of the policy excepted; '' where it has none."""
    return next((name for name, types in topics if kind in types and not name.endswith('/policy/targets')), '')


def _full(name: str, namespace: str) -> str:
    return f'{namespace.rstrip("/")}/{name}'


def _joint_numbers(messages: list[JointState]) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return names, positions and velocities; NaN where a message has not as many numbers as names."""
    if not messages:
        return (), np.zeros((0, 0)), np.zeros((0, 0))
    names = tuple(messages[-1].name)
    alike = [message for message in messages if tuple(message.name) == names]
    n = len(names)
    rows = [
        [list(values) if len(values) == n else [np.nan] * n for values in (message.position, message.velocity)]
        for message in alike
    ]
    numbers = np.array(rows).reshape(-1, 2, n)
    return names, numbers[:, 0], numbers[:, 1]


def _ages(commands: Stream, states: Stream) -> np.ndarray:
    """Return the time from the arrival of a state to that of the command which answers it, s of the robot's time."""
    if len(states.stamps) < 2 or states.standing:
        return np.zeros(0)
    order = np.argsort(states.stamps, kind='stable')
    stamps, arrivals = states.stamps[order], states.arrivals[order]
    place = np.clip(np.searchsorted(stamps, commands.stamps - SAME_S), 0, len(stamps) - 1)
    answered = np.abs(stamps[place] - commands.stamps) < SAME_S
    factor = (stamps[-1] - stamps[0]) / max(float(np.ptp(arrivals)), SAME_S)  # a simulation may be slow
    return factor * np.maximum(commands.arrivals[answered] - arrivals[place[answered]], 0.0)
