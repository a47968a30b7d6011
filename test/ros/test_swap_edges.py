# SPDX-License-Identifier: Apache-2.0
"""Promises of swapping at bad moments and between unlike policies; one stack walks through all of this file."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from other_policies import OURS, copy_of_ours, seasick, translated
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from ros_traces import leans, read_trace
from running import running_stack
from std_msgs.msg import Float64MultiArray

from sim2real_ros.ros import qos
from sim2real_ros.ros.operator import Operator

FORWARD = np.array([0.6, 0.0, 0.0])
FORGOTTEN_S = 22.0  # so long the middleware takes a node that was killed for a living one, which may not be: two would command
SLOW = pytest.mark.slow  # 5 to 15 s each


@pytest.fixture(scope='module', autouse=True)
def private_domain():
    """One for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        patch.setenv('ROS_DOMAIN_ID', str(1 + os.getpid() % 39))
        yield


@pytest.fixture(scope='module')
def others(tmp_path_factory):
    """Policies to swap with, by name."""
    folder = tmp_path_factory.mktemp('others')
    copies = {name: copy_of_ours(folder / name) for name in ('one', 'other')}
    rates = {f'{rate} Hz': copy_of_ours(folder / f'at_{rate}', rate_hz=float(rate)) for rate in (25, 100)}
    broken = copy_of_ours(folder / 'broken')
    (broken / 'policy.onnx').write_bytes((OURS / 'policy.onnx').read_bytes()[:5000])
    return (
        copies
        | rates
        | {'broken': broken}
        | {'translated': translated(folder / 'translated'), 'seasick': seasick(folder / 'seasick')}
    )


@pytest.fixture(scope='module')
def stack(tmp_path_factory):
    """A stack that is started once; in the end no test may have made the robot fall while it walked."""
    with running_stack(tmp_path_factory.mktemp('stack') / 'trace.npz', real_time_factor=0.0) as running:
        yield running
    trace = read_trace(running.trace_file)
    assert leans(trace)[trace['mode'] == 'active'].max() < 0.5


@pytest.fixture
def walking(stack):
    """The stack with our policy walking forward, whatever the test before has left."""
    stack.operator.command = FORWARD
    if stack.operator.mode != 'active':
        stack.stand_up()
    if policy(stack) not in ('go2_velocity', str(OURS)):
        assert swap(stack, OURS) is None
    return stack


def swap(running, other):
    return running.operator.set_parameter('policy_node', 'policy', str(other))


def call(operator, kind, service, request):
    """Call a service of any type."""
    client = operator._node.create_client(kind, service)
    operator.wait(client.service_is_ready, 20, f'{service} did not appear')
    future = client.call_async(request)
    operator.wait(future.done, 60, f'{service} did not answer')
    operator._node.destroy_client(client)
    return future.result()


def newest(operator, kind, topic):
    """Return the next message of a topic."""
    heard = []
    subscription = operator._node.create_subscription(kind, topic, heard.append, qos.COMMAND)
    operator.wait(lambda: bool(heard), 20, f'nothing on {topic}')
    operator._node.destroy_subscription(subscription)
    return heard[-1]


def policy(running):
    """Return what the parameter says."""
    request = GetParameters.Request(names=['policy'])
    return call(running.operator, GetParameters, 'policy_node/get_parameters', request).values[0].string_value


def change(running, transition):
    """Take policy_node through a transition of its life."""
    request = ChangeState.Request(transition=Transition(id=transition))
    assert call(running.operator, ChangeState, 'policy_node/change_state', request).success


def goes_on(running):
    """The robot is still following after half a second."""
    running.spin(0.5)
    assert running.operator.mode == 'active'


def at_once(*calls):
    """Make calls from clients of their own at the same time; return their answers."""

    def make(which):
        with Operator() as client:
            return which(client)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def setting(name, value):
    return lambda client: client.set_parameter('policy_node', name, str(value), 60)


def test_a_policy_in_the_shadow_commands_nothing_and_may_be_broken(walking, others):
    """It is refused with the reason, or runs beside and tells what it would do; the robot walks on."""
    refusal = walking.operator.set_parameter('policy_node', 'shadow_policy', str(others['broken']))
    assert 'sha256' in str(refusal)
    assert walking.operator.set_parameter('policy_node', 'shadow_policy', str(others['translated'])) is None
    difference = newest(walking.operator, Float64MultiArray, 'policy/shadow/difference').data
    assert len(difference) == 12
    assert np.isfinite(difference).all()
    goes_on(walking)
    assert walking.operator.set_parameter('policy_node', 'shadow_policy', '') is None


def test_policies_are_found_by_name_in_the_policies_folder(walking, others):
    folder = str(others['one'].parent)
    assert walking.operator.set_parameter('policy_node', 'policies_folder', folder) is None
    assert swap(walking, 'one') is None
    assert 'no_such' in str(swap(walking, 'no_such'))
    assert walking.operator.set_parameter('policy_node', 'policies_folder', '') is None
    goes_on(walking)


@pytest.mark.parametrize('name', [pytest.param('100 Hz', marks=SLOW), '25 Hz', 'translated'])
def test_a_policy_of_another_rate_joint_order_or_observation_set_takes_over_and_gives_back(walking, others, name):
    assert swap(walking, others[name]) is None
    goes_on(walking)
    assert swap(walking, OURS) is None
    goes_on(walking)


@SLOW
def test_the_same_policy_again_is_granted(walking):
    assert swap(walking, OURS) is None
    goes_on(walking)


def test_of_two_clients_at_once_each_gets_its_turn(walking, others):
    assert at_once(setting('policy', others['one']), setting('policy', others['other'])) == [None, None]
    now = policy(walking)
    assert walking.operator.call('policy_node/rollback', 60) is None
    assert {now, policy(walking)} == {str(others['one']), str(others['other'])}
    goes_on(walking)


@SLOW
def test_a_shadow_that_is_set_during_a_swap_gets_its_turn(walking, others):
    assert at_once(setting('policy', others['one']), setting('shadow_policy', others['100 Hz'])) == [None, None]
    goes_on(walking)
    assert walking.operator.set_parameter('policy_node', 'shadow_policy', '') is None


def test_of_two_parameters_at_once_neither_changes_when_one_is_refused(walking, others):
    before = policy(walking)
    pair = [Parameter('policy', value=str(others['one'])), Parameter('shadow_policy', value='no_such_policy')]
    request = SetParametersAtomically.Request(parameters=[p.to_parameter_msg() for p in pair])
    result = call(walking.operator, SetParametersAtomically, 'policy_node/set_parameters_atomically', request).result
    assert not result.successful
    assert 'no_such_policy' in result.reason
    assert policy(walking) == before
    goes_on(walking)


def test_two_rollbacks_return_to_where_one_was(walking, others):
    before = policy(walking)
    assert swap(walking, others['one']) is None
    for there in (before, str(others['one']), before):
        assert walking.operator.call('policy_node/rollback', 60) is None
        assert policy(walking) == there
    goes_on(walking)


def test_a_candidate_that_fails_beside_the_old_one_is_refused_with_the_reason(walking, others):
    walking.operator.command = np.array([0.0, 0.0, 1.0])
    walking.spin(1.8)  # about 100 degrees
    refusal = swap(walking, others['seasick'])
    assert 'fails on what the sensors say now' in str(refusal)
    assert 'non-finite action' in str(refusal)
    goes_on(walking)


def test_a_swap_while_a_fault_is_latched_is_granted_and_moves_nothing(walking, others):
    assert walking.operator.request('estop') is None
    assert swap(walking, others['one']) is None
    walking.spin(0.5)
    assert walking.operator.mode == 'fault'
    walking.operator.insist('reset', 60)
    walking.stand_up()
    assert policy(walking) == str(others['one'])
    goes_on(walking)


@SLOW
def test_a_swap_while_the_node_is_inactive_is_granted_at_once_and_counts_when_it_is_activated(walking, others):
    assert walking.operator.request('damp') is None
    change(walking, Transition.TRANSITION_DEACTIVATE)
    assert swap(walking, others['translated']) is None
    change(walking, Transition.TRANSITION_ACTIVATE)
    walking.stand_up()
    goes_on(walking)


@SLOW
def test_a_node_that_is_not_configured_takes_the_name_and_has_nothing_to_return_to(walking, others):
    assert walking.operator.request('damp') is None
    change(walking, Transition.TRANSITION_DEACTIVATE)
    change(walking, Transition.TRANSITION_CLEANUP)
    assert 'no_such' in str(swap(walking, 'no_such'))
    assert swap(walking, others['other']) is None
    assert 'no policy before' in str(walking.operator.call('policy_node/rollback', 60))
    change(walking, Transition.TRANSITION_CONFIGURE)
    assert 'no policy before' in str(walking.operator.call('policy_node/rollback', 60))
    change(walking, Transition.TRANSITION_ACTIVATE)
    walking.stand_up()
    goes_on(walking)


@SLOW
def test_when_the_safety_node_dies_during_a_swap_the_policy_node_answers_and_serves_the_next_one(walking, others):
    """The answer depends on when it died; what counts is that there is one, and that the next stand-up works."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(at_once, setting('policy', others['one']))
        walking.operator.spin(0.6)  # the file is being vetted, or it is announced
        walking.kill('safety_node')
        walking.operator.wait(answer.done, 60, 'no answer')
        print(f'answer: {answer.result()[0]}')
    walking.revive('safety_node')
    walking.operator.mode = ''
    walking.operator.spin(FORGOTTEN_S)
    walking.stand_up()
    assert swap(walking, others['other']) is None
    goes_on(walking)
