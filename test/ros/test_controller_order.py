# SPDX-License-Identifier: Apache-2.0
"""Promises about the order that a controller takes torques in: read back from it, compared by name, one sentence each."""

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor

from sim2real_ros.ros.controller_order import ControllerOrder, difference

JOINTS = ('hip', 'thigh', 'calf')


@pytest.fixture
def context():
    """A context of its own."""
    made = rclpy.Context()
    rclpy.init(context=made)
    yield made
    rclpy.try_shutdown(context=made)


class Asked:
    """A node that asks, one that answers as a controller would, and what was found."""

    def __init__(self, context, controller='effort_controller', namespace=''):
        self.context, self.found = context, []
        self.executor = SingleThreadedExecutor(context=context)
        self.node = rclpy.create_node('asker', namespace=namespace, context=context)
        self.executor.add_node(self.node)
        self.order = ControllerOrder(self.node, controller, JOINTS, self.found.append)

    def controller(self, name='effort_controller', namespace='', **parameters):
        """Bring up a controller with parameters."""
        node = rclpy.create_node(name, namespace=namespace, context=self.context)
        for key, value in parameters.items():
            node.declare_parameter(key, value)
        self.executor.add_node(node)
        return node

    def ask(self, tries=100):
        """Look again and again until there is an answer."""
        for _ in range(tries):
            self.order.look()
            self.executor.spin_once(timeout_sec=0.05)
            if self.order.answered:
                return
        return


def test_a_controller_of_the_same_order_is_no_problem(context):
    asked = Asked(context)
    asked.controller(joints=list(JOINTS), interface_name='effort')
    asked.ask()
    assert asked.found == ['']
    assert asked.order.answered


def test_another_order_is_told_with_the_first_joint_that_differs_and_the_list_to_copy(context):
    asked = Asked(context)
    asked.controller(joints=['hip', 'calf', 'thigh'], interface_name='effort')
    asked.ask()
    assert 'torque 2 for calf, it is sent for thigh' in asked.found[0]
    assert '[hip, calf, thigh]' in asked.found[0]


def test_a_controller_that_is_not_there_is_no_answer_and_no_problem(context):
    asked = Asked(context)
    asked.ask(tries=5)
    assert not asked.order.answered
    assert not asked.order.pending
    assert asked.found == []


def test_a_relative_controller_is_looked_for_in_the_nodes_own_namespace(context):
    asked = Asked(context, namespace='dog')
    asked.controller(joints=['calf', 'hip', 'thigh'], interface_name='effort')  # of another robot
    asked.ask(tries=10)
    assert not asked.order.answered
    asked.controller(namespace='dog', joints=list(JOINTS), interface_name='effort')
    asked.ask()
    assert asked.found == ['']


def test_a_controller_that_comes_back_is_asked_again(context):
    asked = Asked(context)
    first = asked.controller(joints=list(JOINTS), interface_name='effort')
    asked.ask()
    asked.executor.remove_node(first)
    first.destroy_node()
    for _ in range(100):
        asked.order.look()
        asked.executor.spin_once(timeout_sec=0.02)
        if not asked.order.answered:
            break
    asked.controller(joints=['calf', 'hip', 'thigh'], interface_name='effort')
    asked.ask()
    assert asked.found[0] == ''
    assert 'torque 1 for calf' in asked.found[-1]


def test_a_node_without_such_parameters_is_no_forward_controller(context):
    asked = Asked(context)
    asked.controller()
    asked.ask()
    assert 'no forward_command_controller' in asked.found[0]


@pytest.mark.parametrize(
    ('joints', 'interface', 'part'),
    [
        (('hip', 'thigh', 'calf'), 'position', 'commands position'),
        (('hip', 'thigh'), 'effort', 'lacks calf'),
        (('hip', 'thigh', 'calf', 'tail'), 'effort', 'has tail besides'),
        (('hip', 'thigh', 'foot'), 'effort', 'lacks calf and has foot besides'),
        (('hip', 'thigh', 'calf', 'hip'), 'effort', 'a joint twice'),
        ((), 'effort', 'no joints'),
    ],
)
def test_each_difference_has_a_sentence_of_its_own(joints, interface, part):
    assert part in difference('effort_controller', joints, interface, JOINTS)


def test_a_controller_that_does_not_say_its_interface_is_judged_by_its_joints():
    """`effort_controllers/JointGroupEffortController` has no such parameter to set."""
    assert difference('effort_controller', JOINTS, '', JOINTS) == ''
