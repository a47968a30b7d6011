# SPDX-License-Identifier: Apache-2.0
"""The table of measured reaction times as a Markdown page."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measured cell; times in s."""

    fault: str
    rule: str
    allowed: float
    measured: float
    wall: bool
    who: str
    mode: str
    reason: str
    bug: str = ''


HEAD = """# Reaction times

<!-- Written by `make faults` (test/ros/test_faults.py). Do not edit: run it again. -->

What the real nodes do when something goes wrong while a simulated Go2 walks at 0.5 m/s with the shipped policy, and how soon.
Written by `make faults` on {date}, {machine}, load {load}.

`safety_node`, `policy_node` and `watchdog_node` run as processes of their own; the driver belongs to the test. It works in
lockstep: it publishes a state every 2 ms of simulated time, waits for the answer and then steps the robot. So **times are
simulated time**, from the stamp of the first state that shows the cause to the stamp of the first state that is answered with
damping; 0 ms: that very state. Where it says *wall*, it is real time of the machine. The time that a command takes to the
motors comes on top.

In every case the modes, the reason in the log and the torques were checked. Of {seen} commands none was without a number and
none was beyond an effort limit (the largest: {worst:.1%}). A latched fault was refused its `reset` while its cause went on and
until 1 s after, and granted it then{but}.

*Allowed* is the time that the monitor's own table documents, with one state on top where it says "longer than", and more for
these: `velocity_mismatch` compares blocks of 22 ms (100 ms documented); `dropped_states` counts in windows of 1 s, and the
drops may begin inside of one (1 s documented); the heartbeat and the look at other publishers go through an executor
(0.5 s and 1 s documented). For velocities of the wrong sign and a clock set back by 0.1 s no time is documented.

| fault | found by | allowed, ms | measured, ms | reaction | reason |
|---|---|---|---|---|---|
"""


def write_table(path: Path, rows: Sequence[Row], seen: int, worst: float) -> None:
    """Write the page.

    Args:
        path: of the Markdown file.
        rows: measured cells.
        seen: commands that were checked.
        worst: largest share of an effort limit in them.
    """
    machine = f'{os.cpu_count()} cores, Python {platform.python_version()}'
    load = ' '.join(f'{value:.1f}' for value in os.getloadavg())
    date = datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC')
    known = [row for row in rows if row.bug]
    but = ', but for what stands under the table' if known else ''
    text = HEAD.format(but=but, date=date, machine=machine, load=load, seen=seen, worst=worst)
    text += ''.join(_line(row) for row in rows)
    if known:
        text += '\nKnown to be wrong, and expected to fail in the test:\n\n'
        text += ''.join(f'* {row.fault}: {row.bug}.\n' for row in known)
    path.write_text(text)


def _line(row: Row) -> str:
    tolerated = not row.reason and row.who == 'safety_node'
    reaction = 'none: walks on' if tolerated else _reaction(row)
    cells = (
        row.fault,
        row.rule,
        '' if tolerated else f'{1e3 * row.allowed:.0f}',
        '' if tolerated else f'{1e3 * row.measured:.0f}{" wall" if row.wall else ""}',
        reaction,
        f'`{row.reason}`' if row.reason else '',
    )
    return f'| {" | ".join(cells)} |\n'


def _reaction(row: Row) -> str:
    if row.who != 'safety_node':
        return 'the watchdog damps' + (f', then `{row.mode}`' if row.mode else '')
    return f'`{row.mode}`' + (', latched' if row.mode == 'fault' else '')
