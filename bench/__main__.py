# SPDX-License-Identifier: Apache-2.0
"""Print every budget of docs/architecture.md with what this machine needs; an idle machine tells the truth."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

from bench.nodes import command_age, cpu_share
from bench.public import history_tick
from bench.stages import coupled_limits, policy_tick, safety_tick
from bench.validation import throughput


def main() -> int:
    """Run all benchmarks; returns 0 when every budget is met."""
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', '77')
    table = Table(title=f'load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores', title_justify='left')
    for column in ('what', 'measured', 'budget', 'met'):
        table.add_column(column)
    good = True
    for measure in (policy_tick, history_tick, safety_tick, coupled_limits, command_age, cpu_share, throughput):
        result = measure()
        good &= result.met
        table.add_row(result.what, result.measured, result.budget, 'yes' if result.met else 'no')
    Console().print(table)
    return 0 if good else 1


if __name__ == '__main__':
    raise SystemExit(main())
