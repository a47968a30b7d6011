# SPDX-License-Identifier: Apache-2.0
"""Mutations of the filter, each of which a test must catch: the tests are worth something.

A mutation replaces a line of a module's source, and the altered source is run into the module's own namespace. The check
that must catch it passes on the filter as it is.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip('mujoco')

from adversary import Condition, fixed_robot, worst
from barriers import BARS, check, coupled, per_joint, slow_motors
from safety_rig import Rig

from sim2real_ros.safety import Mode


def overshoot_of_slow_motors() -> None:
    """The order of rate and barrier: a brake must not be rate-limited."""
    outcome = worst(slow_motors, fixed_robot('go2'), 'push', Condition(500))
    assert outcome.overshoot <= BARS[per_joint].overshoot_rad


def coupled_with_delay() -> None:
    """The delay term: a brake must begin early."""
    check(coupled, worst(coupled, fixed_robot('go2'), 'mixed', Condition(500, delay=0.01)), fixed_robot('go2'))


def coupled_under_saturation() -> None:
    """Uniform scaling: an inverse-dynamics torque that is clipped joint by joint turns some joints around."""
    check(coupled, worst(coupled, fixed_robot('arm7'), 'telegraph', Condition(500)), fixed_robot('arm7'))


def nan_is_a_latch() -> None:
    """A NaN is a fault at once, and what is sent is finite."""
    rig = Rig().bring_to(Mode.ACTIVE)
    rig.v[3] = np.nan
    sent = rig.step()
    assert sent is not None
    assert np.isfinite(sent.torque).all()
    assert rig.safety.fault is not None
    assert rig.safety.fault.name == 'non_finite_sensor'


def nan_in_targets_is_refused() -> None:
    """Targets that are not finite are a fault."""
    rig = Rig().bring_to(Mode.ACTIVE)
    rig.send(np.full(12, np.nan))
    assert rig.safety.fault is not None
    assert rig.safety.fault.name == 'bad_target'


def both_limits_hold() -> None:
    """A limit on each side."""
    for adversary in ('push', 'telegraph'):
        check(per_joint, worst(per_joint, fixed_robot('go2'), adversary, Condition(500)), fixed_robot('go2'))


@dataclass(frozen=True)
class Mutation:
    """A line of a module, what is put in its place, and the check that must notice."""

    module: str
    line: str
    mutant: str
    caught_by: Callable[[], None]


MUTATIONS = {
    'rate after barrier': Mutation(
        'limits',
        'shaped = self._barrier.apply(cooled, joint_pos, joint_vel)',
        'shaped = np.clip(self._barrier.apply(self._torque_speed.apply(torque, joint_vel), joint_pos, joint_vel), '
        'self.torque - self._rate * dt, self.torque + self._rate * dt)',
        overshoot_of_slow_motors,
    ),
    'no delay': Mutation(
        'barrier',
        'late = robot.safety.command_delay_s',
        'late = 0.0',
        coupled_with_delay,
    ),
    'clip per joint': Mutation(
        'barrier',
        'return self._scale(np.clip(np.clip(acceleration, -self._reach, self._reach), lower, upper), mass, bias)',
        'return np.clip(shaped, -self._effort, self._effort)',
        coupled_under_saturation,
    ),
    'no finite check of sensors': Mutation(
        'checks',
        'if not worst <= 1.0 and not self.finite(state):',
        'if False:',
        nan_is_a_latch,
    ),
    'no finite check of targets': Mutation(
        'adoption',
        'if any(len(part) != len(self.index) or not np.isfinite(part).all() for part in parts):',
        'if False:',
        nan_in_targets_is_refused,
    ),
    'upper limit inverted': Mutation(
        'barrier',
        'np.subtract(self._at_upper, ahead, out=e[0])',
        'np.add(self._at_upper, ahead, out=e[0])',
        both_limits_hold,
    ),
    'lower limit inverted': Mutation(
        'barrier',
        'np.add(self._at_lower, ahead, out=e[1])',
        'np.subtract(self._at_lower, ahead, out=e[1])',
        both_limits_hold,
    ),
}


@pytest.fixture
def mutate(monkeypatch):
    """Return a function that runs an altered source into a module, until the test ends."""

    def run(mutation: Mutation) -> None:
        module = importlib.import_module(f'sim2real_ros.safety.{mutation.module}')
        source = inspect.getsource(module)
        assert source.count(mutation.line) == 1, f'{mutation.module} has no such line any more: {mutation.line}'
        altered: dict[str, object] = {'__name__': module.__name__, '__file__': module.__file__}
        exec(compile(source.replace(mutation.line, mutation.mutant), module.__file__, 'exec'), altered)
        for name, own in list(vars(module).items()):
            if inspect.isclass(own) and own.__module__ == module.__name__:
                for attribute, value in vars(altered[name]).items():
                    if inspect.isfunction(value):
                        monkeypatch.setattr(own, attribute, value)

    return run


@pytest.mark.parametrize('check_of', dict.fromkeys(m.caught_by for m in MUTATIONS.values()), ids=lambda c: c.__name__)
def test_the_filter_as_it_is_passes(check_of):
    check_of()


@pytest.mark.parametrize('name', MUTATIONS)
def test_each_mutation_is_caught(mutate, name):
    mutate(MUTATIONS[name])
    with pytest.raises((AssertionError, ValueError)):
        MUTATIONS[name].caught_by()
