# SPDX-License-Identifier: Apache-2.0
"""Which signals a policy needs, and which of them a robot does not give."""

from __future__ import annotations

from collections.abc import Collection

from sim2real_ros.contract.contract import Contract
from sim2real_ros.observation.moment import TOPICS
from sim2real_ros.observation.slots import resolve_slots

WHAT = {
    'imu': 'an IMU',
    'odom': 'odometry of the base',
    'contacts': 'contacts of the feet',
    'goal_pose': 'a goal pose',
}


def missing_signals(contract: Contract, available: Collection[str]) -> list[str]:
    """Return one sentence for every signal that a policy needs and nobody gives.

    Args:
        contract: of the policy.
        available: signals that there are beside the joint states, of `imu`, `odom`, `contacts`, `goal_pose`.
    """
    terms: dict[str, list[str]] = {}
    for name, blocks in contract.observations.items():
        for slot in resolve_slots(name, blocks, contract, []):
            for need in slot.term.needs:
                terms.setdefault(need, []).append(slot.name)
    return [_sentence(contract, need, users) for need, users in sorted(terms.items()) if need not in available]


def _sentence(contract: Contract, need: str, users: list[str]) -> str:
    names = ', '.join(dict.fromkeys(users))
    what, topic = WHAT.get(need, need), TOPICS.get(need, need)
    return (
        f'{contract.file.name} needs {what} for {names}, but nobody gives it: publish it on the topic {topic}, or take a '
        f'policy without {"this term" if len(set(users)) == 1 else "these terms"}'
    )
