# SPDX-License-Identifier: Apache-2.0
"""Promise of swapping: whatever file is handed over, the robot walks on, and the reason is the parameter's result."""

import numpy as np
import pytest
from broken_files import COUNT, broken_by_name, broken_files
from ros_traces import leans, read_trace

FORWARD = np.array([0.3, 0.0, 0.0])
BY_FAMILY = (  # one each: truncated, flipped, contract, text, network, metadata, sidecar, file, npz
    'hash, 50000', 'no hash, 3', 'joints 4', 'half an emoji as a joint', 'cyclic inputs', 'an error on all but zeros',
    'other joints', 'missing', 'a pointer as ONNX', 'a pipe as golden.npz', 'golden.npz with a shape of 1e15',
)  # fmt: skip
UNSAFE_GAINS = 'stiffness 1'  # only the safety node knows


def hand_over(running, broken):
    """Set the parameter to a broken policy; it must be refused in words."""
    operator = running.operator
    reason = operator.set_parameter('policy_node', 'policy', broken.policy, 120)
    assert reason, f'{broken} was accepted'
    assert 'Traceback' not in reason
    assert 'unexpected' not in reason, f'{broken}: {reason[:300]}'
    assert operator.mode == 'active', f'{broken} stopped the robot: {reason[:300]}'
    return reason


def walk_through(start, files):
    """Hand files over to a stack that walks; return the reasons."""
    with start(real_time_factor=0.5) as running:  # leave a core to who vets the files
        running.operator.command = FORWARD
        running.stand_up()
        reasons = [hand_over(running, broken) for broken in files]
        running.spin(1.0)
        assert running.operator.mode == 'active'
        assert 'no policy before' in str(running.operator.call('policy_node/rollback', 60))  # none got in
    trace = read_trace(running.trace_file)
    active = trace['mode'] == 'active'
    first = int(np.argmax(active))
    assert active[first : first + active.sum()].all()  # it was never left in between
    assert leans(trace)[active].max() < 0.5
    assert trace['time'][active].max() - trace['time'][active].min() > len(files) * 0.05
    moved = np.diff(trace['qpos'][active][::500, 0])  # m in each s
    assert np.median(moved) > 0.15
    return reasons


@pytest.mark.slow  # by themselves they are refused in test/policy/test_vet.py
def test_a_broken_file_of_each_family_is_refused_while_the_robot_walks_on(start, tmp_path):
    reasons = walk_through(start, broken_by_name(tmp_path / 'files', *BY_FAMILY, UNSAFE_GAINS))
    assert len(set(reasons)) == len(BY_FAMILY) + 1  # with the unsafe gains, each its own
    assert sum('the safety node refuses' in reason for reason in reasons) == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_broken_files_are_refused_while_the_robot_walks_on(start, tmp_path):
    """The bar of the issue; about 6 minutes."""
    reasons = walk_through(start, list(broken_files(tmp_path / 'files')))
    assert len(reasons) == COUNT
    print(f'{len(reasons)} refused with {len(set(reasons))} different reasons')
