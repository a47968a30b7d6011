# SPDX-License-Identifier: Apache-2.0
"""The usual mistakes, made to contracts of public policies: each is refused at load, or `compare` names it and mends it."""

from __future__ import annotations

import os
from dataclasses import replace

import mistakes
import numpy as np
import pytest
from mistakes import mistaken
from public_policies import ARM, DANCE, PAGE, POLICIES, WALKERS, WRITE, arm_recipe, folder_of, imported, recorded

from bench import evidence
from sim2real_ros.errors import NetworkError
from sim2real_ros.parity.compare import compare
from sim2real_ros.parity.trace import Trace, load_trace
from sim2real_ros.policy import PolicyRunner

HISTORIES = ['unitree_rl_lab_g1', 'rl_sar_go2_himloco']
LSTM, TWO_CLOCKS, CLIPPED = 'unitree_rl_gym_g1', 'holosoma_ppo_g1', 'rl_sar_go2_robot_lab'
RATES, ACTIONS = slice(21, 33), slice(33, 45)  # of the observations of the first and the last of these
TICKS = 100
MISTAKES = [
    *((name, mistakes.joints_permuted, 'the joints are in another order: ') for name in POLICIES),
    *((name, mistakes.last_action_scaled, 'the trainer feeds the raw action') for name in POLICIES if name != DANCE),
    (HISTORIES[0], mistakes.history_reversed, 'the history is the other way round: oldest first'),
    (HISTORIES[1], mistakes.history_reversed, 'the history is the other way round: newest first'),
    (HISTORIES[0], mistakes.history_by_the_other_axis, 'the history is laid out term_major'),
    (HISTORIES[1], mistakes.history_by_the_other_axis, 'the history is laid out frame_major'),
    *((name, mistakes.terms_in_reverse, 'the terms are in another order: ') for name in WALKERS),
    (
        TWO_CLOCKS,
        mistakes.terms_as_configured,
        'the terms are in another order: last_action, base_ang_vel, velocity_command_yaw',
    ),
    (ARM, mistakes.goal_xyzw, 'the quaternion of the goal is wxyz'),
    (ARM, mistakes.joints_by_alphabet, 'the joints are in another order: shoulder_pan_joint, shoulder_lift_joint, elbow_joint'),
    (DANCE, mistakes.motion_wxyz, 'the quaternion of the reference motion is xyzw'),
    (DANCE, mistakes.counter_from_one, 'the trainer counts from 0'),
    (LSTM, mistakes.states_crossed, 'the recurrent states are crossed: '),
    (LSTM, mistakes.clock_of_another_period, 'the period of the gait clock is 0.8 s'),
    (LSTM, mistakes.clock_a_tick_late, 'the gait clock advances before the observation'),
    (TWO_CLOCKS, mistakes.clock_of_another_period, 'the period of the gait clock is 1 s'),
    (TWO_CLOCKS, mistakes.feet_of_the_clock_exchanged, 'the offsets of the gait clock are in another order: [0.0, 0.5]'),
    *((name, mistakes.pose_of_another_policy, 'the default pose is another one: ') for name in WALKERS),
    (HISTORIES[0], mistakes.history_of_the_other_beginning, 'the history begins with first'),
    (HISTORIES[1], mistakes.history_of_the_other_beginning, 'the history begins with zeros'),
    *((name, mistakes.a_tick_too_old, 'the trainer feeds what is measured a tick later') for name in (HISTORIES[1], CLIPPED)),
    *((name, mistakes.action_scale_of_another_policy, 'scale of the action: ') for name in (HISTORIES[1], 'playground_go1')),
    *((name, mistakes.gravity_in_newtons, "the trainer feeds gravity's direction, the contract m/s^2") for name in HISTORIES),
]


@pytest.fixture(scope='module')
def contract_of(tmp_path_factory):
    """Return a policy's contract, imported by its one command."""
    return lambda name: imported(name, tmp_path_factory)


@pytest.fixture(scope='module')
def named():
    """Policies and causes by mistake; written to docs/third-party.md at the end where it is asked for, and complete."""
    found: dict = {}
    yield found
    if os.environ.get(WRITE) and sum(len(causes) for causes in found.values()) == len(MISTAKES) + 1:
        rows = [
            [mistake.__doc__.rstrip('.'), str(len(causes)), next(iter(causes.values()))] for mistake, causes in found.items()
        ]
        evidence.put(PAGE, 'mistakes', evidence.table(['mistake', 'policies', 'what is said'], rows))


@pytest.fixture(scope='module')
def arm(contract_of):
    """A trace of the arm: it is moved by its own policy, the observation is that of its written recipe."""
    from closed_loop import reach

    contract = contract_of(ARM)
    done = reach(ARM, contract, goals=2)
    inputs = {'obs': arm_recipe(done.states, done.goals, done.actions, contract.default_position)}
    command = np.zeros((len(done.states), 3))
    outputs = {'actions': done.actions}
    return Trace(contract.joints, contract.joints, done.states, command, done.goals, inputs, outputs, done.targets)


@pytest.fixture(scope='module')
def trace_of(request):
    """Return the trace of a policy, its states as they were read."""

    def get(name):
        if name == ARM:
            return request.getfixturevalue('arm')
        return first_ticks(replace(load_trace(folder_of(name) / 'trace.npz'), states=recorded(name).states))

    return get


def first_ticks(trace):
    inputs, outputs = ({name: values[:TICKS] for name, values in part.items()} for part in (trace.inputs, trace.outputs))
    cut = {name: getattr(trace, name)[:TICKS] for name in ('states', 'commands', 'targets')}
    return replace(trace, inputs=inputs, outputs=outputs, **cut)


@pytest.mark.parametrize('name', POLICIES)
def test_imported_contract_agrees(name, contract_of, trace_of):
    report = compare(contract_of(name), trace_of(name))
    assert report.agrees
    assert report.left <= 1e-6


def test_sample_of_a_moment_before_is_a_note_and_no_fault(contract_of, trace_of):
    """The recorder of the dance read the torso's orientation one physics step before the rest."""
    (note,) = compare(contract_of(DANCE), trace_of(DANCE)).notes
    assert note.where == 'input obs, term motion_anchor_ori_b'
    assert 'the trainer reads it 2 ms before the rest of the state' in note.cause


@pytest.mark.parametrize(('name', 'mistake', 'cause'), MISTAKES, ids=lambda value: getattr(value, '__name__', value))
def test_mistake_is_named_and_mended(name, mistake, cause, contract_of, trace_of, named):
    """It was the only one: with the proposed contract everything agrees."""
    report = compare(mistaken(contract_of(name), mistake), trace_of(name))
    assert report.differences[0].cause.startswith(cause)
    named.setdefault(mistake, {})[name] = shortened(report.differences[0].cause)
    assert len(report.differences) == 1
    assert report.mended is not None
    assert report.left <= 1e-6


def shortened(cause):
    return cause if len(cause) < 110 else cause[:107].rpartition(',')[0] + ', ...'


def test_state_that_is_left_out_is_refused_at_load(contract_of, trace_of, named):
    with pytest.raises(NetworkError, match='input h_in, c_in: the file needs it, the contract does not describe it') as refusal:
        compare(mistaken(contract_of(LSTM), mistakes.state_not_carried), trace_of(LSTM))
    named[mistakes.state_not_carried] = {LSTM: 'refused: ' + str(refusal.value).rpartition('- ')[2]}


@pytest.mark.parametrize('states_recorded', [True, False])
def test_network_that_was_exported_without_its_state_is_found(states_recorded, contract_of, trace_of, tmp_path):
    """As `torch.jit` to ONNX does it: the state is a constant."""
    contract, trace = contract_of(LSTM), trace_of(LSTM)
    freeze(contract.model_path, tmp_path / 'policy.onnx')
    without = mistaken(contract, lambda document: (mistakes.state_not_carried(document), document['model'].pop('sha256', None)))
    if not states_recorded:
        trace = replace(trace, inputs={'obs': trace.inputs['obs']})
    (difference,) = compare(replace(without, folder=tmp_path), trace).differences
    assert 'a recurrent state that has to be carried' in difference.cause if states_recorded else 'a state that is not carried'


def freeze(source, target):
    """Write a network with zeros in the place of its recurrent inputs."""
    onnx = pytest.importorskip('onnx')
    model = onnx.load(source)
    for part in [part for part in model.graph.input if part.name in ('h_in', 'c_in')]:
        shape = [size.dim_value for size in part.type.tensor_type.shape.dim]
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(shape, np.float32), part.name))
        model.graph.input.remove(part)
    onnx.save(model, target)


def test_trainer_that_forgets_the_state_is_told(contract_of, trace_of):
    (difference,) = compare(contract_of(LSTM), deployed(contract_of(LSTM), trace_of(LSTM), forgets=True)).differences
    assert difference.cause == 'the trainer does not carry the recurrent state'


def deployed(contract, trace, alter=lambda observation: observation, forgets=False):
    """Return what another deployment would have fed and got at the same states: it alters observations, or forgets."""
    network, inputs, actions = PolicyRunner(contract).network, [], []
    for observation in trace.inputs['obs']:
        inputs.append(alter(observation.copy()))
        if actions:
            inputs[-1][ACTIONS] = actions[-1]
        if forgets:
            network.reset()
        actions.append(network.run({'obs': inputs[-1]})['actions'].copy())
    return replace(trace, inputs={'obs': np.array(inputs)}, outputs={'actions': np.array(actions)}, targets=None)


@pytest.mark.parametrize('name', HISTORIES)
@pytest.mark.parametrize(
    ('turned', 'cause'),
    [([3, 0, 1, 2], 'reads it as w, x, y, z'), ([1, 2, 3, 0], 'reads it as x, y, z, w'), (None, 'is the inverse')],
)
def test_quaternion_of_the_base_in_another_order_is_named(name, turned, cause, contract_of, trace_of):
    """The states were written down in one order and read in another, or turned the other way round."""
    trace = trace_of(name)
    states = [
        replace(s, base_quat_xyzw=s.base_quat_xyzw * (-1, -1, -1, 1) if turned is None else s.base_quat_xyzw[turned])
        for s in trace.states
    ]
    (difference,) = compare(contract_of(name), replace(trace, states=states)).differences
    assert difference.where == 'input obs, term projected_gravity'
    assert difference.cause.startswith('the quaternion of the base is')
    assert cause in difference.cause


def test_order_of_clip_and_scale_is_named_where_a_clip_is_reached(contract_of, trace_of):
    """The public limits of 100 are never reached; here both sides clip rates at 0.2, the trainer after the scale."""

    def tight(document):
        mistakes.term(document, 'joint_vel')['clip'] = [-0.2, 0.2]

    def wrong(document):
        tight(document)
        mistakes.clip_before_scale(document)

    def clipped(observation):
        observation[RATES] = np.clip(observation[RATES], -0.2, 0.2)
        return observation

    contract = contract_of(CLIPPED)
    trace = deployed(contract, trace_of(CLIPPED), clipped)
    assert compare(mistaken(contract, tight), trace).agrees
    report = compare(mistaken(contract, wrong), trace)
    assert report.differences[0].cause == 'joint_vel: the order is scale then clip'
    assert report.left <= 1e-6


def test_order_of_clip_and_scale_makes_no_difference_where_none_is_reached(contract_of, trace_of):
    assert compare(mistaken(contract_of(CLIPPED), mistakes.clip_before_scale), trace_of(CLIPPED)).agrees


def test_two_mistakes_of_one_policy_are_both_named(contract_of, trace_of):
    def both(document):
        mistakes.history_reversed(document)
        mistakes.joints_permuted(document)

    report = compare(mistaken(contract_of(HISTORIES[1]), both), trace_of(HISTORIES[1]))
    assert len(report.differences) == 2
    assert report.left <= 1e-6


def test_numbers_that_never_move_keep_what_the_contract_says(contract_of, trace_of):
    """The robot is asked to go straight ahead, so the trace tells nothing of the scales of the other two commands."""

    def other_scales(document):
        mistakes.term(document, 'velocity_command')['scale'] = [1.0, 7.0, 8.0]

    report = compare(mistaken(contract_of(LSTM), other_scales), trace_of(LSTM))
    assert 'always 0 here, which tells nothing of them' in report.differences[0].cause
    assert mistakes.term(report.mended, 'velocity_command')['scale'] == [2.0, 7.0, 8.0]


def test_what_has_no_simple_cause_is_said_and_not_mended(contract_of, trace_of):
    """The dance's torso without the joints that lead to it."""

    def without_the_waist(document):
        document['motion']['anchor']['chain'] = []

    report = compare(mistaken(contract_of(DANCE), without_the_waist), trace_of(DANCE))
    assert [difference.cause for difference in report.differences] == ['']
    assert report.mended is None
