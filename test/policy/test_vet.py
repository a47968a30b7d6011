# SPDX-License-Identifier: Apache-2.0
"""Promises of vetting: whatever is wrong with a file is said in words, and nothing that it does reaches who asked.

The broken files are in `broken_files.py`; `ros/test_swap_broken.py` hands them to a robot that walks.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
from broken_files import COUNT, broken_by_name, broken_files
from other_policies import OURS

from sim2real_ros.contract import load_contract
from sim2real_ros.errors import DocumentError
from sim2real_ros.policy import vet as module
from sim2real_ros.policy.vet import limit_memory, load, vet
from sim2real_ros.robot import load_robot
from sim2real_ros.safety import SafetyFilter

ENDLESS = 'a loop that never ends'
COSTLY = (ENDLESS, 'all the memory, doubling')  # 5 s and more: left to `ros/test_swap_broken.py`
NOT_WORDS = ('Traceback', 'cannot be loaded', 'could not be checked', '0x7f', 'Error(')


def check_words(reason, broken):
    """A reason is one message that a person can read, and names something of the file."""
    assert reason, f'{broken} was accepted'
    assert len(reason) < 8200
    assert reason.encode()  # or no ROS string could hold it
    assert not [word for word in NOT_WORDS if word in reason], f'{broken}: {reason[:300]}'


@pytest.fixture(scope='module')
def child():
    """A process that may be broken, with the limits of the one that vets."""
    with ProcessPoolExecutor(1, multiprocessing.get_context('spawn'), initializer=limit_memory) as pool:
        yield pool


def refusal(child, policy, safety):
    """Return what the stack says against a policy: first who loads it, then the safety node."""
    try:
        reason = child.submit(load, policy, 'go2').result(timeout=60)
    except BrokenProcessPool:
        pytest.fail(f'{policy} crashed the process that loaded it')
    if reason:
        return reason
    try:
        safety.propose(load_contract(policy))
    except DocumentError as error:  # gains that the rate cannot hold
        return str(error)
    return ''


def test_two_hundred_broken_files_are_refused_each_with_a_reason(child, tmp_path):
    safety, kinds, reasons = SafetyFilter(load_robot('go2')), set(), set()
    for broken in broken_files(tmp_path):
        if broken.name in COSTLY:
            continue
        reason = refusal(child, broken.policy, safety)
        check_words(reason, broken)
        kinds.add(broken.kind)
        reasons.add(reason.replace(broken.policy, '').split('\n')[-1][:60])
    assert kinds == {'contract', 'file', 'flipped', 'metadata', 'network', 'npz', 'sidecar', 'text', 'truncated'}
    assert len(reasons) > COUNT / 4  # not one sentence for all


def test_our_own_policy_is_in_order():
    assert vet(str(OURS), 'go2') == ''


def test_a_file_that_never_ends_is_given_up(tmp_path):
    (broken,) = broken_by_name(tmp_path, ENDLESS)
    start = time.monotonic()
    assert vet(broken.policy, 'go2', 3.0) == f'{broken.policy} was not loaded within 3 s'
    assert time.monotonic() - start < 30


def test_a_file_that_takes_all_the_memory_is_refused(tmp_path):
    (broken,) = broken_by_name(tmp_path, 'all the memory')
    assert 'fails on zeros' in vet(broken.policy, 'go2')


@pytest.mark.parametrize('signal', ['SIGSEGV', 'SIGKILL'])
def test_a_file_that_crashes_who_opens_it_is_refused_as_damaged(monkeypatch, signal):
    """A mock: onnxruntime crashes on no file that we know of."""
    run = module.subprocess.run
    monkeypatch.setattr(module.subprocess, 'run', lambda _, **how: run(['/bin/sh', '-c', f'kill -{signal[3:]} $$'], **how))
    assert vet('some.onnx', 'go2') == f'some.onnx crashed the process that checked it ({signal}): the file is damaged'


def test_a_name_that_no_process_can_be_told_is_refused():
    assert 'null' in vet('a\0b', 'go2')
