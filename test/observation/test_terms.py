# SPDX-License-Identifier: Apache-2.0
"""Each term returns what its name says, as wide as it says."""

import importlib

import numpy as np
import pytest
from makers import contract_data, make_contract, random_state

from sim2real_ros.errors import NotFoundError
from sim2real_ros.observation import Moment, terms
from sim2real_ros.observation.terms import TERMS, Term, find_term, registered_terms
from sim2real_ros.signals import RobotState

PHASE = {
    'period_s': 0.8,
    'encoding': ['sin', 'cos'],
    'offsets': [0.0, 0.5, 0.25],
    'timebase': 'policy_ticks',
    'stop_at_zero_command': False,
}


def moment(batch=(), contract=None, seed=0):
    contract = contract or make_contract(phase=PHASE)
    rng = np.random.default_rng(seed)
    return Moment(
        state=random_state(rng, len(contract.joints), batch),
        default_joint_pos=contract.default_position,
        velocity_command=rng.normal(size=(*batch, 3)),
        last_action_raw=rng.normal(size=(*batch, contract.action_width)),
        last_action_clipped=rng.normal(size=(*batch, contract.action_width)),
        phase=rng.normal(size=(*batch, terms.phase_width(contract))),
    )


@pytest.mark.parametrize('batch', [(), (1,), (5,), (2, 3)], ids=str)
@pytest.mark.parametrize('name', sorted(registered_terms()))
def test_width_of_a_term_is_the_width_it_computes(name, batch):
    contract = make_contract(phase=PHASE)
    term = find_term(name)
    assert term.compute(moment(batch, contract)).shape == (*batch, term.width(contract))


def test_width_of_last_action_follows_the_outputs_not_the_joints():
    data = contract_data()
    data['outputs'] = {
        'left': data['outputs']['actions'] | {'joints': ['a_hip_joint', 'a_knee_joint']},
        'right': data['outputs']['actions'] | {'joints': ['b_hip_joint', 'b_knee_joint']},
    }
    assert find_term('last_action').width(make_contract(data)) == 4


@pytest.mark.parametrize('name', sorted(registered_terms()))
def test_every_term_states_unit_frame_and_sensors(name):
    term = find_term(name)
    assert term.unit
    assert term.frame
    assert set(term.needs) <= {'imu', 'odom'}


def test_terms_return_what_their_names_say():
    m = moment()
    compute = {name: term.compute(m) for name, term in TERMS.items()}
    assert np.array_equal(compute['base_ang_vel'], m.state.base_ang_vel)
    assert np.array_equal(compute['base_lin_vel'], m.state.base_lin_vel)
    assert np.array_equal(compute['velocity_command'], m.velocity_command)
    assert np.array_equal(compute['joint_pos'], m.state.joint_pos)
    assert np.array_equal(compute['joint_pos_rel'], m.state.joint_pos - m.default_joint_pos)
    assert np.array_equal(compute['joint_vel'], m.state.joint_vel)
    assert np.array_equal(compute['last_action'], m.last_action_raw)
    assert np.array_equal(compute['phase'], m.phase)
    assert np.array_equal(terms.last_action_clipped(m), m.last_action_clipped)


def test_projected_gravity_of_a_level_robot_points_down():
    m = moment()
    level = RobotState(0.0, m.state.joint_pos, m.state.joint_vel, np.array([0.0, 0.0, 0.0, 1.0]))
    value = terms.projected_gravity(Moment(level, m.default_joint_pos, *[m.velocity_command] * 3, m.phase))
    assert value.tolist() == [0.0, 0.0, -1.0]


def test_unknown_term_lists_the_known_ones():
    with pytest.raises(
        NotFoundError, match='observation term "gravity" does not exist; terms are base_ang_vel, .*velocity_command'
    ):
        find_term('gravity')


def test_another_package_adds_a_term_through_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / 'extra_terms.py').write_text(
        'from sim2real_ros.observation.terms import Term\n'
        "height = Term(lambda m: m.state.joint_pos[..., :1], lambda contract: 1, 'm', 'base')\n"
    )
    info = tmp_path / 'extra_terms-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: extra_terms\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text('[sim2real_ros.observation_terms]\nheight = extra_terms:height\n')
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    registered_terms.cache_clear()
    try:
        term = find_term('height')
        assert isinstance(term, Term)
        assert term.compute(moment((2,))).shape == (2, 1)
        assert set(TERMS) < set(registered_terms())
    finally:
        registered_terms.cache_clear()
