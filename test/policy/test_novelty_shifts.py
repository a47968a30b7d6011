# SPDX-License-Identifier: Apache-2.0
"""What the novelty monitor finds of differences put in on purpose; the table of docs/novelty.md.

`python -m pytest -m slow -s test/policy/test_novelty_shifts.py` prints it, one row per shift.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip('mujoco.batch', reason='simulating many robots needs MuJoCo 4')

from sim2real_ros.contract import load_contract  # noqa: E402
from sim2real_ros.policy.components import Components  # noqa: E402
from sim2real_ros.policy.statistics import load_statistics, persistent  # noqa: E402
from sim2real_ros.robot import load_robot  # noqa: E402
from sim2real_ros.rotations import multiply_xyzw  # noqa: E402
from sim2real_ros.signals import RobotState  # noqa: E402
from sim2real_ros.sim.fleet_stack import FleetStack  # noqa: E402
from sim2real_ros.sim.randomization import Ranges  # noqa: E402
from sim2real_ros.tools.evaluate import wander  # noqa: E402

pytestmark = pytest.mark.slow

SHIFTED, FAMILIAR = 32, 200  # robots, an episode of 20 s each
LEFT_RIGHT = np.array([3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8])  # FL FR RL RR -> FR FL RR RL, the order of the vendor's bus
PITCHED_XYZW = np.array([0.0, np.sin(0.1), 0.0, np.cos(0.1)])  # 0.2 rad
ONE_THIGH = np.where(np.arange(12) == 1, 0.2, 0.0)  # rad


@dataclass(frozen=True)
class Shift:
    """What is different, and the least share of episodes in which it must be found (0 where it is known not to be)."""

    found: float
    sense: Callable[[RobotState], RobotState] = lambda state: state  # what the policy is told; the PD law sees the truth
    ranges: Ranges = Ranges()
    gravity: float = 1.0  # factor on projected_gravity

    def apply(self, stack):
        """Put it between sensors and policy."""
        sense, build = stack.fleet.sense, stack.runner.builder.build
        slot = next(slot for slot in stack.runner.builder.slots['obs'] if slot.name == 'projected_gravity')

        def built(moment):
            observation = build(moment)
            observation['obs'][:, slot.start : slot.stop] *= self.gravity
            return observation

        stack.fleet.sense, stack.runner.builder.build = lambda stamp: self.sense(sense(stamp)), built


def joints(change):
    """Return a wrong reading of positions and velocities."""
    return lambda s: replace(s, joint_pos=change(s.joint_pos), joint_vel=change(s.joint_vel))


SHIFTS = {
    'joints in degrees': Shift(1.0, joints(np.rad2deg)),
    'gyroscope in degrees': Shift(1.0, lambda s: replace(s, base_ang_vel=np.rad2deg(s.base_ang_vel))),
    'gravity sign flipped': Shift(1.0, gravity=-1.0),
    'left and right legs swapped': Shift(0.95, joints(lambda values: values[:, LEFT_RIGHT])),
    'gyroscope sign flipped': Shift(0.95, lambda s: replace(s, base_ang_vel=-s.base_ang_vel)),
    'inverse orientation': Shift(0.5, lambda s: replace(s, base_quat_xyzw=s.base_quat_xyzw * (-1, -1, -1, 1))),
    'IMU bias 0.2 rad': Shift(0.3, lambda s: replace(s, base_quat_xyzw=multiply_xyzw(s.base_quat_xyzw, PITCHED_XYZW))),
    'encoder offset 0.2 rad, one thigh': Shift(0.0, lambda s: replace(s, joint_pos=s.joint_pos + ONE_THIGH)),
    '+5 kg': Shift(0.0, ranges=Ranges(base_mass=(5.0, 5.0))),
    'friction 0.1': Shift(0.3, ranges=Ranges(friction=(0.1, 0.1))),
    '40 ms extra delay': Shift(0.4, ranges=Ranges(action_delay_s=(0.04, 0.06))),
}


def alarms(shift, size, seed):
    """Return the level (ticks, size) of each robot up to its fall, above 1 where the alarm is on, and the tick of its fall."""
    contract = load_contract('go2_velocity')
    statistics, components = load_statistics(contract), Components(contract)
    stack = FleetStack(load_robot('go2'), contract, size, shift.ranges, seed)
    shift.apply(stack)
    scores, fall = [], np.full(size, np.iinfo(int).max)
    for tick in wander(stack, contract):
        scores.append(statistics.scores(components.join(stack.runner.observation, stack.runner.action)))
        fall[stack.fallen] = np.minimum(fall, tick)[stack.fallen]
        if stack.fallen.all():
            break
    reach, distance = (persistent(np.array(part)) for part in zip(*scores, strict=True))
    level = np.maximum(reach / statistics.thresholds[0], distance / statistics.thresholds[1])
    return np.where(np.arange(len(level))[:, None] <= fall, level, 0.0), fall


@cache
def familiar():
    """Return the worst level of each of 200 episodes as in simulation, of seeds that nobody has seen."""
    return alarms(Shift(0.0), FAMILIAR, 41000)[0].max(axis=0)


@pytest.mark.timeout(900)
def test_familiar_episodes_raise_few_false_alarms():
    false = (familiar() > 1).mean()
    print(f'\nfalse alarms: {100 * false:.1f} % of {FAMILIAR} familiar episodes')
    assert false <= 0.025


@pytest.mark.timeout(900)
@pytest.mark.parametrize('name', SHIFTS)
def test_shift(name):
    level, fall = alarms(SHIFTS[name], SHIFTED, 50000 + list(SHIFTS).index(name))
    worst = level.max(axis=0)
    found = worst > 1
    area = (worst[:, None] > familiar()).mean()  # under the curve: a shifted episode is more unusual than a familiar one
    when = 0.02 * (np.median((level > 1).argmax(axis=0)[found]) + 1) if found.any() else np.nan
    fell = fall < np.iinfo(int).max
    print(f'\n| {name} | {fell.mean():.0%} | {area:.3f} | {found.mean():.0%} | {when:.2f} s |')
    assert found.mean() >= SHIFTS[name].found
