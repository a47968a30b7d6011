# SPDX-License-Identifier: Apache-2.0
"""Randomised robots that stand up and walk, each behind a `SafetyFilter` of its own: the ranges and pushes of `evaluate`.

Physics, sensor noise and policy are computed for all at once; the filters are the very objects of the node, one per robot,
and see what its sensors say 500 times a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from bench.margins import Margins
from sim2real_ros.contract import Contract
from sim2real_ros.policy import PolicyRunner
from sim2real_ros.policy.novelty import NoveltyMonitor
from sim2real_ros.robot import Robot
from sim2real_ros.rotations import tilt
from sim2real_ros.safety import Mode, SafetyFilter
from sim2real_ros.safety.certificate import Certificate
from sim2real_ros.safety.limits import Limit
from sim2real_ros.safety.modes import Event
from sim2real_ros.signals import Gains, JointTargets, RobotState
from sim2real_ros.sim.fleet import Fleet
from sim2real_ros.sim.randomization import Ranges
from sim2real_ros.sim.verdict import fallen
from sim2real_ros.sim.world import World
from sim2real_ros.timing import tick_due

START = (Event.DAMP, Event.POSE, Event.ACTIVATE)
START_S = 30.0  # by then a robot must have been activated
SETTLE_S = 1.0  # of zero command and no push after that
COMMAND_S = (3.0, 7.0)  # a command lasts so long
STILL = 0.15  # share of the commands that are zero
AFTERMATH_S = 1.0  # a fallen robot is watched so long
CALM_S = 1.0  # after a push
LIFT, JITTER = 0.02, 0.02  # m, rad, of the start
FIELDS = ('position', 'velocity', 'effort')


@dataclass(slots=True)
class Alarm:
    """One trip or withdrawal."""

    name: str
    message: str
    mode: str  # that was left
    at_s: float  # since activation; before it: since the start, negative
    lean: float  # rad, true
    fallen: bool


@dataclass(slots=True)
class Episode:
    """What one robot went through."""

    walked_s: float = 0.0
    entry_s: float = np.nan  # from the start to the mode active
    alarms: list[Alarm] = field(default_factory=list)
    fell: bool = False
    warned_s: dict[str, float] = field(default_factory=dict)  # by name, while upright
    novel: dict[str, int] = field(default_factory=dict)  # onsets of the novelty alarm by component, while upright
    torques: int = 0  # joint torques while walking, hand-overs left out
    altered: dict[str, int] = field(default_factory=dict)  # of them, by limit and `any`
    altered_at: dict[str, int] = field(default_factory=dict)  # of them, by joint
    calm: tuple[int, int] = (0, 0)  # torques, and altered ones, more than `CALM_S` after a push
    levels: dict[str, tuple[float, float]] = field(default_factory=dict)  # by monitor: highest, lasting


class Walk:
    """One episode of B robots at a time; arrays are (B, ...), joints in robot order."""

    def __init__(self, robot: Robot, contract: Contract, size: int, seed: int, certificate: Certificate) -> None:
        """Draw the robots and lay them down."""
        self.robot, self.contract, self.size, self._dt = robot, contract, size, 1.0 / robot.sensors.rate_hz
        self.fleet = Fleet(robot, size, ranges=Ranges(), seed=seed, timestep=self._dt, threads=1)
        self.rng, own, n = self.fleet.rng, self.fleet.randomizer, len(robot.joints)
        figures = robot.simulated()
        self.fleet.reset(np.arange(size), robot.pose(figures.start_pose), World(robot).base_position()[2] + LIFT, JITTER)
        self.runner = PolicyRunner(contract, (size,))
        self._to_policy = np.array([robot.joints.index(joint) for joint in contract.joints])
        to_robot = np.array([contract.joints.index(joint) for joint in robot.joints])
        self._to_robot, gains = to_robot, contract.gains
        self._stiffness, self._damping = gains.stiffness[to_robot] * own.stiffness, gains.damping[to_robot] * own.damping
        self.filters = [SafetyFilter(robot, certificate=certificate) for _ in range(size)]
        for i, safety in enumerate(self.filters):
            own_gains = Gains(self._stiffness[i, self._to_policy], self._damping[i, self._to_policy])
            safety.accept(replace(contract, gains=own_gains))
        self._novelty = [NoveltyMonitor.of(contract) for _ in range(size)]
        self._novel = np.zeros(size, dtype=bool)
        self.margins = Margins(robot, size, contract.period_s)
        self.episodes = [Episode() for _ in range(size)]
        self.alive, self.active, self.fallen = np.ones(size, bool), np.zeros(size, bool), np.zeros(size, bool)
        self._since = np.full(size, np.nan)  # s, of the activation
        self._fell = np.full(size, np.inf)
        self._asked = [list(START) for _ in range(size)]
        self.command, self._until = np.zeros((size, 3)), np.zeros(size)
        # targets count from the next joint state on, or after the drawn delay
        self._delay = np.maximum(1, np.ceil(own.delay_s / self._dt - 1e-9)).astype(int)
        self._due: defaultdict[int, list[tuple[int, JointTargets]]] = defaultdict(list)
        self._torque, self._limited = np.zeros((size, n)), np.zeros((size, n), np.uint8)
        self._masks, self._altered_at = np.zeros((256, size), dtype=int), np.zeros((size, n), dtype=int)
        self._calm = np.zeros((2, size), dtype=int)
        self._pushed = np.full(size, -np.inf)  # s, last push
        self._walked, self._followed = (
            np.zeros(size, dtype=int),
            np.zeros(size, dtype=int),
        )  # ticks, with hand-overs and without
        self._step = 0

    def run(self, seconds: float, progress: Callable[[], None]) -> list[Episode]:
        """Run until every robot has walked for so long, fallen or been stopped; `progress` is called ten times a second."""
        while self.alive.any():
            self._tick()
            if self._step % round(0.1 / self._dt) == 0:
                progress()
                self._retire(seconds)
        return self._close()

    def _tick(self) -> None:
        stamp = self._step * self._dt
        state = self.fleet.sense(stamp)
        if tick_due(stamp, stamp - self._dt, self.contract.period_s):
            self._operate(stamp)
            self._policy(state)
        for i, targets in self._due.pop(self._step, ()):
            self.filters[i].set_targets(self.contract.id, targets)
        for i in np.flatnonzero(self.alive).tolist():
            self._filter(i, state)
        upright = self.alive & ~self.fallen
        self.margins.see_state(state, upright)
        self._count(upright & self.active)
        self.fleet.ctrl[:] = self._torque * self.fleet.randomizer.strength
        self.fleet.batch.step()
        self._step += 1

    def _filter(self, i: int, state: RobotState) -> None:
        safety, before = self.filters[i], self.filters[i].mode
        imu = state.base_quat_xyzw[i], state.base_ang_vel[i]  # type: ignore[index]
        safe = safety.step(RobotState(state.stamp, state.joint_pos[i], state.joint_vel[i], *imu))
        if safe is not None:
            self._torque[i], self._limited[i] = safe.torque, safe.limited
        if not self.fallen[i] and (warnings := safety.warnings):
            warned = self.episodes[i].warned_s
            for name in warnings:
                warned[name] = warned.get(name, 0.0) + self._dt
        if safety.mode is not before:
            self._alarm(i, before, state.stamp)
        elif asked := self._asked[i]:
            if safety.request(asked[0]) is None:
                asked.pop(0)
            if not asked:
                self.active[i], self._since[i], self.episodes[i].entry_s = True, state.stamp, state.stamp

    def _alarm(self, i: int, before: Mode, stamp: float) -> None:
        """Note that the filter has left a mode by itself; the robot is out."""
        fault, lean = self.filters[i].fault, float(tilt(self.fleet.quat_xyzw[i]))
        name, _, message = self.filters[i].last_change.partition(': ')
        at = stamp - self._since[i] if self.active[i] else stamp - START_S
        down = bool(self.fallen[i] or (self.active[i] and fallen(self.fleet.quat_xyzw[i], self.fleet.qpos[i, 2])))
        self.episodes[i].fell |= down
        self.episodes[i].alarms.append(Alarm(fault.name if fault else name, message, before.value, at, lean, down))
        self._out(i)

    def _out(self, i: int) -> None:
        self.alive[i] = self.active[i] = False
        self._torque[i] = 0.0

    def _operate(self, stamp: float) -> None:
        """Give commands and pushes, and see who has fallen."""
        walking = self.active & ~self.fallen & (stamp - self._since >= SETTLE_S)
        new = np.flatnonzero(walking & (stamp >= self._until))
        velocity = self.contract.file.commands.velocity
        if velocity is not None and new.size:
            low, high = np.array([velocity.x, velocity.y, velocity.yaw]).T
            self.command[new] = self.rng.uniform(low, high, (new.size, 3))
            self.command[new[self.rng.uniform(size=new.size) < STILL]] = 0.0
            self._until[new] = stamp + self.rng.uniform(*COMMAND_S, new.size)
        pushed = walking & (self.rng.uniform(size=self.size) < self.contract.period_s / self.fleet.ranges.push_interval_s)
        self.fleet.push(np.flatnonzero(pushed))
        self._pushed[pushed] = stamp
        down = self.active & fallen(self.fleet.quat_xyzw, self.fleet.qpos[:, 2])
        self._fell[down & ~self.fallen] = stamp
        self.fallen |= down

    def _policy(self, seen: RobotState) -> None:
        self.runner.reset(~self.active)  # until the robot follows, every tick is a first tick
        order, rates = self._to_policy, seen.base_ang_vel
        state = RobotState(
            seen.stamp, seen.joint_pos[:, order], seen.joint_vel[:, order], seen.base_quat_xyzw, rates, self.fleet.lin_vel
        )  # fmt: skip
        targets = self.runner.step(state, self.command)
        parts = [np.broadcast_to(getattr(targets, name), state.joint_pos.shape) for name in FIELDS]
        for i in np.flatnonzero(self.alive).tolist():
            self._due[self._step + int(self._delay[i])].append((i, JointTargets(seen.stamp, *(part[i] for part in parts))))
        upright = self.active & ~self.fallen
        in_order = JointTargets(seen.stamp, *(part[:, self._to_robot] for part in parts))
        self.margins.see_targets(in_order, self._stiffness, self._damping, upright)
        for i in np.flatnonzero(upright).tolist():
            self._see_novelty(i)

    def _see_novelty(self, i: int) -> None:
        monitor = self._novelty[i]
        if monitor is None:
            return
        observation = {name: values[i] for name, values in self.runner.observation.items()}
        finding = monitor.update(observation, self.runner.action[i])
        if finding is not None and not self._novel[i]:
            novel = self.episodes[i].novel
            novel[finding.component] = novel.get(finding.component, 0) + 1
        self._novel[i] = finding is not None

    def _count(self, walking: np.ndarray) -> None:
        """Count the altered torques of the robots `walking` (B,), those in a hand-over left out."""
        followed = walking & ~(self._limited & np.uint8(Limit.BLEND)).any(axis=1)
        altered = np.count_nonzero(self._limited, axis=1)
        self.margins.see_altered(altered, followed)
        self._walked += walking
        self._followed += followed
        calm = followed & (self._step * self._dt - self._pushed > CALM_S)
        self._calm += np.stack((calm, calm * altered))
        self._altered_at += followed[:, None] * (self._limited > 0)
        for i in np.flatnonzero(followed & (altered > 0)).tolist():
            np.add.at(self._masks[:, i], self._limited[i], 1)

    def _retire(self, seconds: float) -> None:
        """Take out who has walked for long enough, lies on the floor or could not be activated."""
        stamp = self._step * self._dt
        over = (stamp - self._since >= seconds) | (stamp - self._fell > AFTERMATH_S)
        over |= ~self.active & (stamp > START_S)
        for i in np.flatnonzero(over & self.alive).tolist():
            self._out(i)

    def _close(self) -> list[Episode]:
        for i, episode in enumerate(self.episodes):
            episode.fell |= bool(self.fallen[i])
            n, masks = len(self.robot.joints), self._masks[:, i]
            episode.walked_s, episode.torques = float(self._walked[i]) * self._dt, int(self._followed[i]) * n
            episode.calm = int(self._calm[0, i]) * n, int(self._calm[1, i])
            episode.altered_at = dict(zip(self.robot.joints, self._altered_at[i].tolist(), strict=True))
            episode.altered = {
                str(limit.name): int(sum(masks[mask] for mask in range(256) if mask & limit)) for limit in Limit if limit
            }
            episode.altered['any'] = int(masks[1:].sum())
            levels = self.margins.levels.items()
            episode.levels = {name: (float(level.highest[i]), float(level.lasting[i])) for name, level in levels}
        return self.episodes
