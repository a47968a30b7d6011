# SPDX-License-Identifier: Apache-2.0
"""What a policy bears, held against what the running stack has.

The age of a command is measured from the arrival of a joint state to the arrival of the torque that answers it. In a study
it is what delays the torque on its way from the safety filter to the motors, `command_delay_s`: with none, the torque that
answers a state acts at once. What passes before a state arrives (bus, driver, transport) is not in the figure: that is the
tolerance `joint_delay_s`, and to be measured at the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

COMMAND_DELAY = 'command_delay_s'


def command_age_margin(tolerances: Mapping[str, float], age_s: float) -> tuple[Literal['pass', 'fail', 'skip'], str]:
    """Judge the age of commands.

    Args:
        tolerances: of the policy's passport.
        age_s: of late commands, s.

    Returns:
        Verdict, and a sentence that says by how much.
    """
    most = tolerances.get(COMMAND_DELAY)
    if most is None:
        return 'skip', f'nobody knows how old commands may be for this policy: no passport tells {COMMAND_DELAY}'
    text = f'commands are {1e3 * age_s:.1f} ms old, the policy bears {1e3 * most:.1f} ms: '
    if age_s <= most:
        return 'pass', f'{text}{1e3 * (most - age_s):.1f} ms to spare'
    return 'fail', f'{text}{1e3 * (age_s - most):.1f} ms too old. Leave the computer more cores, or train with longer delays'
