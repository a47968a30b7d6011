# SPDX-License-Identifier: Apache-2.0
"""`Endurance`: walks the free-running stack for long, keeps what it costs and misses, and kills parts of it at the end."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bench.watcher import Watcher
from sim2real_ros.errors import RunError
from sim2real_ros.tools.processes import Stack

SAMPLE_S = 10.0
COMMAND_S = (3.0, 7.0)
STILL = 0.15  # share of the commands that are zero
RANGE = np.array([[-0.8, 1.0], [-0.4, 0.4], [-1.0, 1.0]])  # m/s, m/s, rad/s
PATIENCE_S = 180.0  # for an activation, over the real-time factor
NEXT = {'': 'damp', 'off': 'damp', 'damping': 'pose', 'pose': 'activate', 'fault': 'reset'}  # what to ask for in a mode
TRIES = 5  # to have it walk for 3 s before the policy is killed
SAY_S = 1.5  # by then every node has sent its diagnostics


@dataclass(slots=True)
class Stop:
    """The robot was stopped without being asked to."""

    at: float  # s on the steady clock
    before: str  # mode that was left
    mode: str
    why: str


@dataclass(slots=True)
class Series:
    """What was seen; times on the steady clock."""

    memory: dict[str, list[tuple[float, float, int]]] = field(default_factory=dict)  # by node: time, MB, descriptors
    ticks: list[tuple[float, float]] = field(default_factory=list)  # of the safety node
    simulated: list[tuple[float, float]] = field(default_factory=list)  # s
    worst_tick_ms: list[float] = field(default_factory=list)  # of each second
    age_ms: list[float] = field(default_factory=list)  # of the command in force, once a second
    policy_tick_ms: list[float] = field(default_factory=list)  # once a second
    warned: dict[str, int] = field(default_factory=dict)  # seconds, by what the safety node said
    stops: list[Stop] = field(default_factory=list)
    given_up: str = ''  # why the robot could not be set up again
    walked_s: float = 0.0
    interventions: float = 0.0  # of the watchdog, while walking


class Endurance:
    """One run of a stack that has been started."""

    def __init__(self, stack: Stack, watcher: Watcher, seed: int, factor: float) -> None:
        self.stack, self.watcher, self.series = stack, watcher, Series()
        self._patience_s = PATIENCE_S / factor
        self._rng = np.random.default_rng(seed)

    def stand_up(self) -> None:
        """Bring the robot into the mode active.

        Raises:
            RunError: it could not be done in 3 minutes.
        """
        self.watcher.wait(lambda: len(self.watcher.values) == len(self.stack.children), 60, 'not every node sent diagnostics')
        self._rise()

    def _rise(self) -> None:
        """Ask for the next mode until it is active; a stall of the machine may stop the robot on the way, too."""
        watcher, deadline, refusal = self.watcher, time.monotonic() + self._patience_s, None
        watcher.command = np.zeros(3)
        while watcher.mode != 'active':
            if time.monotonic() > deadline:
                raise RunError(f'the robot could not be activated in {self._patience_s:g} s; {watcher.mode}: {refusal}')
            if self._note_stop() and watcher.mode == 'fault':
                watcher.call('mujoco_node/reset')  # once: joints that are put elsewhere look like broken encoders for a second
            refusal = watcher.request(NEXT[watcher.mode])
            if refusal is not None and 'leans' in refusal and watcher.mode == 'damping':
                watcher.request('estop')  # it lies on its back; only a latched robot may be lifted by the simulator
            watcher.spin(0.25)

    def walk(self, seconds: float) -> None:
        """Walk with a new command every few seconds; a robot that was stopped is set on its feet again."""
        watcher = self.watcher
        watcher.history = self._keep
        before = watcher.number('watchdog_node', 'interventions')
        begin = time.monotonic()
        next_command = next_sample = next_line = begin
        while (now := time.monotonic()) < begin + seconds:
            if now >= next_command:
                watcher.command = self._command()
                next_command = now + self._rng.uniform(*COMMAND_S)
            if now >= next_sample:
                self._sample()
                next_sample += SAMPLE_S
            watcher.spin(0.2)
            self.series.walked_s += (time.monotonic() - now) * (watcher.mode == 'active')
            if now >= next_line:
                next_line += 60.0
                print(f'{(now - begin) / 60:.0f} min, stopped {len(self.series.stops)} times', flush=True)
            if watcher.mode != 'active' and not self._recover():
                break
        self._sample()
        watcher.spin(SAY_S)
        watcher.history = lambda _: None
        self.series.interventions = watcher.number('watchdog_node', 'interventions') - before

    def _command(self) -> np.ndarray:
        return np.zeros(3) if self._rng.uniform() < STILL else self._rng.uniform(*RANGE.T)

    def _recover(self) -> bool:
        """Set a robot that was stopped on its feet; returns whether that could be done."""
        try:
            self._rise()
        except RunError as error:
            self.series.given_up = str(error)
        return not self.series.given_up

    def _note_stop(self) -> bool:
        """Note why the robot was stopped, once; returns whether it was, and not noted yet."""
        watcher, stops = self.watcher, self.series.stops
        at, mode = watcher.changes[-1] if watcher.changes else (0.0, '')
        before = watcher.changes[-2][1] if len(watcher.changes) > 1 else ''
        stopped = mode == 'fault' or (mode == 'damping' and before in ('pose', 'active'))
        if not stopped or (stops and stops[-1].at == at):
            return False
        deadline = time.monotonic() + SAY_S
        while float(watcher.values['safety_node']['at']) <= at and time.monotonic() < deadline:
            watcher.spin(0.02)
        stops.append(Stop(at, before, mode, str(watcher.values['safety_node'].get('last change', ''))))
        return True

    def _sample(self) -> None:
        for node, child in self.stack.children.items():
            self.series.memory.setdefault(node, []).append((time.monotonic(), resident_mb(child.pid), descriptors(child.pid)))

    def _keep(self, node: str) -> None:
        watcher, series, at = self.watcher, self.series, time.monotonic()
        if node == 'safety_node':
            series.ticks.append((at, watcher.number(node, 'ticks')))
            series.worst_tick_ms.append(1e-3 * watcher.number(node, 'worst tick us'))
            said = str(watcher.values[node]['message'])
            if said != watcher.values[node]['mode']:
                said = re.sub(r'\d+(\.\d+)?', '#', said)
                series.warned[said] = series.warned.get(said, 0) + 1
        elif node == 'mujoco_node':
            series.simulated.append((at, float(str(watcher.values[node]['message']).partition(' ')[0])))
            series.age_ms.append(watcher.number(node, 'command age ms', np.nan))
        elif node == 'policy_node':
            series.policy_tick_ms.append(watcher.number(node, 'last tick ms', np.nan))

    # --- the end

    def kill_policy(self, limit_s: float) -> tuple[float | None, str]:
        """SIGKILL the policy node while the robot walks; returns s until another mode was announced here, and why."""
        watcher = self.watcher
        for _ in range(TRIES):
            if watcher.mode != 'active' and not self._recover():
                break
            watcher.command = np.array([0.5, 0.0, 0.0])
            watcher.spin(3.0)
            if watcher.mode == 'active':
                break
        if watcher.mode != 'active':
            return None, f'the robot was not active but {watcher.mode}'
        count, killed = len(watcher.changes), time.monotonic()
        os.kill(self.stack.children['policy_node'].pid, signal.SIGKILL)
        self._spin_until(lambda: len(watcher.changes) > count, limit_s)
        if len(watcher.changes) == count:
            return None, 'no other mode was announced'
        watcher.spin(SAY_S)
        return watcher.changes[count][0] - killed, str(watcher.values['safety_node'].get('last change', ''))

    def kill_safety(self, limit_s: float) -> bool:
        """SIGKILL the safety node; returns whether the watchdog's commands then act in the simulator."""
        before = self.watcher.number('watchdog_node', 'interventions')
        os.kill(self.stack.children['safety_node'].pid, signal.SIGKILL)
        self._spin_until(self._guarded(before), limit_s)
        return self._guarded(before)()

    def _guarded(self, before: float) -> Callable[[], bool]:
        values = self.watcher.values
        return lambda: (
            self.watcher.number('watchdog_node', 'interventions') > before
            and values['mujoco_node'].get('command source') == 'watchdog'
        )

    def _spin_until(self, condition: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not condition() and time.monotonic() < deadline:
            self.watcher.spin(0.01)


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process, MB."""
    with open(f'/proc/{pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


def descriptors(pid: int) -> int:
    """Return how many file descriptors a process has open."""
    return len(os.listdir(f'/proc/{pid}/fd'))


class Others:
    """What the programs other than a few known ones take of the machine.

    Attributes:
        share: of all cores, from the beginning to `end`.
    """

    def __init__(self, known: list[int]) -> None:
        """Begin; `known` are the process ids of the few."""
        self._known, self.share = known, 0.0
        self._busy, self._total, self._own = self._read()

    def end(self) -> None:
        """Take the share."""
        busy, total, own = self._read()
        self.share = max(0.0, (busy - self._busy - (own - self._own)) / max(1.0, total - self._total))

    def _read(self) -> tuple[float, float, float]:
        """Return busy, total and own ticks of the kernel's clock."""
        with open('/proc/stat', encoding='ascii') as file:
            fields = [int(value) for value in file.readline().split()[1:9]]  # user nice system idle iowait irq softirq steal
        own = 0
        for pid in self._known:
            with open(f'/proc/{pid}/stat', encoding='ascii') as file:
                own += sum(int(value) for value in file.read().rsplit(')', 1)[1].split()[11:13])
        return float(sum(fields) - fields[3] - fields[4]), float(sum(fields)), float(own)
