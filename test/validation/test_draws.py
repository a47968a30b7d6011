# SPDX-License-Identifier: Apache-2.0
"""Promises of the draws: they fill their ranges, and an episode's are its own."""

import numpy as np
import pytest

stats = pytest.importorskip('scipy.stats', reason='the extra `validate` is not installed')
pytest.importorskip('mujoco.batch', reason='validation needs MuJoCo 4')

from validation_rig import trial  # noqa: E402

from sim2real_ros.validation.draws import ANGLES, COORDINATES, PER_JOINT, coordinates, width  # noqa: E402

MANY = list(range(512))


def expected(level, name, scenario):
    if name in ANGLES:
        return ANGLES[name]
    if name == 'slope_rad':
        return level.scenarios[scenario].slope_rad
    if name == 'centre_of_mass_m':
        most = np.array(level.ranges.centre_of_mass_m)
        return -most, most
    return getattr(level.ranges, name)


@pytest.mark.parametrize('name', [*COORDINATES, *PER_JOINT, 'link_mass_factor'])
def test_what_is_drawn_is_uniform_over_its_range(name):
    own = trial()
    values = own.draw('slope', MANY).values[name]
    low, high = (np.broadcast_to(bound, values.shape[1:]) for bound in expected(own.level, name, 'slope'))
    for column in np.ndindex(values.shape[1:]):
        drawn = values[(slice(None), *column)]
        fit = stats.kstest(drawn, stats.uniform(low[column], high[column] - low[column]).cdf)
        assert fit.pvalue > 1e-4
        assert low[column] <= drawn.min()
        assert drawn.max() <= high[column]


def test_an_episode_has_the_same_draws_in_every_selection():
    own = trial()
    many, few = own.draw('rough', MANY), own.draw('rough', [300, 7])
    assert few.record(0) == many.record(300)
    assert few.record(1) == many.record(7)


def test_seeds_scenarios_and_episodes_differ():
    records = [
        trial(seed).draw(scenario, [index]).record(0) for seed in (1, 2) for scenario in ('flat', 'rough') for index in (0, 1)
    ]
    for name in ('friction', 'motor_strength_factor', 'commands', 'push_s', 'place'):
        assert len({str(record[name]) for record in records}) == len(records)


def test_another_range_of_one_thing_leaves_the_rest_as_it_was():
    before = trial().draw('flat', [5]).record(0)
    after = trial(ranges={'motor_strength_factor': [0.5, 0.6], 'friction': [0.1, 0.2]}).draw('flat', [5]).record(0)
    assert {name for name in before if before[name] != after[name]} == {'motor_strength_factor', 'friction'}


def test_coordinates_can_be_given_for_a_search():
    middle = trial().draw('flat', [0], np.full((1, width()), 0.5))
    assert middle.values['payload_kg'][0] == pytest.approx(1.0)
    assert coordinates(1, 'flat', [3]).shape == (1, width())


def test_commands_lie_in_the_range_of_the_contract_and_a_tenth_of_them_rests():
    own = trial(seconds=20.0)
    commands = own.draw('flat', MANY).commands
    velocity = own.contract.file.commands.velocity
    for axis, (low, high) in enumerate((velocity.x, velocity.y, velocity.yaw)):
        assert low <= commands[..., axis].min()
        assert commands[..., axis].max() <= high
    rest = (commands == 0).all(axis=-1).mean()
    assert rest == pytest.approx(own.level.rest_share, abs=0.02)


def test_pushes_come_within_their_intervals():
    push_s = trial(seconds=20.0).draw('flat', MANY).push_s
    gaps = np.diff(push_s, axis=1, prepend=0.0)
    assert gaps.min() >= 5
    assert gaps.max() <= 10
    assert (push_s[:, -1] >= 20.0).all()  # or there would be too few of them
