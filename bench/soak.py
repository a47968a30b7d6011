# SPDX-License-Identifier: Apache-2.0
"""The stack in real time for long: memory, missed states and reactions, with the machine's own lateness beside them.

`python -m bench.soak --minutes 30`. Policy, safety, watchdog and simulator node run freely at 500 Hz while the robot walks;
a bare loop in another process tells what this machine does to any loop. At the end the policy is killed, then the safety
node. When the robot is stopped meanwhile, that is noted with what the bare loop suffered then, and it is set up again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import theilslopes

from bench import evidence
from bench.baseline import PERIOD_S
from bench.endurance import Endurance, Others, Series
from bench.watcher import Watcher
from sim2real_ros import bringup
from sim2real_ros.errors import RunError, Sim2RealError
from sim2real_ros.paths import writable_file
from sim2real_ros.robot import load_robot
from sim2real_ros.ros.realtime import ADVICE, HIGHEST
from sim2real_ros.tools.arguments import not_negative
from sim2real_ros.tools.processes import Stack

IDLE_SHARE = 0.1  # of the cores that other programs may take for the figures to be worth anything
SHOWN = 10  # stops that are listed
STALL_S = 0.01  # of the bare loop; the robot is stopped when states come 20 ms apart
SETTLE_S = 120.0  # of memory, left out of the fit
SHORTEST_FIT_S = 600.0  # a slope over less says nothing
GROWTH_MB_H = 2.0
POLICY_BAR_S = 0.1  # 3 policy periods, and the time until the announcement is here
WATCHDOG_BAR_S = 5.0  # of its diagnostics, which come once a second
NEAR_S = 0.1  # before and after a stop: a stall of the bare loop in this time may explain it
WINDOW_S = 1.1  # before a stop for what is counted over a second


def main() -> int:
    """Soak; returns 0 when memory did not grow, every reaction came, and only stalls of an idle machine stopped the robot."""
    arguments = _arguments()
    for option in ('json', 'markdown'):
        if getattr(arguments, option) is not None:
            writable_file(getattr(arguments, option), f'--{option}')
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', '81')
    try:
        figures = soak(60.0 * arguments.minutes, arguments.seed, arguments.real_time_factor, arguments.realtime_priority)
    except Sim2RealError as error:
        print(f'soak: {error}', file=sys.stderr)
        return 1
    except PermissionError:
        print(f'soak: --realtime-priority {arguments.realtime_priority}: {ADVICE.partition(";")[0]}', file=sys.stderr)
        return 1
    show(figures)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')
    if arguments.markdown is not None:
        evidence.put(arguments.markdown, 'soak-realtime' if arguments.realtime_priority else 'soak', markdown(figures))
    return 0 if figures['good'] else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m bench.soak', description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=30.0, help='of walking (default 30)')
    parser.add_argument('--real-time-factor', type=float, default=1.0, help='less than 1 for a try on a busy machine')
    parser.add_argument('--realtime-priority', type=int, default=0, help='SCHED_FIFO priority of nodes and bare loop, 1 to 98')
    parser.add_argument('--seed', type=not_negative, default=0, help='of the commands')
    parser.add_argument('--json', type=Path, help='also write the figures here')
    parser.add_argument('--markdown', type=Path, help='put the figures into this document, as docs/safety-evidence.md')
    arguments = parser.parse_args()
    if not 0.5 <= arguments.minutes <= 10000:
        parser.error('--minutes: 0.5 and more are possible')
    if not 0 <= arguments.realtime_priority <= HIGHEST:
        parser.error(f'--realtime-priority: 0 to {HIGHEST} are possible')
    if not 0.01 <= arguments.real_time_factor <= 1:
        parser.error('--real-time-factor: 0.01 to 1 are possible')
    return arguments


def soak(seconds: float, seed: int, factor: float = 1.0, priority: int = 0) -> dict:
    """Run everything; returns all figures.

    Raises:
        RunError: the stack could not be started or the robot not be activated.
    """
    options, ending = bringup.Options(log_level='fatal', real_time_factor=factor, realtime_priority=priority), [False]
    with tempfile.TemporaryDirectory() as folder, Stack(bringup.simulation(options), options) as stack:
        bare = Path(folder) / 'bare.json'
        watcher = Watcher('', lambda: None if ending[0] else stack.check())
        with watcher:
            run = Endurance(stack, watcher, seed, factor)
            try:
                with _bare_loop(bare, priority) as child:
                    run.stand_up()
                    others = Others([os.getpid(), child, *(node.pid for node in stack.children.values())])
                    print(f'walking for {seconds / 60:g} minutes', flush=True)
                    run.walk(seconds)
                    others.end()
            except RunError as error:
                raise RunError(f'{error}; {_busy(bare)}') from None
            ending[0] = True
            reaction = run.kill_policy(2.0 / factor)
            guarded = run.kill_safety(WATCHDOG_BAR_S)
            baseline = json.loads(bare.read_text(encoding='utf-8'))
    figures = summary(run.series, baseline, factor, reaction, guarded)
    return figures | {
        'realtime_priority': priority,
        'others_share': others.share,
        'good': figures['good'] and others.share <= IDLE_SHARE,
    }


def _busy(bare: Path) -> str:
    base = json.loads(bare.read_text(encoding='utf-8'))
    return (
        f'a bare loop at 500 Hz was late by up to {base["max_ms"]:.0f} ms meanwhile, {base["misses"]} of '
        f'{base["wakes"]} times by more than 2 ms'
    )


@contextmanager
def _bare_loop(file: Path, priority: int) -> Iterator[int]:
    child = subprocess.Popen([sys.executable, '-m', 'bench.baseline', str(file)])
    try:
        if priority:
            os.sched_setscheduler(child.pid, os.SCHED_FIFO, os.sched_param(priority))
        yield child.pid
    finally:
        child.send_signal(signal.SIGTERM)
        if child.wait(30) != 0:
            raise RunError('the bare loop ended with an error; its own message is above')


def summary(series: Series, baseline: dict, factor: float, reaction: tuple[float | None, str], guarded: bool) -> dict:
    """Return all figures, and the verdict; `factor` is the real-time factor that was asked for."""
    memory = {node: _memory(samples) for node, samples in series.memory.items()}
    stops = [
        asdict(stop) | {'stall_ms': _stall_ms(baseline, stop.at, stop.why)}
        for stop in series.stops
        if not stop.why.startswith('estop')
    ]
    grown = [node for node, m in memory.items() if m['slope_mb_h'] is not None and m['slope_mb_h'] > GROWTH_MB_H]
    grown += [node for node, m in memory.items() if m['descriptors'][1] > m['descriptors'][0] + 2]
    reacted = reaction[0] is not None and reaction[0] <= POLICY_BAR_S / factor and reaction[1].startswith('policy_timeout')
    unexplained = [stop for stop in stops if not _explained(stop)]
    stalls = sum(late > STALL_S for _, late in baseline.pop('late'))
    return {
        'walked_s': series.walked_s, 'machine': evidence.machine(), 'load': os.getloadavg()[0],
        'baseline': baseline | {'stalls': stalls}, 'states': _states(series),
        'command_age_ms': _spread(series.age_ms), 'worst_tick_ms_of_each_second': _spread(series.worst_tick_ms),
        'policy_tick_ms': _spread(series.policy_tick_ms), 'watchdog_interventions': series.interventions,
        'safety_said_s': series.warned, 'stops': stops, 'unexplained_stops': len(unexplained), 'given_up': series.given_up,
        'memory': memory,
        'fit_long_enough': all(m['slope_mb_h'] is not None for m in memory.values()), 'grown': grown,
        'policy_killed': {'seconds': reaction[0], 'why': reaction[1], 'good': reacted}, 'safety_killed_watchdog_acts': guarded,
        'good': not grown and reacted and guarded and not unexplained and not series.given_up,
    }  # fmt: skip


def _memory(samples: list[tuple[float, float, int]]) -> dict:
    at, mb, count = np.array(samples).T
    later = at - at[0] >= SETTLE_S
    slope = None
    if later.any() and at[-1] - at[later][0] >= SHORTEST_FIT_S:
        # the median of all slopes: what a node keeps after its first trip is a step, no growth
        slope = float(theilslopes(mb[later], at[later])[0] * 3600)
    return {'mb': [mb[0], mb[-1], mb.max()], 'slope_mb_h': slope, 'descriptors': [int(count[0]), int(count[-1])]}


def _states(series: Series) -> dict:
    """Return how many of the states that the simulator sent were answered by the safety node."""
    at, ticks = np.array(series.ticks).T
    sent_at, simulated = np.array(series.simulated).T
    inside = (at >= sent_at[0]) & (at <= sent_at[-1])
    span = np.interp(at[inside][[0, -1]], sent_at, simulated)  # the two nodes do not report at the same time
    sent, answered = (span[1] - span[0]) * load_robot('go2').sensors.rate_hz, ticks[inside][-1] - ticks[inside][0]
    wall = at[inside][-1] - at[inside][0]
    return {
        'sent': float(sent), 'answered': float(answered), 'missed_share': float(1 - answered / sent),
        'real_time_factor': float((span[1] - span[0]) / wall),
    }  # fmt: skip


def _spread(values: list[float]) -> dict | None:
    finite = np.array([v for v in values if np.isfinite(v)])
    if not finite.size:
        return None
    return {'p50': float(np.median(finite)), 'p99': float(np.quantile(finite, 0.99)), 'max': float(finite.max())}


def _explained(stop: dict) -> bool:
    """Return whether the bare loop suffered at that time, too: a tick overran, or states were late."""
    return stop['stall_ms'] >= 1e3 * (PERIOD_S if stop['why'].startswith('loop_overrun') else STALL_S)


def _stall_ms(baseline: dict, at: float, why: str) -> float:
    before = WINDOW_S if why.startswith(('dropped_states', 'joint_rate')) else NEAR_S
    return 1e3 * max((late for t, late in baseline['late'] if at - before <= t <= at + NEAR_S), default=0.0)


def _rows(f: dict) -> list[list[str]]:
    base, states = f['baseline'], f['states']

    def spread(values: dict | None) -> str:
        return 'none' if values is None else ' / '.join(f'{values[key]:.2f}' for key in ('p50', 'p99', 'max')) + ' ms'

    stopped = f'{len(f["stops"])} times, {len(f["stops"]) - f["unexplained_stops"]} of them during a stall of the bare loop'
    killed = f['policy_killed']
    took = 'no reaction' if killed['seconds'] is None else f'{1e3 * killed["seconds"]:.0f} ms'
    rows = [
        ['bare loop at 500 Hz, late by: p50 / p99 / p99.9 / max',
         f'{base["p50_ms"]:.2f} / {base["p99_ms"]:.2f} / {base["p999_ms"]:.2f} / {base["max_ms"]:.1f} ms', ''],
        ['bare loop, over 2 ms late', f'{base["miss_rate"]:.3%} ({base["misses"]} of {base["wakes"]}; '
         f'{base["stalls"]} over 10 ms)', ''],
        ['what other programs took of the cores', f'{f["others_share"]:.0%}', _yes(f['others_share'] <= IDLE_SHARE)],
        ['states that the safety node missed', f'{states["missed_share"]:.2%} of {states["sent"]:.0f} '
         f'(real-time factor {states["real_time_factor"]:.3f})', ''],
        ['command age in the simulator, once a second: p50 / p99 / max', spread(f['command_age_ms']), ''],
        ['worst safety tick of each second: p50 / p99 / max', spread(f['worst_tick_ms_of_each_second']), ''],
        ['policy tick, once a second: p50 / p99 / max', spread(f['policy_tick_ms']), ''],
        ['watchdog interventions while walking', f'{f["watchdog_interventions"]:.0f}', ''],
        ['robot stopped without being asked to', stopped, _yes(not f['unexplained_stops'] and not f['given_up'])],
        ['policy killed: damping announced after', f'{took}: {killed["why"]}', _yes(killed['good'])],
        ['safety node killed: the watchdog damps', _yes(f['safety_killed_watchdog_acts']),
         _yes(f['safety_killed_watchdog_acts'])],
    ]  # fmt: skip
    for node, m in f['memory'].items():
        slope = 'too short for a slope' if m['slope_mb_h'] is None else f'{m["slope_mb_h"]:+.2f} MB/h after 2 minutes'
        text = f'{m["mb"][0]:.1f} -> {m["mb"][1]:.1f} MB, {slope}; descriptors {m["descriptors"][0]} -> {m["descriptors"][1]}'
        rows.append([f'memory of {node}', text, '' if m['slope_mb_h'] is None else _yes(node not in f['grown'])])
    return rows


def _yes(good: bool) -> str:
    return 'yes' if good else 'no'


HEADER = ('what', 'measured', 'good')


def _title(f: dict) -> str:
    how = f'SCHED_FIFO {f["realtime_priority"]}' if f['realtime_priority'] else 'ordinary processes'
    return f'{f["walked_s"] / 60:.1f} minutes of walking in real time, {how}; {f["machine"]}, load average {f["load"]:.1f}'


def _stops(f: dict) -> list[str]:
    said = [
        f'{stop["before"]} -> {stop["mode"]} ({stop["why"]}): the bare loop was late by up to {stop["stall_ms"]:.0f} ms then'
        for stop in f['stops'][:SHOWN]
    ]
    if len(f['stops']) > SHOWN:
        said.append(f'and {len(f["stops"]) - SHOWN} more')
    return [*said, f['given_up']] if f['given_up'] else said


def markdown(f: dict) -> str:
    """Return the figures for a document."""
    stops = ''.join(f'\n- {line}' for line in _stops(f))
    return f'{_title(f)}.\n\n{evidence.table(HEADER, _rows(f))}\n{stops}'


def show(f: dict) -> None:
    """Print the figures."""
    console = Console(markup=False, width=None if sys.stdout.isatty() else 150)
    table = Table(title=_title(f), title_justify='left')
    for column in HEADER:
        table.add_column(column)
    for row in _rows(f):
        table.add_row(*row)
    console.print(table)
    for line in [*_stops(f), *(f'{seconds} s: {said}' for said, seconds in f['safety_said_s'].items())]:
        console.print(line)


if __name__ == '__main__':
    raise SystemExit(main())
