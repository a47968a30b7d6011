# SPDX-License-Identifier: Apache-2.0
"""Promises of the gate between two steps of a launch: it opens when the step has succeeded, else it says why not."""

import subprocess
import sys
import threading

import pytest

pytest.importorskip('rclpy', reason='ROS 2 for Python is not installed (extra `ros`)')

import rclpy  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from sim2real_ros.errors import RunError  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.ros import bringup_steps, qos  # noqa: E402
from sim2real_ros.ros.starting import Start  # noqa: E402


class World:
    """A graph of nodes that do what a test says, served by a thread."""

    def __init__(self):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.over.is_set():
            self.executor.spin_once(timeout_sec=0.02)

    def node(self, name, namespace=''):
        made = rclpy.create_node(name, namespace=namespace, context=self.context)
        self.executor.add_node(made)
        return made

    def start(self, backend='gazebo', timeout_s=0.6, **options):
        return Start(self.node('bringup_check'), load_robot('go2'), backend, 'effort_controller',
                     arm=options.get('arm', True), timeout_s=timeout_s)  # fmt: skip

    def publish(self, node, kind, topic, moving=True):
        """Publish at 100 Hz, with stamps that go on or stand still."""
        out, tick = node.create_publisher(kind, topic, qos.SENSOR_OUT), iter(range(1, 10**9))

        def send():
            message = kind()
            stamp = message.clock if kind is Clock else message.header.stamp
            stamp.nanosec = next(tick) * 1000 if moving else 1000
            out.publish(message)

        node.create_timer(0.01, send)

    def close(self):
        self.over.set()
        self.thread.join()
        rclpy.try_shutdown(context=self.context)


@pytest.fixture
def world():
    made = World()
    yield made
    made.close()


def reason(step, start):
    with pytest.raises(RunError) as error:
        bringup_steps.STEPS[step](start)
    return str(error.value)


def test_a_simulation_that_runs_passes(world):
    world.publish(world.node('ros_gz_bridge'), Clock, '/clock')
    assert bringup_steps.simulator(world.start(timeout_s=10)) == 'the simulation runs'


def test_without_a_bridge_nobody_publishes_the_clock(world):
    assert 'ros_gz_bridge did not start' in reason('simulator', world.start())


def test_a_bridge_without_gazebo_is_told_apart_from_no_bridge(world):
    world.node('ros_gz_bridge').create_publisher(Clock, '/clock', qos.SENSOR_OUT)
    assert '/ros_gz_bridge publishes no time on /clock: Gazebo did not start' in reason('simulator', world.start())


def test_a_paused_simulation_is_told_with_what_to_do(world):
    world.publish(world.node('ros_gz_bridge'), Clock, '/clock', moving=False)
    assert 'the simulation is paused; press play, or start Gazebo with -r' in reason('simulator', world.start(timeout_s=1.5))


def test_a_controller_manager_of_the_namespace_passes(world):
    manager = world.node('controller_manager')
    manager.create_service(Trigger, '~/list_controllers', lambda _, reply: reply)
    assert bringup_steps.controller_manager(world.start(timeout_s=10)) == 'the controller manager serves'


def test_gazebo_without_description_plugin_or_time_is_told_each_in_its_own_words(world):
    start = world.start()
    assert 'robot_state_publisher ended' in reason('controller_manager', start)
    world.node('robot_state_publisher').create_publisher(String, 'robot_description', qos.LATCHED)
    assert 'the robot was not spawned' in reason('controller_manager', start), 'nobody tells the time: no pause is claimed'
    bridge = world.node('ros_gz_bridge')
    world.publish(bridge, Clock, '/clock', moving=False)
    told = reason('controller_manager', world.start(timeout_s=1.5))
    assert 'Gazebo stands still while its plug-in waits for robot_description' in told
    world.publish(bridge, Clock, '/clock')
    assert 'its name is that of another generation (gazebo:=)' in reason('controller_manager', start)


def test_a_robot_without_a_driver_is_told_which_service_is_missing(world):
    told = reason('controller_manager', world.start('hardware'))
    assert 'there is no service /controller_manager/list_controllers' in told
    assert 'hardware:=mock' in told


def test_sensors_that_speak_pass(world):
    world.publish(world.node('joint_state_broadcaster'), JointState, 'joint_states')
    world.publish(world.node('imu_sensor_broadcaster'), Imu, 'imu/data')
    assert bringup_steps.sensors(world.start(timeout_s=10)) == 'the sensors speak'


def test_each_sensor_that_is_silent_is_told_with_its_controller(world):
    world.node('imu_sensor_broadcaster').create_publisher(Imu, 'imu/data', qos.SENSOR_OUT)
    told = reason('sensors', world.start('hardware'))
    assert 'nobody publishes /joint_states: joint_state_broadcaster is not active' in told
    assert '/imu_sensor_broadcaster publishes nothing on /imu/data' in told


def test_sensors_of_a_paused_simulation_repeat_one_stamp(world):
    world.publish(world.node('joint_state_broadcaster'), JointState, 'joint_states', moving=False)
    world.publish(world.node('imu_sensor_broadcaster'), Imu, 'imu/data')
    world.publish(world.node('ros_gz_bridge'), Clock, '/clock', moving=False)
    told = reason('sensors', world.start(timeout_s=1.5))
    assert '/joint_states repeats one stamp: the simulation is paused' in told


def test_a_robot_that_must_not_be_armed_is_told_with_every_refusal_of_the_preflight(world):
    told = reason('armed', world.start('hardware'))
    assert 'nodes: safety_node does not run' in told
    assert 'joint_states: ' in told


def test_a_controller_that_nobody_activated_is_told(world):
    world.node('safety_node').create_publisher(String, 'safety/mode', qos.LATCHED)
    listener = world.node('recorder_node')
    for _ in range(2):
        listener.create_subscription(Float64MultiArray, 'effort_controller/commands', print, qos.COMMAND)
    assert 'effort_controller is not loaded, not active' in reason('active', world.start())


@pytest.mark.parametrize(
    ('told', 'words'),
    [
        (None, 'controller_manager does not answer, so nobody tells whether effort_controller is active'),
        ({'effort_controller': 'inactive'}, 'effort_controller is inactive, not active'),
        ({}, 'effort_controller is not loaded, not active'),
    ],
)
def test_an_answer_that_does_not_come_is_no_activation_although_the_controller_listens(world, monkeypatch, told, words):
    controller = world.node('effort_controller')
    controller.create_subscription(Float64MultiArray, '~/commands', print, qos.COMMAND)
    monkeypatch.setattr(Start, 'can_ask', True)
    monkeypatch.setattr(Start, 'controllers', lambda _: told)
    assert words in reason('active', world.start(timeout_s=1.0))


def test_where_nobody_can_be_asked_the_gate_says_so(world):
    """Without controller_manager_msgs: it is seen that the controller is there, not that it is active."""
    controller = world.node('effort_controller')
    controller.create_subscription(Float64MultiArray, '~/commands', print, qos.COMMAND)
    mode = world.node('safety_node').create_publisher(String, 'safety/mode', qos.LATCHED)
    mode.publish(String(data='damping'))
    start = world.start(timeout_s=10)
    said = bringup_steps.active(start)
    assert said.startswith('the robot damps')
    assert ('nobody could be asked whether effort_controller is active' in said) is not start.can_ask


def test_a_step_that_does_not_exist_is_refused_with_those_that_do():
    done = subprocess.run(
        [sys.executable, '-m', 'sim2real_ros.ros.bringup_check', '--ros-args', '-p', 'step:=lunch'],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'simulator, controller_manager, sensors, armed, active possible' in done.stderr
    assert 'Traceback' not in done.stderr


def test_a_failed_step_ends_the_process_with_code_1_and_its_reason():
    done = subprocess.run(
        [sys.executable, '-m', 'sim2real_ros.ros.bringup_check', '--ros-args', '-p', 'step:=simulator', '-p', 'timeout_s:=0.3'],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert 'nobody publishes /clock' in done.stderr


def gate(step, *more):
    """Run the gate as a launch does; returns its exit code and what it said."""
    words = ['-p', f'step:={step}', '-p', 'backend:=gazebo', '-r', 'imu/data:=imu_sensor_broadcaster/imu', *more]
    line = [sys.executable, '-m', 'sim2real_ros.ros.bringup_check', '--ros-args', *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stderr


def test_the_gates_of_a_launch_open_in_turn_and_the_robot_is_damped_before_the_controller_is_activated(tmp_path):
    """With the real nodes, against the fake ros2_control; the last gate is closed until the controller takes commands."""
    pytest.importorskip('mujoco')
    from fake_stack import fake_stack

    with fake_stack(tmp_path, start_pose='lying') as stack:
        stack.operator.wait(lambda: stack.operator.time > 0, 60, 'the fake sent no clock')
        stack.operator.wait(lambda: stack.operator.mode == 'off', 20, 'no mode')
        for step in ('simulator', 'sensors', 'armed'):
            code, said = gate(step)
            assert code == 0, said
        stack.operator.wait(lambda: stack.operator.mode == 'damping', 5, 'not damped')
        stack.manage('activate')
        code, said = gate('active')
        assert code == 0, said
        assert 'safety_node/pose' in said
        stack.stand_up()
    assert int(stack.events[0][1].split()[2]) > 10, 'commands flowed before the activation'


def test_the_safety_node_does_not_arm_a_robot_whose_controller_takes_the_joints_in_another_order(tmp_path):
    pytest.importorskip('mujoco')
    from fake_stack import fake_stack

    swapped = list(load_robot('go2').joints)
    swapped[0], swapped[3] = swapped[3], swapped[0]
    with fake_stack(tmp_path, ('safety_node',), joints=swapped) as stack:
        stack.operator.wait(lambda: stack.operator.time > 0.1, 60, 'the fake sent no clock')
        refused = stack.operator.request('damp')
        for _ in range(200):  # sensors and the controller's answer come in any order; it is never granted meanwhile
            if refused is None or 'takes torque' in refused:
                break
            stack.operator.spin(0.1)
            refused = stack.operator.request('damp')
        assert refused is not None
        assert 'takes torque 1 for FR_hip_joint, it is sent for FL_hip_joint' in refused
        assert stack.operator.mode == 'off'
    assert not stack.trace['torque'].any()
