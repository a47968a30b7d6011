# SPDX-License-Identifier: Apache-2.0
"""Small studies of the shipped policy for the tests of the validation."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import cache
from typing import Any

from sim2real_ros.contract import load_contract
from sim2real_ros.document import validate
from sim2real_ros.errors import DocumentError
from sim2real_ros.robot import load_robot
from sim2real_ros.validation.episodes import Trial
from sim2real_ros.validation.schema import ValidationFile, load_validation


def level(seconds: float = 2.0, ranges: dict[str, Any] | None = None, **changes: Any) -> ValidationFile:
    """Return the standard level with short episodes; `ranges` replaces some of its ranges, or all when it is {}."""
    document = load_validation('standard')[0].model_dump(by_alias=True)
    document |= {'episode_s': seconds, 'command_s': 2.0, **changes}
    if ranges is not None:
        document['ranges'] = {**document['ranges'], **ranges} if ranges else {}
    return validate(ValidationFile, document, 'level')


@cache
def _prepared(seed: int) -> Trial:
    return Trial.of(level(), load_robot('go2'), load_contract('go2_velocity'), seed)


def trial(seed: int = 1, **changes: Any) -> Trial:
    """Return the shipped policy's trial; `changes` as in `level`."""
    return replace(_prepared(seed), level=level(**changes))


def deadly(task: int) -> int:
    """Work that kills its worker at task 3."""
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def refuse(why: str, task: int) -> None:
    """Work that is a user's mistake."""
    raise DocumentError(f'{why} {task}', ['it is not there'])
