# SPDX-License-Identifier: Apache-2.0
"""Has the safety node wiggle one joint after the other, and collects how far all of them went."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sim2real_ros.errors import RunError
from sim2real_ros.ros.operator import Operator

TURN_S = 60.0  # longest turn of a joint in real time: 3 s of the robot's, in a slow simulation


def wiggle(operator: Operator, joints: tuple[str, ...], said: Callable[[str], None] = lambda _: None) -> np.ndarray:
    """Wiggle every joint in turn.

    Args:
        operator: of the stack.
        joints: n, all those of the robot, in its order.
        said: told which joint is next.

    Returns:
        (n, n) rad; [i, j] is how far joint i went with a positive torque for joint j.

    Raises:
        RunError: a turn was refused or ended by a fault; all joints are slack then.
    """
    for joint in joints:
        said(joint)
        operator.wiggled.pop(joint, None)
        refusal = operator.set_parameter('safety_node', 'wiggle_joint', joint) or operator.request('wiggle')
        if refusal is not None:
            raise RunError(f'{joint} was not wiggled: {refusal}')
        over = partial(_over, operator, joint)
        operator.wait(over, TURN_S, f'the turn of {joint} was not over')
        if joint not in operator.wiggled:
            raise RunError(f'a fault ended the turn of {joint}: the log of safety_node says which')
    return np.array([[operator.wiggled[j][i] for j in joints] for i in joints])


def _over(operator: Operator, joint: str) -> bool:
    return joint in operator.wiggled or operator.mode == 'fault'
