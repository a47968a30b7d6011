# SPDX-License-Identifier: Apache-2.0
"""Every public policy of `shared/third_party`: imported by one command, fed as its trainer feeds it, and doing what it can do.

With SIM2REAL_WRITE_THIRD_PARTY=1 the figures go to docs/third-party.md.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from closed_loop import Walk, reach, reference_of_dance, walk
from mistakes import goal_xyzw, mistaken, terms_as_configured
from public_policies import (
    ARM,
    DANCE,
    PAGE,
    POLICIES,
    WALKERS,
    WRITE,
    arm_recipe,
    folder_of,
    import_command,
    imported,
    recorded,
    spec_of,
    torso_read_early,
)
from traces import differences, replay

from bench import evidence
from sim2real_ros.contract import load_contract
from sim2real_ros.tools.cli import main

LIMIT = 1e-6  # of an observation, against the trainer's own
BAND = 0.03  # m/s, about the mean velocity upstream
ALPHABETICAL = (
    'elbow_joint', 'shoulder_lift_joint', 'shoulder_pan_joint', 'wrist_1_joint', 'wrist_2_joint', 'wrist_3_joint',
)  # fmt: skip
HEADER = ['policy', 'format', 'command', 'observation differs by', 'here', 'upstream']


@pytest.fixture(scope='module')
def contract_of(tmp_path_factory):
    """Return a policy's contract, imported by its one command."""
    return lambda name: imported(name, tmp_path_factory)


@pytest.fixture(scope='module')
def figures():
    """Columns of the table by policy; written at the end where it is asked for, and complete."""
    found = {name: {} for name in POLICIES}
    yield found
    if os.environ.get(WRITE) and all(len(columns) == 3 for columns in found.values()):
        rows = [[name, POLICIES[name].format, command_line(name), *columns.values()] for name, columns in found.items()]
        evidence.put(PAGE, 'policies', evidence.table(HEADER, rows))


def command_line(name):
    """Return the import command as a user types it."""
    first, _, *words = import_command(name)
    return f'`sim2real {" ".join([first, f"third_party/{name}", *words])} -o out`'


@pytest.mark.parametrize('name', POLICIES)
def test_network_is_fed_what_its_trainer_feeds(name, contract_of, figures):
    """Every number of every tick; the arm has no trace, so its recipe is written down and it is watched while it moves."""
    difference = {ARM: arm_differs, DANCE: dance_differs}.get(name, trace_differs)(name, contract_of(name))
    figures[name]['observation'] = 'nothing' if difference == 0 else f'{difference:.0e}'
    assert difference <= LIMIT


def trace_differs(name, contract):
    trace = recorded(name)
    built = replay(contract, trace)
    assert set(built) == set(trace.inputs)
    return max(differences(built, trace).values())


def dance_differs(name, contract):
    """The recorder read the torso's orientation, the last six numbers, one physics step before the rest."""
    trace = recorded(name)
    now, before = replay(contract, trace), replay(contract, torso_read_early(trace))
    assert np.array_equal(now['time_step'].ravel(), trace.inputs['time_step'].ravel())
    built = np.hstack((now['obs'][:, :-6], before['obs'][:, -6:]))
    return float(np.abs(built - trace.inputs['obs']).max())


def arm_differs(name, contract):
    done = reach(name, contract, goals=2)
    return float(np.abs(done.inputs - arm_recipe(done.states, done.goals, done.actions, contract.default_position)).max())


@pytest.mark.parametrize('name', WALKERS)
def test_robot_walks_as_upstream(name, contract_of, figures):
    """Ten seconds without a fall, at the mean velocity that its own deployment reaches."""
    done, upstream = walk(name, contract_of(name), 10.0), next(iter(spec_of(name)['closed_loop'].values()))
    figures[name] |= {'here': told(done, name), 'upstream': f'{upstream["mean_vx"]:.3f} m/s, no fall'}
    assert done.fell_at_s is None
    assert done.velocity[0] == pytest.approx(upstream['mean_vx'], abs=BAND)
    assert abs(done.velocity[1]) < 0.1


def told(done: Walk, name: str) -> str:
    fell = 'no fall' if done.fell_at_s is None else f'fell at {done.fell_at_s:.1f} s'
    return f'{POLICIES[name].command[0]:g} m/s asked, {done.velocity[0]:.3f} m/s, {fell}'


def test_robot_dances_upright_for_20_seconds(contract_of, figures):
    """Joints stay as near to the motion that the network plays as they do upstream."""
    contract, upstream = contract_of(DANCE), spec_of(DANCE)['closed_loop'][DANCE]['mean_joint_tracking_err_rad']
    done = walk(DANCE, contract, 20.0)
    error = float(np.abs(done.positions - reference_of_dance(contract, len(done.positions))).mean())
    figures[DANCE] |= {
        'here': f'upright for 20 s, joints off by {error:.3f} rad',
        'upstream': f'upright for 20 s, joints off by {upstream:.3f} rad',
    }
    assert done.fell_at_s is None
    assert error == pytest.approx(upstream, abs=0.01)


def test_arm_reaches_twelve_goals(contract_of, figures):
    done, upstream = reach(ARM, contract_of(ARM)), spec_of(ARM)['closed_loop'][ARM]
    text = '12 goals, off by {:.1f} mm and {:.3f} rad'
    figures[ARM] |= {
        'here': text.format(1e3 * done.distances.mean(), done.angles.mean()),
        'upstream': text.format(1e3 * upstream['pos_err_mean_m'], upstream['ori_err_mean_rad']),
    }
    assert done.distances.mean() < 0.012
    assert done.angles.mean() < 0.08


@pytest.mark.parametrize('name', ['unitree_rl_gym_g1', ARM])
def test_torchscript_alone_does_the_same(name, tmp_path):
    """Imported from a folder without an ONNX file: the network is converted, hidden state and all."""
    pytest.importorskip('torch')
    source = tmp_path / name
    shutil.copytree(folder_of(name), source, ignore=shutil.ignore_patterns('*.onnx', 'trace.npz', 'spec.json'))
    assert main(['import', str(source), '-o', str(tmp_path / 'out')]) == 0
    contract = load_contract(tmp_path / 'out')
    if name == ARM:
        assert reach(name, contract, goals=4).distances.mean() < 0.012
    else:
        done = walk(name, contract, 10.0)
        assert done.fell_at_s is None
        assert done.velocity[0] == pytest.approx(spec_of(name)['closed_loop'][name]['mean_vx'], abs=BAND)


def forgetting(runner):
    """Do not carry the recurrent state to the next tick."""
    runner.network.reset()


@pytest.mark.parametrize(
    ('name', 'mistake', 'within_s'),
    [('holosoma_ppo_g1', terms_as_configured, 0.6), ('unitree_rl_gym_g1', forgetting, 2.5)],
    ids=['terms as configured', 'state not carried'],
)
def test_loop_notices_what_lets_a_robot_fall(name, mistake, within_s, contract_of):
    """As upstream: 0.4 s and 1.7 s."""
    contract = contract_of(name)
    done = walk(name, contract, 10.0, forgetting) if mistake is forgetting else walk(name, mistaken(contract, mistake), 10.0)
    assert done.fell_at_s is not None
    assert done.fell_at_s < within_s


@pytest.mark.parametrize(
    ('mistake', 'joints', 'distance', 'angle'),
    [(goal_xyzw, None, 0.03, 1.0), (None, ALPHABETICAL, 0.3, 1.0)],
    ids=['goal xyzw', 'joints by place'],
)
def test_loop_notices_what_lets_an_arm_miss(mistake, joints, distance, angle, contract_of):
    """As upstream: 59 mm and 1.5 rad, 494 mm."""
    contract = contract_of(ARM)
    done = reach(ARM, contract if mistake is None else mistaken(contract, mistake), joints)
    assert done.distances.mean() > distance
    assert done.angles.mean() > angle
