# SPDX-License-Identifier: Apache-2.0
"""Torques that try to break a safety filter, and plants without end stops, so that what gets through shows.

`python test/adversary.py` prints what the filters let through, by robot, adversary and condition.
"""

from __future__ import annotations

import argparse
import textwrap
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np

from sim2real_ros.robot import Robot, load_robot
from sim2real_ros.sim.model import build_model

MODELS = Path(__file__).parent / 'models'
ROBOTS = ('arm7', 'go2', 'humanoid29')
SLOW = 1e-3  # rad/s: the sign of a speed below means nothing

# The interface of a filter: wanted torque, positions, velocities, s since the last call -> torque, reasons.
Apply = Callable[[np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray]]
Adversary = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # time s, positions, velocities -> torque N m
Recipe = Callable[[Robot, np.random.Generator], Adversary]


@cache
def fixed_robot(name: str) -> Robot:
    """Return a test robot (`arm7`, `humanoid29`) or a shipped one, its base bolted to the sky."""
    own = MODELS / f'{name}.yaml'
    return replace(load_robot(own if own.is_file() else name), floating=False)


@dataclass(frozen=True)
class Condition:
    """What separates the plant from what a filter believes, and how often the filter is called."""

    rate_hz: int = 500
    delay: float = 0.0  # s from command to torque
    mass: float = 1.0  # of the links, as a share of the model's
    noise: float = 0.0  # rad/s, standard deviation of a measured velocity

    @property
    def ideal(self) -> bool:
        """Whether the plant is the model and acts at once."""
        return self.delay == 0 and self.noise == 0 and self.mass == 1

    def __str__(self) -> str:
        return f'{self.rate_hz} Hz, {1000 * self.delay:g} ms, mass {self.mass:g}, noise {self.noise:g}'


ALL = Condition(500, 0.005, 1.2, 0.1)  # every trouble at once


class Plant:
    """A robot in the air without end stops and contacts.

    Attributes:
        q, v: (steps, n) what the joints did, one row per physics step since the last reset.
        torque: (steps, n) N m that acted.
    """

    def __init__(self, robot: Robot, condition: Condition, *, step: float = 0.001, seed: int = 0) -> None:
        self.robot, self.condition, self.step = robot, condition, step
        self._model = build_model(robot, timestep=step)
        self._model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        self._model.jnt_limited[:] = 0
        self._model.body_mass *= condition.mass
        self._model.body_inertia *= condition.mass
        self._data = mujoco.MjData(self._model)
        mujoco.mj_setConst(self._model, self._data)
        self._seed, self._lag = seed, round(condition.delay / step)
        self.reset(robot.pose(robot.simulation.start_pose))

    def reset(self, joint_pos: np.ndarray) -> None:
        """Put the robot at rest; no torque is under way."""
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = joint_pos
        mujoco.mj_forward(self._model, self._data)
        self._rng = np.random.default_rng(self._seed)
        self._queue = deque([np.zeros(len(joint_pos))] * self._lag)
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def measure(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities as the sensors give them."""
        v = self._data.qvel.copy()
        if self.condition.noise:
            v += self._rng.normal(0.0, self.condition.noise, v.shape)
        return self._data.qpos.copy(), v

    def advance(self, torque: np.ndarray, steps: int) -> bool:
        """Hold a torque for a number of physics steps; it acts after the delay. Returns whether all is finite."""
        for _ in range(steps):
            self._queue.append(torque)
            acting = self._queue.popleft()
            self._data.ctrl[:] = acting
            mujoco.mj_step(self._model, self._data)
            self._rows.append((self._data.qpos.copy(), self._data.qvel.copy(), acting))
        return bool(np.isfinite(self._data.qpos).all() and not self._data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number)

    @property
    def q(self) -> np.ndarray:
        return np.array([row[0] for row in self._rows])

    @property
    def v(self) -> np.ndarray:
        return np.array([row[1] for row in self._rows])

    @property
    def torque(self) -> np.ndarray:
        return np.array([row[2] for row in self._rows])


@dataclass(frozen=True)
class Outcome:
    """How far an attack came."""

    overshoot_rad: np.ndarray  # (n,) past the hard limit; negative: the joint kept that far inside
    speed_ratio: np.ndarray  # (n,) fastest speed as a share of the limit
    finite: bool  # torque and motion stayed finite
    torque_ratio: float  # largest torque sent as a share of the effort limit
    worst_rate: float  # largest change of the torque sent as a share of `safety.torque_rate`
    altered: float  # share of the wanted torques that were altered

    @property
    def overshoot(self) -> float:
        """rad, of the worst joint; 0 when none left its range."""
        return max(0.0, float(self.overshoot_rad.max()))

    @property
    def speed(self) -> float:
        """Speed of the worst joint as a share of its limit."""
        return float(self.speed_ratio.max())


# --- what is attacked


def saturation(robot: Robot) -> Apply:
    """Return the negative control: effort clipped, and none outward at a limit or above the speed limit.

    As `joint_limits` of ros2_control does without soft limits. A joint arrives at its limit at full speed.
    """
    limits = robot.limits

    def apply(torque: np.ndarray, q: np.ndarray, v: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        no_up = ((q >= limits.upper) & (v >= 0)) | (v > limits.velocity)
        no_down = ((q <= limits.lower) & (v <= 0)) | (v < -limits.velocity)
        final = np.clip(torque, np.where(no_down, 0.0, -limits.effort), np.where(no_up, 0.0, limits.effort))
        return final, (final != torque).astype(np.uint8)

    return apply


# --- adversaries


def horizon(robot: Robot) -> float:
    """Return how many s an attack must last for the slowest joint to come to a limit; most start nearer to one."""
    limits = robot.limits
    return 1.0 + 0.6 * float(((limits.upper - limits.lower) / limits.velocity).max())


def start_pose(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    """Return a pose inside the soft range, more often near its ends than in its middle."""
    low, high = soft_range(robot)
    return low + rng.beta(0.5, 0.5, len(low)) * (high - low)


def soft_range(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return the position limits less the margin."""
    margin = robot.safety.position_margin
    return robot.limits.lower + margin, robot.limits.upper - margin


def push(robot: Robot, rng: np.random.Generator) -> Adversary:
    """Full torque towards one limit of each joint until it is there, then towards the other."""
    sign, effort, turn = random_signs(robot, rng), robot.limits.effort, 0.6 * horizon(robot)
    return lambda t, q, v: (sign if t < turn else -sign) * effort


def telegraph(robot: Robot, rng: np.random.Generator, dwells: tuple[float, ...] = (0.05, 0.15)) -> Adversary:
    """Full torque, the sign drawn anew at every dwell time; each joint has its own phase and one of the dwell times."""
    n, effort = len(robot.joints), robot.limits.effort
    dwell = rng.choice(dwells, n)
    phase = rng.random(n)
    signs = rng.choice([-1.0, 1.0], (4096, n))
    index = np.arange(n)
    return lambda t, q, v: signs[(t / dwell + phase).astype(int) % len(signs), index] * effort


def pump(robot: Robot, rng: np.random.Generator) -> Adversary:
    """Full torque along the speed: the most energy that can be put in."""
    first, effort = random_signs(robot, rng), robot.limits.effort
    return lambda t, q, v: np.where(np.abs(v) < SLOW, first, np.sign(v)) * effort


def mixed(robot: Robot, rng: np.random.Generator) -> Adversary:
    """Each joint does one of the others, drawn anew every 0.3 s."""
    parts = [recipe(robot, rng) for recipe in (push, telegraph, pump)]
    n = len(robot.joints)
    drawn, index = rng.integers(len(parts), size=(1024, n)), np.arange(n)

    def torque(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([part(t, q, v) for part in parts])[drawn[int(t / 0.3) % len(drawn)], index]

    return torque


def targets(robot: Robot, rng: np.random.Generator) -> Adversary:
    """Stiff position control whose targets jump between half a radian beyond the one and the other limit."""
    low, high, effort = robot.limits.lower - 0.5, robot.limits.upper + 0.5, robot.limits.effort
    side = telegraph(robot, rng, (0.15, 0.3))
    return lambda t, q, v: 5 * effort * (np.where(side(t, q, v) > 0, high, low) - q) - 0.01 * effort * v


def random_signs(robot: Robot, rng: np.random.Generator) -> np.ndarray:
    """Return -1 or 1 for each joint."""
    return rng.choice([-1.0, 1.0], len(robot.joints))


RECIPES: dict[str, Recipe] = {recipe.__name__: recipe for recipe in (push, telegraph, pump, mixed, targets)}
ADVERSARIES = (*RECIPES, 'searched')


def attack(plant: Plant, apply: Apply, adversary: Adversary, rate_hz: int, seconds: float, give_up: float = 3.0) -> Outcome:
    """Let an adversary at a plant through a filter.

    Args:
        plant: at its start.
        apply: the filter; it must not have been used before.
        adversary: says what it wants from what the sensors say.
        rate_hz: calls of the filter per second.
        seconds: duration.
        give_up: rad past a limit at which the attack ends as won.
    """
    limits, dt = plant.robot.limits, 1 / rate_hz
    steps, sent, altered = round(dt / plant.step), [], 0.0
    for k in range(round(seconds * rate_hz)):
        q, v = plant.measure()
        wanted = adversary(k * dt, q, v)
        torque, _ = apply(wanted, q, v, dt)
        torque = np.array(torque, dtype=float)
        sent.append(torque)
        altered += float((torque != wanted).mean())
        past = float(np.maximum(q - limits.upper, limits.lower - q).max())
        if not (np.isfinite(torque).all() and plant.advance(torque, steps)) or past > give_up:
            break
    q, v, torques = plant.q, plant.v, np.array(sent)
    change = np.abs(np.diff(torques, axis=0, prepend=0.0)) / (plant.robot.safety.torque_rate * dt)
    return Outcome(
        np.maximum(q - limits.upper, limits.lower - q).max(axis=0, initial=-np.inf),
        (np.abs(v) / limits.velocity).max(axis=0, initial=0.0),
        bool(np.isfinite(torques).all() and np.isfinite(q).all()),
        float((np.abs(torques) / limits.effort).max()),
        float(change.max()),
        altered / len(sent),
    )


def search(
    plant: Plant, make: Callable[[], Apply], rate_hz: int, seconds: float, evaluations: int, rng: np.random.Generator
) -> Outcome:
    """Search start pose and switching times of a telegraph that drive a joint farthest past its limit.

    An evolution: the first third are drawn at random; from then on each attack is one of the four best so far with noise.
    The score of an attack is the overshoot of its worst joint, negative inside the range, so that there is a slope
    to climb before anything breaks.
    """
    robot, n, switches = plant.robot, len(plant.robot.joints), 24
    low, high = soft_range(robot)

    def draw() -> Genome:
        return Genome(rng.beta(0.5, 0.5, n), random_signs(robot, rng), rng.exponential(seconds / switches, (n, switches)))

    def score(genome: Genome) -> tuple[float, Genome, Outcome]:
        plant.reset(low + genome.pose * (high - low))
        outcome = attack(plant, make(), genome.adversary(robot), rate_hz, seconds)
        return float(outcome.overshoot_rad.max()), genome, outcome

    drawn = max(1, evaluations // 3)
    best = sorted((score(draw()) for _ in range(drawn)), key=lambda one: -one[0])[:4]
    for k in range(drawn, evaluations):
        best = sorted([*best, score(best[k % len(best)][1].child(rng))], key=lambda one: -one[0])[:4]
    return best[0][2]


@dataclass(frozen=True)
class Genome:
    """Start pose as a share of the soft range (n,), first signs (n,), times between switches (n, switches) in s."""

    pose: np.ndarray
    sign: np.ndarray
    times: np.ndarray

    def child(self, rng: np.random.Generator) -> Genome:
        """Return a copy with noise; now and then a joint starts with the other sign."""
        return Genome(
            np.clip(self.pose + rng.normal(0, 0.1, self.pose.shape), 0, 1),
            np.where(rng.random(self.sign.shape) < 0.1, -self.sign, self.sign),
            self.times * np.exp(rng.normal(0, 0.3, self.times.shape)),
        )

    def adversary(self, robot: Robot) -> Adversary:
        """Return the telegraph."""
        at, effort = np.cumsum(self.times, axis=1), self.sign * robot.limits.effort
        return lambda t, q, v: effort * (1 - 2 * ((at <= t).sum(axis=1) % 2))


# --- the table

Make = Callable[[Robot, Condition], Apply]


def worst(
    make: Make, robot: Robot, adversary: str, condition: Condition, seeds: Iterable[int] = (0,), evaluations: int = 50
) -> Outcome:
    """Return the outcome of the seed with the largest overshoot; its speed, rate and torque are the worst of all seeds."""
    outcomes = []
    for seed in seeds:
        rng, plant = np.random.default_rng(seed), Plant(robot, condition, seed=seed)
        if adversary == 'searched':
            seconds = 0.8 * horizon(robot)
            outcomes.append(search(plant, lambda: make(robot, condition), condition.rate_hz, seconds, evaluations, rng))
            continue
        plant.reset(start_pose(robot, rng))
        act = RECIPES[adversary](robot, rng)
        outcomes.append(attack(plant, make(robot, condition), act, condition.rate_hz, horizon(robot)))
    return Outcome(
        max((o.overshoot_rad for o in outcomes), key=lambda over: float(over.max())),
        np.max([o.speed_ratio for o in outcomes], axis=0),
        all(o.finite for o in outcomes),
        max(o.torque_ratio for o in outcomes),
        max(o.worst_rate for o in outcomes),
        float(np.mean([o.altered for o in outcomes])),
    )


SINGLE = (
    Condition(1000), Condition(500), Condition(200), Condition(500, delay=0.002), Condition(500, delay=0.005),
    Condition(500, delay=0.01), Condition(500, mass=0.8), Condition(500, mass=1.2), Condition(500, noise=0.1),
)  # fmt: skip
RATES, DELAYS = (200, 500, 1000), (0.0, 0.002, 0.005, 0.01)
TROUBLED = tuple(Condition(rate, delay, ALL.mass, ALL.noise) for rate in RATES for delay in DELAYS)
CONTROLS = (Condition(500), ALL)  # for filters that hold nothing anyway
SEARCHED = 2  # of the conditions, those in which the others came farthest


@dataclass(frozen=True)
class Row:
    """What got through one filter on one robot in one condition."""

    filter: str
    robot: str
    condition: Condition
    reached: float  # rad past the hard limit; negative: every joint kept that far inside
    by: str  # the adversary that came farthest
    speed: float  # of the limit
    own: float  # rad, the same of the joints that can stand what their neighbours do to them
    own_speed: float


def row(name: str, robot: Robot, condition: Condition, outcomes: dict[str, Outcome], own: np.ndarray) -> Row:
    """Return the worst of the outcomes, by adversary; `own` (n,) tells the joints that can stand their neighbours."""
    by = max(outcomes, key=lambda a: float(outcomes[a].overshoot_rad.max()))
    over = np.max([o.overshoot_rad for o in outcomes.values()], axis=0)
    speed = np.max([o.speed_ratio for o in outcomes.values()], axis=0)
    return Row(
        name, robot.name, condition, float(over.max()), by, float(speed.max()), float(over[own].max()), float(speed[own].max())
    )


def table(
    filters: dict[str, Make], robots: Sequence[str], adversaries: Sequence[str], seeds: int, evaluations: int
) -> list[Row]:
    """Measure every filter, robot and condition; each row is the worst of the adversaries or of a search."""
    from barriers import certificate  # noqa: PLC0415 - it needs this file

    rows = []
    for name, make in filters.items():
        held = name != 'saturation'
        for robot in map(fixed_robot, robots):
            own, found = certificate(robot.name).reaction <= 1, []
            for condition in (*SINGLE, *TROUBLED) if held else CONTROLS:
                outcomes = {a: worst(make, robot, a, condition, range(seeds)) for a in adversaries}
                found.append(row(name, robot, condition, outcomes, own))
            for near in sorted(found, key=lambda one: -one.reached)[: SEARCHED * held]:
                outcome = worst(make, robot, 'searched', near.condition, evaluations=evaluations)
                found.append(row(name, robot, near.condition, {'searched': outcome}, own))
            rows += found
    return rows


def summary(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table of worst cases."""
    lines = [
        '| filter | robot | overshoot | in | by | speed | in | overshoot, reaction ≤ 1 | speed, reaction ≤ 1 |',
        '|---|---|---|---|---|---|---|---|---|',
    ]
    for key in dict.fromkeys((r.filter, r.robot) for r in rows):
        of = [r for r in rows if (r.filter, r.robot) == key]
        far, fast = max(of, key=lambda r: r.reached), max(of, key=lambda r: r.speed)
        own, own_speed = max(r.own for r in of), max(r.own_speed for r in of)
        lines.append(
            f'| {far.filter} | {far.robot} | {past(far.reached)} | {far.condition} | {far.by} '
            f'| {fast.speed:.2f} | {fast.condition} | {past(own)} | {own_speed:.2f} |'
        )
    return lines


def _beyond(rows: Sequence[Row]) -> str:
    """Return where a barrier let more through than the bars."""
    from barriers import BARS  # noqa: PLC0415 - it needs this file

    bars = {make.__name__: bar.overshoot_rad for make, bar in BARS.items()}
    worse = [r for r in rows if r.filter in bars and r.reached > bars[r.filter]]
    return '; '.join(f'{r.filter} {r.robot} {past(r.reached)} rad ({r.condition}, {r.by})' for r in worse) or 'nothing'


def past(reached: float) -> str:
    """Return an overshoot in rad as text; 0 for a joint that kept inside."""
    return f'{max(0.0, reached):.4f}'


def markdown(rows: Sequence[Row], arguments: argparse.Namespace) -> str:
    """Return the rows as a page."""
    from barriers import PER_JOINT_MARGIN, certificate  # noqa: PLC0415 - it needs this file

    intro = (
        'Torques that try to break a robot: constant pushes, random switching, an energy pump, mixtures, jumping targets. '
        'Base held fast, end stops removed, so that what gets through shows. Overshoot past the hard limit in rad and fastest '
        'speed as a share of its limit, each the worst joint and the worst of the adversaries '
        f'{", ".join(arguments.adversaries)}; {arguments.seeds} seed(s). In the {SEARCHED} conditions in which they came '
        'farthest, start pose and switching times were also searched, '
        f'{arguments.evaluations} attacks each. The filter is told the rate and 1.5 times the delay, nothing of mass and noise '
        '(rad/s, standard deviation of a velocity). Saturation, as most deployments have it, is the negative control; '
        'an attack ends 3 rad past a limit.'
    )
    lines = [
        '# What adversaries get past the barriers',
        '',
        f'<!-- Written by `python test/adversary.py --seeds {arguments.seeds} --markdown docs/safety-adversary.md`. -->',
        '',
        *textwrap.wrap(intro, 140),
        '',
        '## Worst cases',
        '',
        *summary(rows),
        '',
        *textwrap.wrap(
            'The bars that the tests hold, from starts of their own: coupled 0.0005 rad and 1.2 times the speed limit on every '
            f'robot; per joint 0.06 rad at a margin of {PER_JOINT_MARGIN} rad, and no bar on speed. Where neighbours can '
            'push a joint harder than its own motor can hold (`reaction` above 1 in `sim2real certify`) nothing but these '
            f'tests speaks for the per-joint barrier. **Beyond the bars**, from the starts of this page: {_beyond(rows)}.',
            140,
        ),
        '',
    ]
    for name in arguments.robots:
        robot, reaction = fixed_robot(name), certificate(name).reaction
        above = [joint for joint, share in zip(robot.joints, reaction, strict=True) if share > 1]
        lines += [*textwrap.wrap(f'Reaction above 1, {name}: {", ".join(above) or "none"}.', 140), '']
    lines += [
        '## Every condition',
        '',
        '| filter | robot | condition | overshoot | by | speed |',
        '|---|---|---|---|---|---|',
    ]
    lines += [f'| {r.filter} | {r.robot} | {r.condition} | {past(r.reached)} | {r.by} | {r.speed:.2f} |' for r in rows]
    return '\n'.join(lines) + '\n'


def main() -> None:
    """Parse the command line and print the table."""
    from barriers import coupled, per_joint  # noqa: PLC0415 - it needs this file

    makers: dict[str, Make] = {'coupled': coupled, 'per_joint': per_joint, 'saturation': lambda robot, _: saturation(robot)}
    parser = argparse.ArgumentParser(description='What adversarial torques get past the safety filters.')
    parser.add_argument('--filters', nargs='+', choices=makers, default=list(makers))
    parser.add_argument('--robots', nargs='+', choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument('--adversaries', nargs='+', choices=ADVERSARIES, default=list(RECIPES))
    parser.add_argument('--seeds', type=int, default=1)
    parser.add_argument('--evaluations', type=int, default=50, help='of the search')
    parser.add_argument('--markdown', type=Path, help='write the table to this file')
    arguments = parser.parse_args()
    chosen = {name: makers[name] for name in arguments.filters}
    rows = table(chosen, arguments.robots, arguments.adversaries, arguments.seeds, arguments.evaluations)
    text = markdown(rows, arguments)
    print(text)
    if arguments.markdown is not None:
        arguments.markdown.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
