# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make with a policy's conventions, each as a change of its contract's document, in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim2real_ros.contract.contract import Contract, resolve
from sim2real_ros.contract.schema import ContractFile
from sim2real_ros.document import validate
from sim2real_ros.parity.mend import document_of

Document = dict[str, Any]
CONFIGURED = [  # holosoma's term list as it stands in its configuration
    'base_ang_vel', 'projected_gravity', 'velocity_command_lin', 'velocity_command_yaw', 'joint_pos_rel', 'joint_vel',
    'last_action', 'phase_sin', 'phase_cos',
]  # fmt: skip


def mistaken(contract: Contract, mistake: Callable[[Document], Any]) -> Contract:
    """Return a contract with a mistake.

    Raises:
        DocumentError: the mistake is refused.
    """
    document = document_of(contract)
    mistake(document)
    return resolve(validate(ContractFile, document, 'the mistaken contract'), 'the mistaken contract', contract.folder)


def observation(document: Document) -> Document:
    """Return the first observation of a document."""
    return next(part for part in document['inputs'].values() if 'terms' in part)


def term(document: Document, name: str) -> Document:
    """Return a term of a document's first observation."""
    return next(use for use in observation(document)['terms'] if use['term'] == name)


def history_reversed(document: Document) -> None:
    """The history newest first instead of oldest first, or the other way round."""
    observation(document)['stack']['lags'].reverse()


def history_by_the_other_axis(document: Document) -> None:
    """The history frame by frame instead of term by term, or the other way round."""
    stack = observation(document)['stack']
    stack['layout'] = {'term_major': 'frame_major', 'frame_major': 'term_major'}[stack['layout']]


def joints_permuted(document: Document) -> None:
    """The halves of the joint list exchanged: left and right, or front and hind."""
    n = len(document['joints'])
    document['joints'] = document['joints'][n // 2 :] + document['joints'][: n // 2]


def joints_by_alphabet(document: Document) -> None:
    """The order of a joint state message taken for the policy's."""
    document['joints'].sort()


def terms_as_configured(document: Document) -> None:
    """The order of holosoma's configuration, where its code sorts them by name."""
    observation(document)['terms'].sort(key=lambda use: CONFIGURED.index(use['term']))


def last_action_scaled(document: Document) -> None:
    """The scaled action fed back instead of the raw one."""
    (action,) = document['outputs'].values()
    scale = action['scale']
    _scale(document, 'last_action', list(scale.values()) if isinstance(scale, dict) else scale)


def goal_xyzw(document: Document) -> None:
    """The other order of the goal's quaternion."""
    document['commands']['pose']['quaternion'] = 'xyzw'


def motion_wxyz(document: Document) -> None:
    """The other order of the reference motion's quaternion."""
    document['motion']['quaternion'] = 'wxyz'


def state_not_carried(document: Document) -> None:
    """The recurrent state's inputs left out."""
    document['inputs'] = {name: part for name, part in document['inputs'].items() if 'state' not in part}


def states_crossed(document: Document) -> None:
    """Each recurrent state fed where another one belongs."""
    states = [name for name, part in document['inputs'].items() if 'state' in part]
    outputs = [document['inputs'][name]['state'] for name in states]
    for name, output in zip(states, outputs[::-1], strict=True):
        document['inputs'][name]['state'] = output


def clip_before_scale(document: Document) -> None:
    """The other order of clip and scale, in every term that has both."""
    for use in observation(document)['terms']:
        if {'clip', 'scale'} <= set(use.get('process') or []):
            use['process'].reverse()


def clock_of_another_period(document: Document) -> None:
    """A guessed period of the gait clock."""
    document['phase']['period_s'] *= 1.25


def clock_a_tick_late(document: Document) -> None:
    """The gait clock advanced on the other side of the observation."""
    document['phase']['first_tick'] = 1 - document['phase'].get('first_tick', 0)


def feet_of_the_clock_exchanged(document: Document) -> None:
    """Left and right clock exchanged."""
    document['phase']['offsets'].reverse()


def counter_from_one(document: Document) -> None:
    """A motion started with its second frame."""
    document['inputs']['time_step']['start'] = 1


def gravity_in_newtons(document: Document) -> None:
    """Gravity in m/s^2 where its direction is meant."""
    _scale(document, 'projected_gravity', 9.81)


def terms_in_reverse(document: Document) -> None:
    """The terms in the reverse order."""
    observation(document)['terms'].reverse()


def pose_of_another_policy(document: Document) -> None:
    """The default pose of another policy of the robot."""
    pose = document['default_position']
    for joint in [joint for joint in pose if 'thigh' in joint or 'hip_pitch' in joint]:
        pose[joint] += 0.2


def a_tick_too_old(document: Document) -> None:
    """The tick before instead of this one."""
    stack = observation(document)['stack']
    stack['lags'] = [lag + 1 for lag in stack['lags']]


def history_of_the_other_beginning(document: Document) -> None:
    """The history begun with zeros instead of the first frame, or the other way round."""
    stack = observation(document)['stack']
    stack['fill'] = {'first': 'zeros', 'zeros': 'first'}[stack['fill']]


def action_scale_of_another_policy(document: Document) -> None:
    """The action scale of another policy of the robot."""
    for action in document['outputs'].values():
        action['scale'] = 0.4


def _scale(document: Document, name: str, scale: Any) -> None:
    use = term(document, name)
    use['scale'] = scale
    if 'clip' in use:
        use['process'] = ['clip', 'scale']
